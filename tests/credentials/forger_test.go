package credentials_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// forger makes credentials, good ones and wrong ones. It has what an attacker may have:
// the public keys, and tokens, keys and certificates that were valid for something else.
type forger struct {
	random  *rand.Rand
	ca      authority // whose certificates the server accepts
	otherCA authority // with the same name
	keys    map[string]crypto.Signer
	keyFile string // of API keys
	apiKeys map[string]string
	forged  int // names that were made up
}

// forgedName begins the names in wrong credentials. Nothing of graphd may show it.
const forgedName = "mallory"

func newForger(t testing.TB, seed uint64) *forger {
	t.Helper()
	f := &forger{
		random: rand.New(rand.NewPCG(seed, seed)), ca: newAuthority(t, "clients"), otherCA: newAuthority(t, "clients"),
		keys: make(map[string]crypto.Signer),
	}
	for _, id := range []string{"main", "attacker"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
		require.NoError(t, err)
		f.keys[id] = key
	}
	key, err := rsa.GenerateKey(cryptorand.Reader, 2048)
	require.NoError(t, err)
	f.keys["rsa"] = key
	f.writeAPIKeys(t)
	return f
}

// publicKeys returns the JWKS of the issuer.
func (f *forger) publicKeys() string {
	var set jose.JSONWebKeySet
	for _, id := range []string{"main", "rsa"} {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: f.keys[id].Public(), KeyID: id})
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// writeAPIKeys makes keys, of which one is good.
func (f *forger) writeAPIKeys(t testing.TB) {
	t.Helper()
	f.apiKeys = make(map[string]string)
	text := "keys:\n"
	for id, more := range map[string]string{
		"goodgoodgood": "", "revokedrevoked": ", revoked: 2026-01-02T00:00:00Z", "expiredexpired": ", expires: 2026-01-02T00:00:00Z",
	} {
		secret := base64.RawURLEncoding.EncodeToString(f.randomBytes(32))
		f.apiKeys[id] = "gk_" + id + "_" + secret
		sum := sha256.Sum256([]byte(secret))
		text += fmt.Sprintf("- { id: %s, name: %s-key, created: 2026-01-01T00:00:00Z, hash: \"sha256:%s\"%s }\n", id, id, hex.EncodeToString(sum[:]), more)
	}
	f.keyFile = filepath.Join(t.TempDir(), "keys.yaml")
	require.NoError(t, os.WriteFile(f.keyFile, []byte(text), 0o600))
}

func (f *forger) randomBytes(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(f.random.Uint32())
	}
	return all
}

func (f *forger) randomText(n int) string {
	return base64.RawURLEncoding.EncodeToString(f.randomBytes(n))[:n]
}

// between returns a duration that is drawn anew by each call.
func (f *forger) between(least, most time.Duration) time.Duration {
	return least + time.Duration(f.random.Int64N(int64(most-least)))
}

// makeName returns a name that no other credential has.
func (f *forger) makeName() string {
	f.forged++
	return fmt.Sprintf("%s-%d-%s", forgedName, f.forged, f.randomText(8))
}

// pick draws one of some values.
func pick[T any](f *forger, values ...T) T { return values[f.random.IntN(len(values))] }

// claims are those of a good token with a made-up name, with changes. A nil value
// removes a claim.
func (f *forger) claims(changes map[string]any) string {
	now := time.Now()
	all := map[string]any{
		"iss": tokenIssuer, "aud": tokenAudience, "sub": f.makeName(), "jti": f.randomText(16), "exp": now.Add(time.Hour).Unix(),
		"nbf": now.Add(-time.Minute).Unix(), "iat": now.Add(-time.Minute).Unix(), "groups": []string{"ops"}, "org": "acme",
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// sign signs a text with a key of the forger, whose id is also its kid unless header has
// one.
func (f *forger) sign(key, text string, header map[jose.HeaderKey]any) string {
	opts := &jose.SignerOptions{}
	if _, ok := header["kid"]; !ok {
		opts.WithHeader("kid", key)
	}
	for name, value := range header {
		if value != nil {
			opts.WithHeader(name, value)
		}
	}
	algorithm := jose.ES256
	if key == "rsa" {
		algorithm = jose.RS256
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: f.keys[key]}, opts)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign([]byte(text))
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// makeToken signs claims with a key of the issuer.
func (f *forger) makeToken(changes map[string]any) string {
	return f.sign(pick(f, "main", "rsa"), f.claims(changes), nil)
}

// makeGoodToken returns a token that the server accepts.
func (f *forger) makeGoodToken() string { return f.makeToken(map[string]any{"sub": "ana"}) }

// resign puts the signature of another token after a header and claims.
func (f *forger) resign(header, claims string) string {
	return encode(header) + "." + encode(claims) + "." + encode(string(f.randomBytes(64)))
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	made := authority{template, newKey()}.issue(template)
	return authorityOf(&made)
}

// authorityOf returns who signs with a certificate of this package.
func authorityOf(made *tls.Certificate) authority {
	key, _ := made.PrivateKey.(*ecdsa.PrivateKey) // that of issue
	return authority{made.Leaf, key}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// issue makes a certificate with a key of its own, or with that of the CA for its own
// template.
func (a authority) issue(template *x509.Certificate) tls.Certificate {
	key := newKey()
	if template == a.cert {
		key = a.key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	text, err := x509.CreateCertificate(cryptorand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	made := tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
	made.Leaf, _ = x509.ParseCertificate(text) // some can't be parsed
	return made
}

// encode returns the certificate of the CA as PEM.
func (a authority) encode() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// encodePair returns a certificate and its key as PEM.
func (authority) encodePair(t testing.TB, pair tls.Certificate) (cert, key string) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// issueServer makes the certificate of the server.
func (f *forger) issueServer() tls.Certificate {
	return f.ca.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	})
}

// clientTemplate is a certificate of a client whose names match no rule, with changes.
func (f *forger) clientTemplate(change func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: f.makeName()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(template)
	}
	return template
}

// issue makes a certificate of the CA that the server accepts.
func (f *forger) issue(change func(*x509.Certificate)) *tls.Certificate {
	made := f.ca.issue(f.clientTemplate(change))
	return &made
}

// issueAlice makes a certificate that a rule names.
func (f *forger) issueAlice() *tls.Certificate {
	return f.issue(func(c *x509.Certificate) { c.Subject.CommonName = "alice" })
}

// clientConfig shows a certificate, nil = none, also one that the server does not ask for.
func (f *forger) clientConfig(shown *tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(f.ca.cert)
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	if shown != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown, nil }
	}
	return config
}
