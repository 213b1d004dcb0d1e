package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/web"
)

// Which parts of a request its call has.
func TestPartsThatNameTheCaller(t *testing.T) {
	guard, err := web.NewGuard(nil, []string{"https://app.example.com"})
	require.NoError(t, err)
	f := start(t, func(o *web.Options) {
		o.Callers = web.CallerParts{SessionCookie: "s", UserHeader: "X-User", GroupsHeader: "X-Groups"}
	}, guard.Protect)
	own := strings.TrimPrefix(f.url, "http://")
	listed := "https://app.example.com"
	for name, c := range map[string]struct {
		headers                []string
		session, users, groups string
	}{
		"nothing":                     {nil, "", "", ""},
		"a session":                   {[]string{"Cookie", "a=b; s=x"}, "x", "", ""},
		"two sessions":                {[]string{"Cookie", "s=x; s=y"}, "x|y", "", ""},
		"of the page":                 {[]string{"Cookie", "s=x", "Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, "x", "", ""},
		"of the page, older browser":  {[]string{"Cookie", "s=x", "Origin", "http://" + own}, "x", "", ""},
		"of a listed site":            {[]string{"Cookie", "s=x", "Origin", listed, "Sec-Fetch-Site", "cross-site"}, "", "", ""},
		"of a listed, older browser":  {[]string{"Cookie", "s=x", "Origin", listed}, "", "", ""},
		"of a listed site of the own": {[]string{"Cookie", "s=x", "Origin", listed, "Sec-Fetch-Site", "same-site"}, "", "", ""},
		"a huge session":              {[]string{"Cookie", "s=" + strings.Repeat("x", 9000)}, strings.Repeat("x", identity.MaxSessionBytes+1), "", ""},
		"names":                       {[]string{"X-User", "än a", "X-Groups", "a,b"}, "", "än a", "a,b"},
		"an empty name":               {[]string{"X-User", ""}, "", "", ""},
		"metadata of the server":      {[]string{"Graphd-Session", "x", "Graphd-Forwarded-User-Bin", "eA", "Graphd-Forwarded-Groups-Bin", "eA"}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, body, header := f.post(t, checkPath, "application/json", `{"service":"parts"}`, c.headers...)
			require.Equal(t, http.StatusOK, code, body)
			require.Empty(t, header.Get("Access-Control-Allow-Credentials"))
			got := <-f.parts
			require.Equal(t, []string{c.session, c.users, c.groups}, got)
		})
	}
	code, _, header := f.do(t, http.MethodOptions, checkPath, "", "Origin", listed, "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, code)
	require.Empty(t, header.Get("Access-Control-Allow-Credentials"))

	code, body, _ := f.post(t, checkPath, "application/json", `{"service":"parts"}`, "X-User", "ana", "X-Groups", strings.Repeat("g", 20_000))
	require.Equal(t, http.StatusOK, code, body)
	got := <-f.parts
	require.Greater(t, len(got[1])+len(got[2]), identity.MaxForwardedBytes, "what is cut is refused")
	require.LessOrEqual(t, len(got[1])+len(got[2]), identity.MaxForwardedBytes+1)
}
