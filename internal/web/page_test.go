package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/web"
)

func newPage(t *testing.T, files fstest.MapFS) *web.Page {
	t.Helper()
	p, err := web.NewPage(files)
	require.NoError(t, err)
	return p
}

func getPage(t *testing.T, p *web.Page, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func TestPageServesItsFilesAndItsAddresses(t *testing.T) {
	p := newPage(t, fstest.MapFS{
		"index.html":     {Data: []byte("<!doctype html>index")},
		"assets/page.js": {Data: []byte(strings.Repeat("let a = 1;", 100))},
	})
	for path, want := range map[string]struct {
		status int
		kind   string
		part   string
	}{
		"/":                     {200, "text/html", "index"},
		"/inbox/t1/q1":          {200, "text/html", "index"},
		"/threads/../../etc":    {200, "text/html", "index"},
		"/assets/page.js":       {200, "text/javascript", "let a"},
		"/assets/../index.html": {404, "text/plain", ""},
		"//evil.example/x":      {404, "text/plain", ""},
		"/assets/other.js":      {404, "text/plain", ""},
	} {
		res := getPage(t, p, http.MethodGet, path)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want.status, res.StatusCode, path)
		require.Contains(t, res.Header.Get("Content-Type"), want.kind, path)
		require.Contains(t, string(body), want.part, path)
		for header, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			require.Contains(t, res.Header.Get(header), value, path)
		}
	}
}

func TestPageRunsItsOwnScriptsAndNoOthers(t *testing.T) {
	p := newPage(t, fstest.MapFS{"index.html": {}})
	res := getPage(t, p, http.MethodGet, "/")
	require.NoError(t, res.Body.Close())
	policy := strings.Split(res.Header.Get("Content-Security-Policy"), "; ")
	require.Subset(t, policy, []string{"default-src 'none'", "script-src 'self'", "worker-src 'self'", "connect-src 'self'"})
	require.NotContains(t, strings.Join(policy, " "), "unsafe")
	require.NotContains(t, strings.Join(policy, " "), "blob:")
}

func TestPageIsSentOnceAndPacked(t *testing.T) {
	p := newPage(t, fstest.MapFS{"index.html": {Data: []byte(strings.Repeat("text ", 1000))}})
	plain := getPage(t, p, http.MethodGet, "/")
	require.NoError(t, plain.Body.Close())
	packed := getPage(t, p, http.MethodGet, "/", "Accept-Encoding", "gzip, br")
	unpacked, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("text ", 1000), string(text))
	require.NoError(t, packed.Body.Close())
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	require.Less(t, packed.ContentLength, plain.ContentLength/10)
	again := getPage(t, p, http.MethodGet, "/", "If-None-Match", plain.Header.Get("ETag"))
	require.NoError(t, again.Body.Close())
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	post := getPage(t, p, http.MethodPost, "/")
	require.NoError(t, post.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, post.StatusCode)
	head := getPage(t, p, http.MethodHead, "/")
	body, err := io.ReadAll(head.Body)
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	require.Empty(t, body)
}

func TestPageWithoutIndexIsRefused(t *testing.T) {
	_, err := web.NewPage(fstest.MapFS{"assets/page.js": {}})
	require.ErrorContains(t, err, "index.html")
}

// What the guard says of a response is kept: a cache would give one site what is for another.
func TestFilesVaryByTheirSite(t *testing.T) {
	guard, err := web.NewGuard(nil, []string{"https://app.example.com"})
	require.NoError(t, err)
	p := newPage(t, fstest.MapFS{"index.html": {Data: []byte("x")}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("Origin", "https://app.example.com")
	w := httptest.NewRecorder()
	guard.Protect(p).ServeHTTP(w, r)
	require.Equal(t, []string{"Origin", "Accept-Encoding"}, w.Header().Values("Vary"))
}
