package jwt_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

const issuerURL = "https://issuer.example.org"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testKeys are made once: RSA keys take long.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	keys := map[string]crypto.Signer{"rsa": rsaKey}
	for id, curve := range map[string]elliptic.Curve{
		"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521(), "attacker": elliptic.P256(), "next": elliptic.P256(),
	} {
		if keys[id], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			panic(err)
		}
	}
	if _, keys["ed"], err = ed25519.GenerateKey(rand.Reader); err != nil {
		panic(err)
	}
	return keys
})

// publicSet returns a JWKS with keys of testKeys.
func publicSet(t testing.TB, ids ...string) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range ids {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: testKeys()[id].Public(), KeyID: id})
	}
	text, err := json.Marshal(set)
	require.NoError(t, err)
	return text
}

// claims are those of a good token, with changes. A nil value removes a claim.
func claims(changes map[string]any) string {
	all := map[string]any{
		"iss": issuerURL, "aud": "graphd", "sub": "alice", "exp": now.Add(time.Hour).Unix(), "nbf": now.Unix(), "iat": now.Unix(),
		"groups": []string{"ops"}, "org": "acme", "realm_access": map[string]any{"roles": []string{"viewer"}},
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// sign makes a token with a key of testKeys, whose id is also its kid unless header
// has one.
func sign(t testing.TB, algorithm jose.SignatureAlgorithm, key, text string, header map[jose.HeaderKey]any) string {
	t.Helper()
	opts := &jose.SignerOptions{}
	if _, ok := header["kid"]; !ok {
		opts.WithHeader("kid", key)
	}
	for name, value := range header {
		if value != nil {
			opts.WithHeader(name, value)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: testKeys()[key]}, opts)
	require.NoError(t, err)
	signed, err := signer.Sign([]byte(text))
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

// good signs claims with a key that the issuer has.
func good(t testing.TB, changes map[string]any) string {
	t.Helper()
	return sign(t, jose.ES256, "p256", claims(changes), nil)
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// fileConfig is an issuer whose keys are in a file.
func fileConfig(t testing.TB) jwt.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, publicSet(t, "rsa", "p256", "p384", "p521", "ed"), 0o600))
	return jwt.Config{Issuers: []jwt.Issuer{{
		Issuer: issuerURL, Audiences: []string{"graphd", "other"}, JWKSFile: path,
		Claims: jwt.Claims{Groups: "groups", Tenant: "org", Roles: "realm_access.roles"},
	}}}
}

func newVerifier(t testing.TB, config jwt.Config) *jwt.Verifier {
	t.Helper()
	require.Empty(t, config.Problems())
	v, err := jwt.New(jwt.Options{Config: config, Now: func() time.Time { return now }, Report: func(error) {}})
	require.NoError(t, err)
	return v
}

// testIssuer serves discovery and keys, without a network.
type testIssuer struct {
	mu         sync.Mutex
	jwks       []byte
	status     int                                           // of all answers
	intercept  func(http.ResponseWriter, *http.Request) bool // true = answered
	discovered int
	fetched    int
}

func newIssuer(t testing.TB, ids ...string) *testIssuer {
	t.Helper()
	return &testIssuer{jwks: publicSet(t, ids...), status: http.StatusOK}
}

func (i *testIssuer) set(change func(*testIssuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *testIssuer) counts() (discovered, fetched int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.discovered, i.fetched
}

func (i *testIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	jwks, status, intercept := i.jwks, i.status, i.intercept
	isDiscovery := r.URL.Path == "/.well-known/openid-configuration"
	if isDiscovery {
		i.discovered++
	} else {
		i.fetched++
	}
	i.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if !isDiscovery {
		_, _ = w.Write(jwks)
		return
	}
	host := "https://" + r.Host
	_ = json.NewEncoder(w).Encode(map[string]string{"issuer": host, "jwks_uri": host + "/keys"})
}

// RoundTrip answers a request in place.
func (i *testIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	r.Host = r.URL.Host
	i.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}
