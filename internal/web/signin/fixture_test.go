package signin_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
	"github.com/graphd-dev/graphd/internal/identity/session"
	"github.com/graphd-dev/graphd/internal/testkit/oidcissuer"
	"github.com/graphd-dev/graphd/internal/web"
	"github.com/graphd-dev/graphd/internal/web/signin"
)

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is a server at which people sign in, at an issuer with TLS.
type fixture struct {
	*clock

	issuer   *oidcissuer.Issuer
	sessions *session.Sessions
	url      string
	roots    http.RoundTripper // trusts the server and the issuer
	logs     *observer.ObservedLogs
}

func testKey(id string) seal.Key {
	return seal.Key{ID: id, Secret: []byte(strings.Repeat(id[:1], seal.KeySize))}
}

// start starts both, with changes of the options.
func start(t *testing.T, change func(*signin.ProviderOptions)) *fixture {
	t.Helper()
	f := &fixture{clock: &clock{now: time.Now()}}
	f.issuer = oidcissuer.Start(t, true, f.read)
	verifier, err := jwt.New(jwt.Options{
		Config: jwt.Config{Issuers: []jwt.Issuer{{
			Issuer: f.issuer.URL, Audiences: []string{"graphd"}, Claims: jwt.Claims{Name: "email", Groups: "groups", Tenant: "tenant"},
			GroupPrefix: "login:", Tenant: "acme",
		}}},
		Now: f.read, Transport: f.issuer.HTTP.Transport, Report: func(err error) { t.Log(err) },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { verifier.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	sealer, err := seal.NewTextBox([]seal.Key{testKey("b"), testKey("a")})
	require.NoError(t, err)
	f.sessions = session.New(session.Options{Sealer: sealer, Claims: verifier, Now: f.read, Age: 8 * time.Hour})
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	t.Cleanup(server.Close)
	f.url = server.URL
	public, err := url.Parse(server.URL)
	require.NoError(t, err)
	o := signin.ProviderOptions{
		Issuer: f.issuer.URL, Client: oidcissuer.Client, Secret: oidcissuer.Secret, Scopes: []string{"openid", "email"},
		RedirectURL: server.URL + signin.PathCallback, Tokens: verifier, HTTP: jwt.NewClient(f.issuer.HTTP.Transport),
		IsSafeURL: jwt.IsSafeURL, Now: f.read,
	}
	if change != nil {
		change(&o)
	}
	core, logs := observer.New(zap.DebugLevel)
	f.logs = logs
	handler, err := signin.New(signin.Options{
		Provider: signin.NewProvider(o), Sessions: f.sessions, Sealer: sealer, PublicURL: public, TakesTokens: true, Now: f.read, Log: zap.New(core),
	})
	require.NoError(t, err)
	guard, err := web.NewGuard(nil, []string{"https://app.example.com"})
	require.NoError(t, err)
	server.Config.Handler = guard.Protect(handler)
	f.roots = server.Client().Transport // httptest has one certificate for all
	return f
}

// browser is one that keeps cookies, and follows redirects up to a place of the server.
type browser struct {
	*http.Client

	f   *fixture
	jar *cookiejar.Jar
}

func (f *fixture) newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{f: f, jar: jar}
	b.Client = &http.Client{Transport: f.roots, Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), f.url) && r.URL.Path != signin.PathCallback {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(t *testing.T, method, address string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := b.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, got.Body.Close()) }()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return answer{got.StatusCode, got.Header, string(text)}
}

func (b *browser) get(t *testing.T, path string, headers ...string) answer {
	t.Helper()
	return b.do(t, http.MethodGet, b.f.url+path, headers...)
}

// signIn signs in and returns the answer that ends it.
func (b *browser) signIn(t *testing.T) answer {
	t.Helper()
	return b.get(t, signin.PathSignIn+"?to=/threads?a=b")
}

// cookie returns the value of a cookie of the server, "" = none.
func (b *browser) cookie(t *testing.T, name string) string {
	t.Helper()
	at, err := url.Parse(b.f.url + signin.PathSignIn)
	require.NoError(t, err)
	for _, c := range b.jar.Cookies(at) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) setCookie(t *testing.T, name, value, path string) {
	t.Helper()
	at, err := url.Parse(b.f.url + signin.PathSignIn)
	require.NoError(t, err)
	b.jar.SetCookies(at, []*http.Cookie{{Name: name, Value: value, Path: path, Secure: true}})
}

// begin begins a sign-in, and returns the URL by which the issuer would send the person back.
func (b *browser) begin(t *testing.T) *url.URL {
	t.Helper()
	stop := &http.Client{Transport: b.f.roots, Jar: b.jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == signin.PathCallback {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	got, err := stop.Get(b.f.url + signin.PathSignIn)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	back, err := url.Parse(got.Header.Get("Location"))
	require.NoError(t, err)
	return back
}

// state returns what the server says of the browser's session.
func (b *browser) state(t *testing.T) (isSignedIn bool, text string) {
	t.Helper()
	got := b.get(t, signin.PathSession)
	require.Equal(t, http.StatusOK, got.status)
	var s struct {
		SignedIn bool `json:"signedIn"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &s))
	return s.SignedIn, got.body
}
