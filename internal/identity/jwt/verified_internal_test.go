package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
)

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// signer signs tokens of an issuer.
type signer struct {
	algorithm jose.SignatureAlgorithm
	key       crypto.Signer
}

// newSigningVerifier makes a verifier of tokens that the signer signs.
func newSigningVerifier(t testing.TB, s signer) *Verifier {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: "key"}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	v, err := New(Options{
		Config: Config{Issuers: []Issuer{{Issuer: "corp", Audiences: []string{"graphd"}, JWKSFile: path}}},
		Now:    func() time.Time { return testTime },
	})
	require.NoError(t, err)
	return v
}

func newECSigner(t testing.TB) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return signer{jose.ES256, key}
}

func (s signer) signToken(t testing.TB, name string) string {
	t.Helper()
	maker, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, (&jose.SignerOptions{}).WithHeader("kid", "key"))
	require.NoError(t, err)
	signed, err := maker.Sign(fmt.Appendf(nil, `{"iss":"corp","aud":"graphd","sub":%q,"exp":%d}`, name, testTime.Add(time.Hour).Unix()))
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }

// The signature of a token is verified once, also when it comes again.
func TestVerifiedTokensAreRemembered(t *testing.T) {
	s := newECSigner(t)
	v := newSigningVerifier(t, s)
	token := s.signToken(t, "alice")
	p, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)
	require.Equal(t, "alice", p.Name)
	remembered, _ := v.verified.byUse.Front().Value.(rememberedToken)
	remembered.caller.Name = "marked"
	p, err = v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)
	require.Equal(t, "marked", p.Name)
	require.Len(t, v.verified.byDigest, 1)
}

func TestRefusedTokensAreNotRemembered(t *testing.T) {
	s := newECSigner(t)
	v := newSigningVerifier(t, s)
	token, other := s.signToken(t, "alice"), newECSigner(t).signToken(t, "alice")
	for _, given := range []string{other, token[:len(token)-4] + "AAAA", token + "A", "a.b.c", strings.Repeat("e", identity.MaxTokenBytes+1)} {
		for range 2 {
			_, err := v.Authenticate(t.Context(), identity.Credentials{Token: given})
			require.Error(t, err)
		}
	}
	require.Empty(t, v.verified.byDigest)
	require.Zero(t, v.verified.bytes)
}

// Tokens that end are forgotten when they are used, and the rest by the bound.
func TestTokensThatHaveEndedAreForgotten(t *testing.T) {
	s := newECSigner(t)
	v := newSigningVerifier(t, s)
	token := s.signToken(t, "alice")
	_, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.NoError(t, err)
	require.Positive(t, v.verified.bytes)
	v.now = func() time.Time { return testTime.Add(2 * time.Hour) }
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: token})
	require.Equal(t, &identity.Error{Reason: identity.TokenExpired}, err)
	require.Empty(t, v.verified.byDigest)
	require.Zero(t, v.verified.byUse.Len())
	require.Zero(t, v.verified.bytes)
}

// The bound counts bytes. The tokens that are used stay.
func TestRememberedTokensAreBounded(t *testing.T) {
	by := newSigningVerifier(t, newECSigner(t)).issuers["corp"]
	v := newVerifiedTokens()
	remember := func(name string, groups int) {
		p := identity.Principal{Name: name}
		for n := range groups {
			p.Groups = append(p.Groups, fmt.Sprintf("%0256d", n))
		}
		v.rememberToken(digestOf(name), &verifiedToken{
			caller: p, valid: period{until: testTime.Add(time.Hour)}, issuer: by, keys: by.keys.currentKeys().digest,
		})
		require.LessOrEqual(t, v.bytes, maxVerifiedBytes)
		require.Equal(t, len(v.byDigest), v.byUse.Len())
	}
	isRemembered := func(name string) bool {
		_, ok := v.findCaller(digestOf(name), testTime)
		return ok
	}
	for n := range 100 {
		remember(fmt.Sprint("small ", n), 0)
	}
	for n := range 1000 {
		remember(fmt.Sprint("large ", n), identity.MaxNames)
		require.True(t, isRemembered("small 0"))
	}
	require.False(t, isRemembered("small 1"))
	require.False(t, isRemembered("large 0"))
	require.True(t, isRemembered("large 999"))
	require.Less(t, len(v.byDigest), 200)

	before, size := len(v.byDigest), v.bytes
	remember("large 999", identity.MaxNames) // a call at the same time has verified it, too
	require.Len(t, v.byDigest, before)
	require.Equal(t, size, v.bytes)
}

// Compares a token that is verified with one that is remembered.
func BenchmarkTokens(b *testing.B) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(b, err)
	for _, s := range []signer{newECSigner(b), {jose.RS256, rsaKey}} {
		v := newSigningVerifier(b, s)
		token := s.signToken(b, "alice")
		b.Run(string(s.algorithm)+"/verified", func(b *testing.B) {
			for b.Loop() {
				_, err := v.verifyToken(b.Context(), token)
				require.NoError(b, err)
			}
		})
		b.Run(string(s.algorithm)+"/remembered", func(b *testing.B) {
			for b.Loop() {
				_, err := v.Authenticate(b.Context(), identity.Credentials{Token: token})
				require.NoError(b, err)
			}
		})
	}
}
