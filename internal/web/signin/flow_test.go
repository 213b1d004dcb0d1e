package signin_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/testkit/oidcissuer"
	"github.com/graphd-dev/graphd/internal/web/signin"
)

const (
	sessionCookie = "__Host-graphd-session"
	signInCookie  = "__Host-graphd-sign-in"
)

func TestAPersonSignsInAndOut(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	isSignedIn, text := b.state(t)
	require.False(t, isSignedIn)
	require.JSONEq(t, fmt.Sprintf(`{"ways":[{"kind":"oidc","name":%q,"path":"/sign-in"},{"kind":"token"}],"signedIn":false}`,
		strings.TrimPrefix(f.issuer.URL, "https://")), text)

	got := b.signIn(t)
	require.Equal(t, http.StatusSeeOther, got.status, got.body)
	require.Equal(t, f.url+"/threads?a=b", got.header.Get("Location"))
	set := got.header.Values("Set-Cookie")
	require.Len(t, set, 2)
	require.Regexp(t, `^__Host-graphd-sign-in=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax$`, set[0])
	require.Regexp(t, `^__Host-graphd-session=[\w-]+; Path=/; Expires=[^;]+; Max-Age=\d+; HttpOnly; Secure; SameSite=Strict$`, set[1])
	require.Less(t, len(set[1]), 4096)
	require.NotContains(t, set[1], "ana")
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))

	isSignedIn, text = b.state(t)
	require.True(t, isSignedIn)
	require.Contains(t, text, `"endTime":"`)
	who, until, err := f.sessions.Find(b.cookie(t, sessionCookie))
	require.NoError(t, err)
	require.NotNil(t, who.Lifetime)
	who.Lifetime = nil
	require.Equal(t, identity.Principal{
		Name: "ana@example.org", Groups: []string{"login:officers"}, Tenant: "acme", Tenants: []string{"acme"}, How: identity.HowSession,
	}, who, "by the rules of the issuer's tokens")
	require.LessOrEqual(t, until.Sub(f.read()), 8*time.Hour)

	sealed := b.cookie(t, sessionCookie)
	got = b.do(t, http.MethodPost, f.url+signin.PathSignOut, "Content-Type", "application/json")
	require.Equal(t, http.StatusNoContent, got.status)
	require.Empty(t, b.cookie(t, sessionCookie))
	_, _, err = f.sessions.Find(sealed)
	require.Equal(t, &identity.Error{Reason: identity.SessionExpired}, err, "a copy of the cookie, too")

	f.advance(time.Second)
	require.Equal(t, http.StatusSeeOther, b.signIn(t).status, "of the same session with the issuer")
	isSignedIn, _ = b.state(t)
	require.True(t, isSignedIn)

	for _, line := range f.logs.All() {
		require.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), sealed[:20])
	}
}

func TestASessionEnds(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	b.signIn(t)
	sealed := b.cookie(t, sessionCookie)
	require.NotEmpty(t, sealed)
	f.advance(8*time.Hour - 2*time.Second)
	isSignedIn, _ := b.state(t)
	require.True(t, isSignedIn)
	f.advance(3 * time.Second)
	_, _, err := f.sessions.Find(sealed)
	require.Equal(t, &identity.Error{Reason: identity.SessionExpired}, err)
	isSignedIn, _ = b.state(t)
	require.False(t, isSignedIn)
	require.Empty(t, b.cookie(t, sessionCookie), "it is taken away")
}

// requireRefusal requires the page of a refusal, without a session, and without what it must not
// show.
func requireRefusal(t *testing.T, b *browser, got answer, status int, says string, secrets ...string) {
	t.Helper()
	require.Equal(t, status, got.status, got.body)
	require.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))
	require.Contains(t, got.header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Contains(t, got.body, says)
	require.Contains(t, got.body, "Request "+got.header.Get("X-Request-Id"))
	require.Empty(t, b.cookie(t, sessionCookie))
	for _, secret := range secrets {
		require.NotContains(t, got.body, secret)
		for _, line := range b.f.logs.All() {
			require.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), secret)
		}
	}
}

func TestAnswersOfTheIssuerAreChecked(t *testing.T) {
	f := start(t, nil)
	const again = "was not begun in this browser"
	for name, c := range map[string]struct {
		change func(back url.Values)
		status int
		says   string
	}{
		"another state":      {func(v url.Values) { v.Set("state", "x") }, http.StatusBadRequest, again},
		"no state":           {func(v url.Values) { v.Del("state") }, http.StatusBadRequest, again},
		"no code":            {func(v url.Values) { v.Del("code") }, http.StatusBadRequest, again},
		"a huge code":        {func(v url.Values) { v.Set("code", strings.Repeat("c", 5000)) }, http.StatusBadRequest, again},
		"another code":       {func(v url.Values) { v.Set("code", "x") }, http.StatusBadGateway, "does not answer as it should"},
		"another issuer":     {func(v url.Values) { v.Set("iss", "https://evil.example") }, http.StatusBadRequest, "not that of the identity provider"},
		"a refusal":          {func(v url.Values) { v.Set("error", "<script>") }, http.StatusForbidden, "has refused the sign-in"},
		"a code of somebody": {func(v url.Values) { v.Set("code", f.newBrowser(t).begin(t).Query().Get("code")) }, http.StatusBadGateway, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			b := f.newBrowser(t)
			back := b.begin(t)
			query := back.Query()
			code := query.Get("code")
			c.change(query)
			back.RawQuery = query.Encode()
			got := b.do(t, http.MethodGet, back.String())
			requireRefusal(t, b, got, c.status, c.says, code, oidcissuer.Secret)
			require.NotContains(t, got.body, "<script>")
			require.Empty(t, b.cookie(t, signInCookie), "a sign-in has one end")
		})
	}
}

func TestASignInHasOneEnd(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	back := b.begin(t)
	begun := b.cookie(t, signInCookie)
	require.Less(t, len(begun), 1000)
	require.Equal(t, http.StatusSeeOther, b.do(t, http.MethodGet, back.String()).status)
	b.do(t, http.MethodPost, f.url+signin.PathSignOut, "Content-Type", "application/json")

	requireRefusal(t, b, b.do(t, http.MethodGet, back.String()), http.StatusBadRequest, "was not begun")
	b.setCookie(t, signInCookie, begun, "/") // of a thief who has all
	requireRefusal(t, b, b.do(t, http.MethodGet, back.String()), http.StatusBadGateway, "does not answer as it should", back.Query().Get("code"))

	other := f.newBrowser(t)
	requireRefusal(t, other, other.do(t, http.MethodGet, b.begin(t).String()), http.StatusBadRequest, "was not begun")

	late := f.newBrowser(t)
	back = late.begin(t)
	f.advance(11 * time.Minute)
	requireRefusal(t, late, late.do(t, http.MethodGet, back.String()), http.StatusBadRequest, "took too long")

	confused := f.newBrowser(t)
	back = confused.begin(t)
	b.signIn(t)
	confused.setCookie(t, signInCookie, b.cookie(t, sessionCookie), "/")
	requireRefusal(t, confused, confused.do(t, http.MethodGet, back.String()), http.StatusBadRequest, "was not begun")
}

func TestIDTokensAreChecked(t *testing.T) {
	f := start(t, nil)
	const refused = "does not accept what the identity provider says"
	many := make([]string, 250)
	for i := range many {
		many[i] = rand.Text()
	}
	for name, c := range map[string]struct {
		claims map[string]any
		status int // 0 = accepted
		says   string
	}{
		"another nonce":            {map[string]any{"nonce": "x"}, http.StatusBadRequest, "was not begun"},
		"no nonce":                 {map[string]any{"nonce": nil}, http.StatusBadRequest, "was not begun"},
		"another issuer":           {map[string]any{"iss": "https://evil.example"}, http.StatusForbidden, refused},
		"another client":           {map[string]any{"aud": "graphd"}, http.StatusForbidden, refused},
		"for another of two":       {map[string]any{"aud": []string{oidcissuer.Client, "x"}, "azp": "x"}, http.StatusForbidden, refused},
		"for one of two":           {map[string]any{"aud": []string{oidcissuer.Client, "x"}}, http.StatusForbidden, refused},
		"expired":                  {map[string]any{"exp": f.read().Add(-time.Hour).Unix()}, http.StatusForbidden, refused},
		"no end":                   {map[string]any{"exp": nil}, http.StatusForbidden, refused},
		"no name":                  {map[string]any{"email": nil}, http.StatusForbidden, refused},
		"a name of two lines":      {map[string]any{"email": "a\nb"}, http.StatusForbidden, refused},
		"a wrong sid":              {map[string]any{"sid": 7}, http.StatusForbidden, refused},
		"very many groups":         {map[string]any{"groups": many}, http.StatusForbidden, "more of you than a session has room for"},
		"some groups":              {map[string]any{"groups": many[:40]}, 0, ""},
		"for this client of two":   {map[string]any{"aud": []string{oidcissuer.Client, "x"}, "azp": oidcissuer.Client}, 0, ""},
		"no session at the issuer": {map[string]any{"sid": nil}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f.issuer.SetClaims(c.claims)
			b := f.newBrowser(t)
			got := b.signIn(t)
			if c.status == 0 {
				require.Equal(t, http.StatusSeeOther, got.status, got.body)
				require.NotEmpty(t, b.cookie(t, sessionCookie))
				return
			}
			requireRefusal(t, b, got, c.status, c.says)
		})
	}
}

func TestTheIssuerIsAway(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	f.issuer.FailExchanges(http.StatusInternalServerError)
	requireRefusal(t, b, b.signIn(t), http.StatusBadGateway, "does not answer as it should", oidcissuer.Secret)
	f.issuer.FailExchanges(0)
	f.issuer.Refuse(true)
	requireRefusal(t, b, b.signIn(t), http.StatusForbidden, "has refused")
	f.issuer.Refuse(false)
	require.Equal(t, http.StatusSeeOther, b.signIn(t).status)

	f = start(t, func(o *signin.ProviderOptions) { o.HTTP = &http.Client{Transport: failing{}} })
	b = f.newBrowser(t)
	requireRefusal(t, b, b.signIn(t), http.StatusBadGateway, "does not answer as it should")
	f = start(t, func(o *signin.ProviderOptions) { o.Secret = "wrong" })
	b = f.newBrowser(t)
	requireRefusal(t, b, b.signIn(t), http.StatusBadGateway, "does not answer as it should")
	require.Equal(t, 1, f.issuer.CountExchanges(), "no code is tried twice")
	f = start(t, func(o *signin.ProviderOptions) { o.IsSafeURL = func(string) bool { return false } })
	b = f.newBrowser(t)
	requireRefusal(t, b, b.signIn(t), http.StatusBadGateway, "does not answer as it should")
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrHandlerTimeout }

func TestASignInLeadsToThisServer(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	for _, to := range []string{
		"https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/\n", "evil.example", "javascript:alert(1)",
		"/%5cevil.example", "/%2fevil.example", "http:/a", " /", "/ a", "/sign-in", "/sign-in?to=/", "/sign-out", "/session", "/" + strings.Repeat("a", 1100), "/\x7f", "/%zz", "/#t=token", "/inbox?a=b#",
	} {
		got := b.get(t, signin.PathSignIn+"?to="+url.QueryEscape(to))
		requireRefusal(t, b, got, http.StatusBadRequest, "leads to a page of this server alone", "evil.example")
		require.Empty(t, got.header.Get("Location"), to)
	}
	for _, to := range []string{"/", "/threads/a%20b?x=%2F%2F", "/inbox?filter=a+b", "/ä", "/a//b", "/./x"} {
		got := b.get(t, signin.PathSignIn+"?to="+url.QueryEscape(to))
		require.Equal(t, http.StatusSeeOther, got.status, to)
		require.Equal(t, f.url+to, got.header.Get("Location"))
	}
}

func TestTamperedSessionsAreNone(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	b.signIn(t)
	sealed := b.cookie(t, sessionCookie)
	for name, text := range map[string]string{
		"cut": sealed[:len(sealed)-1], "longer": sealed + "A", "flipped": sealed[:50] + string('A'+('B'-sealed[50]%2)%2) + sealed[51:],
		"plain": "eyJpIjoiaSJ9", "huge": strings.Repeat("A", 5000),
	} {
		if text == sealed {
			continue
		}
		_, _, err := f.sessions.Find(text)
		require.Equal(t, &identity.Error{Reason: identity.SessionInvalid}, err, name)
		b.setCookie(t, sessionCookie, text, "/")
		isSignedIn, _ := b.state(t)
		require.False(t, isSignedIn, name)
	}
	f.sessions.End("nothing")
}

func TestOtherSitesEndNoSession(t *testing.T) {
	f := start(t, nil)
	b := f.newBrowser(t)
	b.signIn(t)
	const jsonType = "application/json"
	for name, c := range map[string]struct {
		status  int
		headers []string
	}{
		"another site":             {http.StatusForbidden, []string{"Content-Type", jsonType, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}},
		"another site, by a form":  {http.StatusForbidden, []string{"Content-Type", "text/plain", "Origin", "https://evil.example"}},
		"a form without an origin": {http.StatusUnsupportedMediaType, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"a listed site":            {http.StatusNoContent, []string{"Content-Type", jsonType, "Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}},
	} {
		got := b.do(t, http.MethodPost, f.url+signin.PathSignOut, c.headers...)
		require.Equal(t, c.status, got.status, name)
		require.Empty(t, got.header.Values("Set-Cookie"), name)
		require.Empty(t, got.header.Get("Access-Control-Allow-Credentials"))
		isSignedIn, _ := b.state(t)
		require.True(t, isSignedIn, name)
	}
	got := b.get(t, signin.PathSession, "Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site")
	require.Contains(t, got.body, `"signedIn":false`)
	require.Equal(t, http.StatusMethodNotAllowed, b.get(t, signin.PathSignOut).status)
	require.Equal(t, http.StatusMethodNotAllowed, b.do(t, http.MethodPost, f.url+signin.PathSignIn).status)
}
