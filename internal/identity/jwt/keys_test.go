package jwt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

func writeFile(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// remote is a verifier that runs, in a bubble.
type remote struct {
	*jwt.Verifier
	mu      sync.Mutex
	reports []error
}

func (r *remote) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, err)
}

func (r *remote) reported() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.reports...)
}

// startRemote runs a verifier of one issuer until the test ends.
func startRemote(t *testing.T, from *testIssuer, change func(*jwt.Issuer)) *remote {
	t.Helper()
	config := jwt.Config{Issuers: []jwt.Issuer{{Issuer: issuerURL, Audiences: []string{"graphd"}}}}
	change(&config.Issuers[0])
	require.Empty(t, config.Problems())
	r := &remote{}
	var err error
	r.Verifier, err = jwt.New(jwt.Options{Config: config, Now: func() time.Time { return now }, Transport: from, Report: r.report})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
	return r
}

func byDiscovery(*jwt.Issuer) {}

func (r *remote) check(t *testing.T, token string) identity.Reason {
	t.Helper()
	_, err := r.Authenticate(t.Context(), identity.Credentials{Token: token})
	return reasonOf(t, err)
}

// reasonOf returns why credentials were refused, "" = they were not.
func reasonOf(t *testing.T, err error) identity.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	refused, ok := errors.AsType[*identity.Error](err)
	require.True(t, ok, "%v", err)
	return refused.Reason
}

func pass(t *testing.T, d time.Duration) {
	t.Helper()
	require.NoError(t, backoff.Sleep(t.Context(), d))
	synctest.Wait()
}

func TestKeysAreFoundByDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		r := startRemote(t, issuer, byDiscovery)
		require.Empty(t, r.check(t, good(t, nil)))
		discovered, fetched := issuer.counts()
		require.Equal(t, []int{1, 1}, []int{discovered, fetched})
		require.Empty(t, r.reported())
	})
}

func TestKeysAreFetchedFromAURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		r := startRemote(t, issuer, func(i *jwt.Issuer) { i.JWKSURL = "https://keys.example.org/jwks" })
		require.Empty(t, r.check(t, good(t, nil)))
		discovered, fetched := issuer.counts()
		require.Equal(t, []int{0, 1}, []int{discovered, fetched})
	})
}

// The network of a real issuer, with TLS.
func TestAnIssuerOnTheNetwork(t *testing.T) {
	issuer := newIssuer(t, "p256")
	server := httptest.NewTLSServer(issuer)
	defer server.Close()
	config := jwt.Config{Issuers: []jwt.Issuer{{Issuer: server.URL, Audiences: []string{"graphd"}}}}
	require.Empty(t, config.Problems())
	v, err := jwt.New(jwt.Options{
		Config: config, Now: func() time.Time { return now }, Transport: server.Client().Transport, Report: func(error) {},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.Run(ctx)
	}()
	token := good(t, map[string]any{"iss": server.URL})
	require.Eventually(t, func() bool {
		_, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	cancel()
	<-done
}

func TestUnknownKeysCauseOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		r := startRemote(t, issuer, byDiscovery)
		ask := func() {
			var all sync.WaitGroup
			for n := range 1000 {
				all.Go(func() {
					header := map[jose.HeaderKey]any{"kid": fmt.Sprint("unknown", n)}
					if reason := r.check(t, sign(t, jose.ES256, "attacker", claims(nil), header)); reason != identity.TokenSignature {
						t.Error(reason)
					}
				})
			}
			all.Wait()
		}
		for _, step := range []struct {
			after   time.Duration
			fetches int // since the begin
		}{{0, 1}, {9 * time.Second, 1}, {time.Second, 2}, {time.Second, 2}, {8 * time.Second, 2}, {time.Second, 3}} {
			pass(t, step.after)
			ask()
			discovered, fetched := issuer.counts()
			require.Equal(t, step.fetches, fetched)
			require.Equal(t, 1, discovered)
		}
		require.Empty(t, r.check(t, good(t, nil)))
	})
}

func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		r := startRemote(t, issuer, byDiscovery)
		next := sign(t, jose.ES256, "next", claims(nil), nil)
		nameless := sign(t, jose.ES256, "next", claims(nil), map[jose.HeaderKey]any{"kid": nil})
		require.Equal(t, identity.TokenSignature, r.check(t, next))

		issuer.set(func(i *testIssuer) { i.jwks = publicSet(t, "p256", "next") })
		pass(t, 10*time.Second)
		require.Empty(t, r.check(t, next), "the first token with the new key fetches it")
		require.Empty(t, r.check(t, nameless))
		require.Empty(t, r.check(t, good(t, nil)))

		issuer.set(func(i *testIssuer) { i.jwks = publicSet(t, "next") })
		pass(t, 5*time.Minute)
		require.Equal(t, identity.TokenSignature, r.check(t, good(t, nil)), "a key that the issuer withdrew")
		require.Empty(t, r.check(t, next))

		issuer.set(func(i *testIssuer) { i.jwks = publicSet(t, "p256") })
		pass(t, 10*time.Second)
		nameless = sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"kid": nil})
		require.Empty(t, r.check(t, nameless), "a token without kid finds the new key too")
	})
}

func TestAnIssuerThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		issuer.set(func(i *testIssuer) { i.status = http.StatusServiceUnavailable })
		r := startRemote(t, issuer, byDiscovery)
		require.Equal(t, identity.KeysUnavailable, r.check(t, good(t, nil)))
		pass(t, 25*time.Second)
		require.Equal(t, identity.KeysUnavailable, r.check(t, good(t, nil)))
		require.Len(t, r.reported(), 1, "one report of all failures")
		require.ErrorContains(t, r.reported()[0], "503")

		issuer.set(func(i *testIssuer) { i.status = http.StatusOK })
		pass(t, 5*time.Minute)
		require.Empty(t, r.check(t, good(t, nil)))

		issuer.set(func(i *testIssuer) { i.status = http.StatusInternalServerError })
		pass(t, time.Hour)
		require.Empty(t, r.check(t, good(t, nil)), "the keys before stay")
		require.Len(t, r.reported(), 2)
	})
}

func TestRequestsWaitAtMostTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		issuer.set(func(i *testIssuer) {
			i.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
				<-r.Context().Done()
				return true
			}
		})
		r := startRemote(t, issuer, byDiscovery)
		var mu sync.Mutex
		ended := 0
		for range 100 {
			go func() {
				if reason := r.check(t, good(t, nil)); reason != identity.KeysUnavailable {
					t.Error(reason)
				}
				mu.Lock()
				defer mu.Unlock()
				ended++
			}()
		}
		cause := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := r.Authenticate(ctx, identity.Credentials{Token: good(t, nil)})
		require.ErrorIs(t, err, cause)
		pass(t, 2*time.Second)
		mu.Lock()
		require.Equal(t, 100, ended)
		mu.Unlock()
		require.Empty(t, r.reported(), "the fetch goes on")
		pass(t, 3*time.Second)
		require.Len(t, r.reported(), 1, "the fetch is bounded too")
	})
}

func TestHostileIssuers(t *testing.T) {
	metadata := func(text string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/.well-known/openid-configuration" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	keys := func(text string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/.well-known/openid-configuration" {
				return false
			}
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	secret, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("secret"), KeyID: "p256"}}})
	require.NoError(t, err)
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: testKeys()["p256"], KeyID: "p256"}}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"another issuer":         {metadata(`{"issuer":"https://evil.example","jwks_uri":"https://issuer.example.org/keys"}`), "did not match"},
		"keys without TLS":       {metadata(`{"issuer":"` + issuerURL + `","jwks_uri":"http://issuer.example.org/keys"}`), "jwks_uri"},
		"keys in a file":         {metadata(`{"issuer":"` + issuerURL + `","jwks_uri":"file:///etc/passwd"}`), "jwks_uri"},
		"no keys":                {metadata(`{"issuer":"` + issuerURL + `"}`), "jwks_uri"},
		"no JSON":                {metadata(`<html>` + strings.Repeat("x", 1<<19)), "decode"},
		"endless metadata":       {metadata(strings.Repeat(" ", 1<<20+1)), "too large"},
		"endless keys":           {keys(strings.Repeat(" ", 1<<20+1)), "too large"},
		"keys no JSON":           {keys("<html>"), "want a JSON Web Key Set"},
		"empty set":              {keys(`{"keys":[]}`), "none of the 0 keys"},
		"too many keys":          {keys(`{"keys":[` + strings.Repeat("{},", 100) + `{}]}`), "has 101 keys"},
		"symmetric key":          {keys(string(secret)), "none of the 1 keys"},
		"private key":            {keys(string(private)), "none of the 1 keys"},
		"key for encryption":     {keys(strings.Replace(string(publicSet(t, "p256")), "{\"kty\"", "{\"use\":\"enc\",\"kty\"", 1)), "none of the 1 keys"},
		"key for other":          {keys(strings.Replace(string(publicSet(t, "p256")), "{\"kty\"", "{\"alg\":\"HS256\",\"kty\"", 1)), "none of the 1 keys"},
		"short RSA key":          {keys(`{"keys":[{"kty":"RSA","kid":"p256","e":"AQAB","n":"` + encode("\x80"+strings.Repeat("a", 127)) + `"}]}`), "none of the 1 keys"},
		"RSA key of 16,384 bits": {keys(`{"keys":[{"kty":"RSA","kid":"p256","e":"AQAB","n":"` + encode("\x80"+strings.Repeat("a", 2047)) + `"}]}`), "none of the 1 keys"},
		"point not on the curve": {keys(`{"keys":[{"kty":"EC","crv":"P-256","kid":"p256","x":"` + encode(strings.Repeat("a", 32)) + `","y":"` + encode(strings.Repeat("a", 32)) + `"}]}`), "none of the 1 keys"},
		"redirect": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(http.StatusFound)
			return true
		}, "redirects"},
		"panic": {func(http.ResponseWriter, *http.Request) bool { panic("in the transport") }, "in the transport"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				issuer := newIssuer(t, "p256")
				issuer.set(func(i *testIssuer) { i.intercept = c.answer })
				r := startRemote(t, issuer, byDiscovery)
				require.Equal(t, identity.KeysUnavailable, r.check(t, good(t, nil)))
				require.Len(t, r.reported(), 1)
				require.ErrorContains(t, r.reported()[0], c.want)
				require.Less(t, len(r.reported()[0].Error()), 600)

				issuer.set(func(i *testIssuer) { i.intercept = nil })
				pass(t, 10*time.Second)
				require.Empty(t, r.check(t, good(t, nil)), "it recovers")
			})
		})
	}
}

func TestUsableKeysAmongOthers(t *testing.T) {
	set := strings.Replace(string(publicSet(t, "p256")), `{"keys":[`,
		`{"keys":[{"kty":"oct","k":"AAAA","kid":"p256"},{"kty":"new"},{"kty":"OKP","crv":"Ed448","x":"AAAA"},7,null,`, 1)
	config := fileConfig(t)
	config.Issuers[0].JWKSFile = writeFile(t, []byte(set))
	_, err := newVerifier(t, config).Authenticate(t.Context(), identity.Credentials{Token: good(t, nil)})
	require.NoError(t, err)
}

func TestKeyFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, publicSet(t, "p256"))
		r := startRemote(t, newIssuer(t), func(i *jwt.Issuer) { i.JWKSFile = path })
		next := sign(t, jose.ES256, "next", claims(nil), nil)
		require.Empty(t, r.check(t, good(t, nil)))
		require.Equal(t, identity.TokenSignature, r.check(t, next))

		for _, step := range []struct {
			text     []byte
			old, new identity.Reason
			reports  int
		}{
			{publicSet(t, "p256", "next"), "", "", 0},
			{[]byte("{"), "", "", 1},
			{[]byte("{"), "", "", 1},
			{[]byte(`{"keys":[]}`), "", "", 2},
			{publicSet(t, "next"), identity.TokenSignature, "", 2},
		} {
			require.NoError(t, os.WriteFile(path, step.text, 0o600))
			pass(t, 5*time.Second)
			require.Equal(t, step.old, r.check(t, good(t, nil)))
			require.Equal(t, step.new, r.check(t, next))
			require.Len(t, r.reported(), step.reports)
		}
	})
	config := fileConfig(t)
	config.Issuers[0].JWKSFile = writeFile(t, []byte("{"))
	_, err := jwt.New(jwt.Options{Config: config})
	wrong, ok := errors.AsType[*file.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, config.Issuers[0].JWKSFile, wrong.File)
}

func TestWrongConfigsAreRefusedWithTheLine(t *testing.T) {
	const text = `issuers:
- issuer: https://issuer.example.org
  audiences: [graphd]
  algorithms: [RS256, EdDSA]
  skew: 45s
  claims:
    name: email
    groups: realm_access.groups
`
	config, err := jwt.Parse("auth.yaml", []byte(text))
	require.NoError(t, err)
	require.Equal(t, jwt.Config{Issuers: []jwt.Issuer{{
		Issuer: issuerURL, Audiences: []string{"graphd"}, Algorithms: []string{"RS256", "EdDSA"}, Skew: 45 * time.Second,
		Claims: jwt.Claims{Name: "email", Groups: "realm_access.groups"},
	}}}, config)
	for name, c := range map[string]struct{ old, with, want string }{
		"unknown field":         {"skew", "leeway", "auth.yaml:5: leeway is an unknown field"},
		"unknown claim":         {"groups:", "group:", "auth.yaml:8: group is an unknown field"},
		"no issuer":             {"issuer: https://issuer.example.org", "issuer: \"\"", "auth.yaml:2: issuers[0].issuer is missing"},
		"issuer without TLS":    {"https://issuer", "http://issuer", "auth.yaml:2: issuers[0].issuer can't be used for discovery"},
		"issuer no URL":         {"https://issuer.example.org", "corp", "auth.yaml:2: issuers[0].issuer can't be used"},
		"issuer with a query":   {"example.org", "example.org?a=b", "auth.yaml:2: issuers[0].issuer can't be used"},
		"no audience":           {"[graphd]", "[]", "auth.yaml:3: issuers[0].audiences has 0 audiences: want 1 to 100"},
		"empty audience":        {"[graphd]", "[graphd, \"\"]", "auth.yaml:3: issuers[0].audiences[1] is empty"},
		"none":                  {"EdDSA", "none", "auth.yaml:4: issuers[0].algorithms[1] is not an accepted algorithm: want RS256"},
		"HS256":                 {"RS256", "HS256", "auth.yaml:4: issuers[0].algorithms[0] is not an accepted algorithm"},
		"long skew":             {"45s", "61s", "auth.yaml:5: issuers[0].skew is 1m1s: want 0s to 1m0s"},
		"negative skew":         {"45s", "-1s", "auth.yaml:5: issuers[0].skew is -1s"},
		"skew without unit":     {"45s", "soon", "auth.yaml:5: issuers[0].skew has the wrong type: want a duration like 30s"},
		"wrong path":            {"realm_access.groups", "realm_access..groups", "auth.yaml:8: issuers[0].claims.groups is not the path of a claim"},
		"URL without TLS":       {"skew: 45s", "jwks_url: http://example.org/keys", "auth.yaml:5: issuers[0].jwks_url is not a safe URL"},
		"URL of a metadata IP":  {"skew: 45s", "jwks_url: http://169.254.169.254/keys", "auth.yaml:5: issuers[0].jwks_url is not a safe URL"},
		"URL with a user":       {"skew: 45s", "jwks_url: https://u:p@example.org/keys", "auth.yaml:5: issuers[0].jwks_url is not a safe URL"},
		"file and URL":          {"skew: 45s", "jwks_file: a\n  jwks_url: https://example.org/keys", "auth.yaml:6: issuers[0].jwks_url stands beside jwks_file"},
		"prefix of two lines":   {"skew: 45s", `name_prefix: "a\nb"`, "auth.yaml:5: issuers[0].name_prefix is not a name"},
		"tenant of two lines":   {"skew: 45s", `tenant: "a\nb"`, "auth.yaml:5: issuers[0].tenant is not a name"},
		"an issuer of two kind": {"issuers:\n", "issuers:\n- {issuer: https://issuer.example.org, audiences: [x]}\n", "auth.yaml:3: issuers[1].issuer is listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, text, c.old)
			_, err := jwt.Parse("auth.yaml", []byte(strings.Replace(text, c.old, c.with, 1)))
			require.ErrorContains(t, err, c.want)
			_, ok := errors.AsType[*file.Error](err)
			require.True(t, ok)
			require.NotContains(t, err.Error(), "u:p@")
		})
	}
	for name, with := range map[string]string{
		"loopback":         "issuer: http://127.0.0.1:8080/realm",
		"any with file":    "issuer: corp\n  jwks_file: keys.json",
		"any with a URL":   "issuer: corp\n  jwks_url: https://example.org/keys",
		"loopback by name": "issuer: http://localhost:8080",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := jwt.Parse("auth.yaml", []byte(strings.Replace(text, "issuer: https://issuer.example.org", with, 1)))
			require.NoError(t, err)
		})
	}
}
