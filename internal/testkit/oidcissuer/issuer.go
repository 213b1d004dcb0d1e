// Package oidcissuer is an issuer of OpenID Connect for tests: discovery, the page at which a
// person signs in, the exchange of codes with PKCE, and keys. Its person signs in at once.
package oidcissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// The client of the issuer.
const (
	Client = "graphd-page"
	Secret = "a secret of the client"
)

// Issuer is an issuer that runs.
type Issuer struct {
	URL string
	// HTTP makes requests to the issuer, whose certificate it knows.
	HTTP *http.Client

	now func() time.Time
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any // of the ID tokens
	refuse bool           // the person does not sign in
	status int            // of the answers of the exchange, 0 = as they come
	codes  map[string]url.Values
	used   int
}

// Start starts an issuer with TLS, or in plain text, whose person is ana of the group officers.
func Start(t testing.TB, withTLS bool, now func() time.Time) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i := &Issuer{now: now, key: key, codes: map[string]url.Values{}}
	i.SetClaims(nil)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.serveMetadata)
	mux.HandleFunc("GET /authorize", i.serveAuthorize)
	mux.HandleFunc("POST /token", i.serveToken)
	mux.HandleFunc("GET /keys", i.serveKeys)
	server := httptest.NewUnstartedServer(mux)
	if withTLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	i.URL, i.HTTP = server.URL, server.Client()
	return i
}

// SetClaims changes the claims of the ID tokens from those of ana; nil removes one.
func (i *Issuer) SetClaims(changes map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claims = map[string]any{"sub": "u1", "email": "ana@example.org", "groups": []string{"officers"}, "sid": "s1"}
	maps.Copy(i.claims, changes)
}

// Refuse makes the issuer refuse people, or not.
func (i *Issuer) Refuse(isRefused bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refuse = isRefused
}

// FailExchanges makes exchanges fail with a status, 0 = not.
func (i *Issuer) FailExchanges(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status = status
}

// CountExchanges returns how many codes clients have tried.
func (i *Issuer) CountExchanges() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.used
}

func (i *Issuer) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (i *Issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k1"}}})
}

// serveAuthorize sends the person back at once.
func (i *Issuer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := r.URL.Query()
	if asked.Get("client_id") != Client || asked.Get("response_type") != "code" || asked.Get("code_challenge_method") != "S256" {
		http.Error(w, "not the client, or no PKCE", http.StatusBadRequest)
		return
	}
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil {
		http.Error(w, "no redirect_uri", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {asked.Get("state")}, "iss": {i.URL}}
	if i.refuse {
		answer.Set("error", "access_denied")
	} else {
		code := rand.Text()
		i.codes[code] = asked
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// serveToken exchanges a code, once.
func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.used++
	id, secret, _ := r.BasicAuth()
	unescaped, err := url.QueryUnescape(secret)
	asked := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case i.status != 0:
		writeJSON(w, i.status, map[string]string{"error": "server_error", "error_description": "with " + r.FormValue("code")})
		return
	case err != nil || id != Client || unescaped != Secret:
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.FormValue("redirect_uri"):
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": i.URL, "aud": Client, "nonce": asked.Get("nonce"), "iat": i.now().Unix(), "exp": i.now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, i.claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	token, err := i.Sign(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": token})
}

// Sign makes a token of claims.
func (i *Issuer) Sign(claims map[string]any) (string, error) {
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
