package jwt_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

func alice() identity.Principal {
	return identity.Principal{
		Name: "alice", Groups: []string{"ops"}, Tenant: "acme", Tenants: []string{"acme"}, Roles: []string{"viewer"}, How: identity.HowJWT,
	}
}

func TestGoodTokens(t *testing.T) {
	v := newVerifier(t, fileConfig(t))
	seconds := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, token := range map[string]string{
		"RS256":                sign(t, jose.RS256, "rsa", claims(nil), nil),
		"RS512":                sign(t, jose.RS512, "rsa", claims(nil), nil),
		"PS384":                sign(t, jose.PS384, "rsa", claims(nil), nil),
		"ES256":                sign(t, jose.ES256, "p256", claims(nil), nil),
		"ES384":                sign(t, jose.ES384, "p384", claims(nil), nil),
		"ES512":                sign(t, jose.ES512, "p521", claims(nil), nil),
		"EdDSA":                sign(t, jose.EdDSA, "ed", claims(nil), nil),
		"without kid":          sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"kid": nil}),
		"odd typ and cty":      sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"typ": "JWE", "cty": "text/html"}),
		"jku and x5u":          sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"jku": "https://evil.example", "x5u": "https://evil.example"}),
		"several audiences":    good(t, map[string]any{"aud": []string{"x", "other"}}),
		"groups as a text":     good(t, map[string]any{"groups": "ops"}),
		"within skew, expired": good(t, map[string]any{"exp": seconds(-29 * time.Second)}),
		"within skew, nbf":     good(t, map[string]any{"nbf": seconds(30 * time.Second), "iat": seconds(30 * time.Second)}),
		"fraction of a second": good(t, map[string]any{"exp": float64(seconds(time.Second)) + 0.5}),
		"without nbf and iat":  good(t, map[string]any{"nbf": nil, "iat": nil}),
		"with a number of 100 digits": sign(t, jose.ES256, "p256",
			strings.Replace(claims(nil), `{`, `{"n":`+strings.Repeat("9", 100)+`,`, 1), nil),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
			require.NoError(t, err)
			require.Equal(t, alice(), p)
		})
	}
}

func TestClaimsNamePrincipals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*jwt.Issuer)
		claims map[string]any
		want   identity.Principal
	}{
		"only a name": {
			func(i *jwt.Issuer) { i.Claims = jwt.Claims{} }, nil, identity.Principal{Name: "alice", How: identity.HowJWT},
		},
		"another claim, prefixes": {
			func(i *jwt.Issuer) {
				i.Claims, i.NamePrefix, i.GroupPrefix = jwt.Claims{Name: "email", Groups: "groups"}, "corp:", "corp/"
			},
			map[string]any{"email": "a@b"},
			identity.Principal{Name: "corp:a@b", Groups: []string{"corp/ops"}, How: identity.HowJWT},
		},
		"names with dots": {
			func(i *jwt.Issuer) { i.Claims = jwt.Claims{Groups: `https://example\.org/x.groups`} },
			map[string]any{"https://example.org/x": map[string]any{"groups": []string{"g"}}},
			identity.Principal{Name: "alice", Groups: []string{"g"}, How: identity.HowJWT},
		},
		"tenants, the first is the default": {
			func(i *jwt.Issuer) { i.Claims = jwt.Claims{Tenants: "orgs"} },
			map[string]any{"orgs": []string{"b", "a"}},
			identity.Principal{Name: "alice", Tenant: "b", Tenants: []string{"b", "a"}, How: identity.HowJWT},
		},
		"tenant and tenants": {
			func(i *jwt.Issuer) { i.Claims = jwt.Claims{Tenant: "org", Tenants: "orgs"} },
			map[string]any{"orgs": []string{"b", "acme"}},
			identity.Principal{Name: "alice", Tenant: "acme", Tenants: []string{"b", "acme"}, How: identity.HowJWT},
		},
		"the tenant of the issuer": {
			func(i *jwt.Issuer) { i.Claims, i.Tenant = jwt.Claims{Tenant: "org"}, "home" },
			map[string]any{"org": nil},
			identity.Principal{Name: "alice", Tenant: "home", Tenants: []string{"home"}, How: identity.HowJWT},
		},
		"no groups, no roles": {
			func(*jwt.Issuer) {},
			map[string]any{"groups": nil, "realm_access": map[string]any{}},
			identity.Principal{Name: "alice", Tenant: "acme", Tenants: []string{"acme"}, How: identity.HowJWT},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := fileConfig(t)
			c.change(&config.Issuers[0])
			p, err := newVerifier(t, config).Authenticate(t.Context(), identity.Credentials{Token: good(t, c.claims)})
			require.NoError(t, err)
			require.Equal(t, c.want, p)
		})
	}
}

// caseVariants lists all spellings of a word in small and capital letters.
func caseVariants(word string) []string {
	all := []string{""}
	for _, c := range word {
		var longer []string
		for _, begin := range all {
			longer = append(longer, begin+strings.ToLower(string(c)))
			if strings.ToUpper(string(c)) != strings.ToLower(string(c)) {
				longer = append(longer, begin+strings.ToUpper(string(c)))
			}
		}
		all = longer
	}
	return all
}

// confuse signs with HMAC, with a public key as the secret.
func confuse(algorithm string, secret []byte) string {
	text := encode(`{"alg":"`+algorithm+`","kid":"rsa"}`) + "." + encode(claims(nil))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + encode(string(mac.Sum(nil)))
}

// resign signs a header and claims as they are, also when they are no JSON.
func resign(t testing.TB, header, body string) string {
	t.Helper()
	signature := strings.Split(good(t, nil), ".")[2]
	return encode(header) + "." + encode(body) + "." + signature
}

type refusedToken struct {
	token string
	want  identity.Reason
	field string
}

func hostileTokens(t testing.TB) map[string]refusedToken {
	t.Helper()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	parts := strings.Split(good(t, nil), ".")
	withClaims := func(old, with string) string {
		text := claims(nil)
		require.Contains(t, text, old)
		return sign(t, jose.ES256, "p256", strings.Replace(text, old, with, 1), nil)
	}
	withTime := func(name, value string) string {
		return sign(t, jose.ES256, "p256", strings.Replace(claims(map[string]any{name: nil}), "{", `{"`+name+`":`+value+",", 1), nil)
	}
	attackers := func(header map[jose.HeaderKey]any) string {
		header["kid"] = "p256"
		return sign(t, jose.ES256, "attacker", claims(nil), header)
	}
	deep := strings.Repeat("[", 10_000)
	all := map[string]refusedToken{
		"nothing":         {"", identity.NoCredentials, ""},
		"expired":         {good(t, map[string]any{"exp": at(-30 * time.Second)}), identity.TokenExpired, ""},
		"expired in 1970": {good(t, map[string]any{"exp": 0}), identity.TokenExpired, ""},
		"not yet valid":   {good(t, map[string]any{"nbf": at(31 * time.Second)}), identity.TokenNotYetValid, ""},
		"issued tomorrow": {good(t, map[string]any{"iat": at(24 * time.Hour)}), identity.TokenNotYetValid, ""},
		"no exp":          {good(t, map[string]any{"exp": nil}), identity.TokenClaim, "exp"},
		"exp null":        {withTime("exp", "null"), identity.TokenClaim, "exp"},
		"exp as text":     {withTime("exp", `"9999999999"`), identity.TokenClaim, "exp"},
		"exp as list":     {withTime("exp", `[9999999999]`), identity.TokenClaim, "exp"},
		"exp 1e400":       {withTime("exp", "1e400"), identity.TokenClaim, "exp"},
		"exp 1e300":       {withTime("exp", "1e300"), identity.TokenClaim, "exp"},
		"exp negative":    {withTime("exp", "-1"), identity.TokenClaim, "exp"},
		"exp of digits":   {withTime("exp", strings.Repeat("9", 5000)), identity.TokenClaim, "exp"},
		"nbf as text":     {withTime("nbf", `"0"`), identity.TokenClaim, "nbf"},
		"nbf null":        {withTime("nbf", `null`), identity.TokenClaim, "nbf"},
		"iat 1e999":       {withTime("iat", "1e999"), identity.TokenClaim, "iat"},

		"another audience":    {good(t, map[string]any{"aud": "graphd2"}), identity.TokenAudience, ""},
		"other audiences":     {good(t, map[string]any{"aud": []string{"a", "graphd "}}), identity.TokenAudience, ""},
		"no audience":         {good(t, map[string]any{"aud": nil}), identity.TokenAudience, ""},
		"empty audiences":     {good(t, map[string]any{"aud": []string{}}), identity.TokenAudience, ""},
		"audience a number":   {good(t, map[string]any{"aud": 1}), identity.TokenAudience, ""},
		"an audience a list":  {good(t, map[string]any{"aud": []any{"graphd", []string{}}}), identity.TokenAudience, ""},
		"audience in capital": {good(t, map[string]any{"aud": "GRAPHD"}), identity.TokenAudience, ""},
		"another issuer":      {good(t, map[string]any{"iss": "https://evil.example"}), identity.TokenIssuer, ""},
		"issuer with a slash": {good(t, map[string]any{"iss": issuerURL + "/"}), identity.TokenIssuer, ""},
		"no issuer":           {good(t, map[string]any{"iss": nil}), identity.TokenIssuer, ""},
		"issuer a list":       {good(t, map[string]any{"iss": []string{issuerURL}}), identity.TokenIssuer, ""},

		"another key":          {attackers(map[jose.HeaderKey]any{}), identity.TokenSignature, ""},
		"unknown kid":          {sign(t, jose.ES256, "attacker", claims(nil), nil), identity.TokenSignature, ""},
		"another key, no kid":  {sign(t, jose.ES256, "attacker", claims(nil), map[jose.HeaderKey]any{"kid": nil}), identity.TokenSignature, ""},
		"kid of a path":        {sign(t, jose.ES256, "attacker", claims(nil), map[jose.HeaderKey]any{"kid": "../../dev/null"}), identity.TokenSignature, ""},
		"kid of another type":  {sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"kid": "rsa"}), identity.TokenSignature, ""},
		"embedded x5u and jku": {attackers(map[jose.HeaderKey]any{"x5u": "https://evil.example", "jku": "https://evil.example"}), identity.TokenSignature, ""},
		"embedded jwk": {
			attackers(map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: testKeys()["attacker"].Public()}}), identity.TokenSignature, "",
		},
		"no signature":      {parts[0] + "." + parts[1] + ".", identity.TokenMalformed, "signature"},
		"claims exchanged":  {parts[0] + "." + encode(claims(map[string]any{"sub": "root"})) + "." + parts[2], identity.TokenSignature, ""},
		"header exchanged":  {encode(`{"alg":"ES256","kid":"p256","typ":"x"}`) + "." + parts[1] + "." + parts[2], identity.TokenSignature, ""},
		"zeros as ES256":    {parts[0] + "." + parts[1] + "." + encode(strings.Repeat("\x00", 64)), identity.TokenSignature, ""},
		"short as ES256":    {parts[0] + "." + parts[1] + "." + encode("\x00"), identity.TokenSignature, ""},
		"ES256 for P-384":   {resign(t, `{"alg":"ES256","kid":"p384"}`, claims(nil)), identity.TokenSignature, ""},
		"critical header":   {resign(t, `{"alg":"ES256","kid":"p256","crit":["b64"],"b64":false}`, claims(nil)), identity.TokenMalformed, "crit"},
		"kid a number":      {resign(t, `{"alg":"ES256","kid":1}`, claims(nil)), identity.TokenMalformed, "kid"},
		"kid of 300 bytes":  {resign(t, `{"alg":"ES256","kid":"`+strings.Repeat("k", 300)+`"}`, claims(nil)), identity.TokenMalformed, "kid"},
		"no alg":            {resign(t, `{"kid":"p256"}`, claims(nil)), identity.TokenMalformed, "alg"},
		"ALG for alg":       {resign(t, `{"ALG":"ES256"}`, claims(nil)), identity.TokenMalformed, "alg"},
		"alg a list":        {resign(t, `{"alg":["ES256"]}`, claims(nil)), identity.TokenMalformed, "alg"},
		"alg twice":         {resign(t, `{"alg":"none","alg":"ES256","kid":"p256"}`, claims(nil)), identity.TokenMalformed, "header"},
		"alg twice escaped": {resign(t, `{"\u0061lg":"none","alg":"ES256","kid":"p256"}`, claims(nil)), identity.TokenMalformed, "header"},
		"header a list":     {resign(t, `[]`, claims(nil)), identity.TokenMalformed, "header"},
		"header no JSON":    {resign(t, `{"alg":"ES256"`, claims(nil)), identity.TokenMalformed, "header"},
		"header and more":   {resign(t, `{"alg":"ES256"}{}`, claims(nil)), identity.TokenMalformed, "header"},
		"claims a list":     {sign(t, jose.ES256, "p256", "["+claims(nil)+"]", nil), identity.TokenMalformed, "claims"},
		"claims empty":      {parts[0] + ".." + parts[2], identity.TokenMalformed, "claims"},
		"claims no UTF-8":   {withClaims("alice", "\xff"), identity.TokenMalformed, "claims"},
		"sub twice":         {withClaims("{", `{"sub":"root",`), identity.TokenMalformed, "claims"},
		"sub twice escaped": {withClaims("{", `{"s\u0075b":"root",`), identity.TokenMalformed, "claims"},
		"nested twice":      {withClaims(`{"roles":`, `{"roles":["admin"],"roles":`), identity.TokenMalformed, "claims"},
		"claims deep":       {parts[0] + "." + encode(deep) + "." + parts[2], identity.TokenMalformed, "claims"},
		"a claim deep":      {withClaims("{", `{"x":`+strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000)+","), identity.TokenMalformed, "claims"},
		"header deep":       {encode(deep) + "." + parts[1] + "." + parts[2], identity.TokenMalformed, "header"},

		"100 kB":           {good(t, map[string]any{"x": strings.Repeat("x", 75_000)}), identity.TokenTooLarge, ""},
		"100 kB of dots":   {strings.Repeat(".", 100_000), identity.TokenTooLarge, ""},
		"a byte too many":  {strings.Repeat("e", identity.MaxTokenBytes+1), identity.TokenTooLarge, ""},
		"16 kB of nothing": {strings.Repeat("e", identity.MaxTokenBytes), identity.TokenMalformed, ""},
		"two parts":        {parts[0] + "." + parts[1], identity.TokenMalformed, ""},
		"four parts":       {good(t, nil) + ".", identity.TokenMalformed, ""},
		"five parts":       {parts[0] + "." + parts[0] + "." + parts[0] + "." + parts[0] + "." + parts[0], identity.TokenMalformed, ""},
		"JSON form":        {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, identity.TokenMalformed, ""},
		"padded":           {parts[0] + "." + parts[1] + "." + parts[2] + "==", identity.TokenMalformed, "signature"},
		"break at the end": {good(t, nil) + "\n", identity.TokenMalformed, "signature"},
		"break in claims":  {parts[0] + "." + parts[1][:4] + "\r\n" + parts[1][4:] + "." + parts[2], identity.TokenMalformed, "claims"},
		"space before":     {" " + good(t, nil), identity.TokenMalformed, "header"},
		"standard base64":  {parts[0] + "." + parts[1] + ".++++", identity.TokenMalformed, "signature"},
		"scheme left":      {"Bearer " + good(t, nil), identity.TokenMalformed, "header"},

		"no name":           {good(t, map[string]any{"sub": nil}), identity.TokenClaim, "sub"},
		"empty name":        {good(t, map[string]any{"sub": ""}), identity.TokenClaim, "sub"},
		"name a number":     {good(t, map[string]any{"sub": 1}), identity.TokenClaim, "sub"},
		"long name":         {good(t, map[string]any{"sub": strings.Repeat("a", 257)}), identity.TokenClaim, "sub"},
		"name of two lines": {good(t, map[string]any{"sub": "alice\nroot"}), identity.TokenClaim, "sub"},
		"half a surrogate":  {withClaims("alice", `\ud800`), identity.TokenClaim, "sub"},
		"groups of numbers": {good(t, map[string]any{"groups": []int{1}}), identity.TokenClaim, "groups"},
		"groups an object":  {good(t, map[string]any{"groups": map[string]string{}}), identity.TokenClaim, "groups"},
		"too many groups":   {good(t, map[string]any{"groups": slices.Repeat([]string{"g"}, 257)}), identity.TokenClaim, "groups"},
		"long group":        {good(t, map[string]any{"groups": []string{strings.Repeat("g", 257)}}), identity.TokenClaim, "groups"},
		"roles a number":    {good(t, map[string]any{"realm_access": map[string]any{"roles": 1}}), identity.TokenClaim, "realm_access.roles"},
		"no tenant":         {good(t, map[string]any{"org": nil}), identity.TokenClaim, "org"},
		"tenant a list":     {good(t, map[string]any{"org": []string{"acme", "b"}}), identity.TokenClaim, "org"},
		"wrong tenant":      {good(t, map[string]any{"org": "a@b"}), identity.TokenClaim, "org"},
		"long tenant":       {good(t, map[string]any{"org": strings.Repeat("t", 257)}), identity.TokenClaim, "org"},
	}
	for _, none := range caseVariants("none") {
		for name, signature := range map[string]string{"empty": "", "other": parts[2]} {
			all[none+", signature "+name] = refusedToken{
				encode(`{"alg":"`+none+`"}`) + "." + parts[1] + "." + signature, identity.TokenAlgorithm, "",
			}
		}
	}
	for _, algorithm := range []string{"nonе", "none ", "", "es256", "ES256K", "RSA1_5", "ML-DSA-44", "EdDSA\u0000"} {
		header, err := json.Marshal(map[string]string{"alg": algorithm})
		require.NoError(t, err)
		all["alg "+algorithm] = refusedToken{resign(t, string(header), claims(nil)), identity.TokenAlgorithm, ""}
	}
	der, err := x509.MarshalPKIXPublicKey(testKeys()["rsa"].Public())
	require.NoError(t, err)
	for form, secret := range map[string][]byte{
		"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWKS": publicSet(t, "rsa"),
	} {
		for _, algorithm := range append(caseVariants("hs256"), "HS384", "HS512") {
			all[algorithm+" with "+form] = refusedToken{confuse(algorithm, secret), identity.TokenAlgorithm, ""}
		}
	}
	return all
}

func TestHostileTokensAreRefused(t *testing.T) {
	v := newVerifier(t, fileConfig(t))
	for name, c := range hostileTokens(t) {
		t.Run(name, func(t *testing.T) {
			p, err := v.Authenticate(t.Context(), identity.Credentials{Token: c.token})
			refused, ok := errors.AsType[*identity.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, identity.Error{Reason: c.want, Field: c.field}, *refused)
			require.Zero(t, p)
			require.NotContains(t, err.Error(), "alice")
			for part := range strings.SplitSeq(c.token, ".") {
				if len(part) > 8 {
					require.NotContains(t, err.Error(), part)
				}
			}
		})
	}
}

func TestIssuersAcceptOnlyTheirAlgorithms(t *testing.T) {
	config := fileConfig(t)
	config.Issuers[0].Algorithms = []string{"ES384"}
	v := newVerifier(t, config)
	_, err := v.Authenticate(t.Context(), identity.Credentials{Token: good(t, nil)})
	require.Equal(t, &identity.Error{Reason: identity.TokenAlgorithm}, err)
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: sign(t, jose.ES384, "p384", claims(nil), nil)})
	require.NoError(t, err)
}

// An issuer's keys are of no use for the tokens of another one.
func TestIssuersSignOnlyTheirTokens(t *testing.T) {
	config, second := fileConfig(t), fileConfig(t).Issuers[0]
	second.Issuer = "https://second.example.org"
	second.JWKSFile = writeFile(t, publicSet(t, "attacker"))
	config.Issuers = append(config.Issuers, second)
	v := newVerifier(t, config)
	_, err := v.Authenticate(t.Context(), identity.Credentials{Token: sign(t, jose.ES256, "attacker", claims(nil), nil)})
	require.Equal(t, &identity.Error{Reason: identity.TokenSignature}, err)
	own := sign(t, jose.ES256, "attacker", claims(map[string]any{"iss": second.Issuer}), nil)
	_, err = v.Authenticate(t.Context(), identity.Credentials{Token: own})
	require.NoError(t, err)
}

// A token that is cut or changed anywhere is no token.
func TestEachByteCounts(t *testing.T) {
	v := newVerifier(t, fileConfig(t))
	token := good(t, nil)
	for n := range token {
		changed := []byte(token)
		changed[n] ^= 1
		for _, given := range []string{token[:n], token[:n] + token[n+1:], string(changed)} {
			p, err := v.Authenticate(t.Context(), identity.Credentials{Token: given})
			_, ok := errors.AsType[*identity.Error](err)
			require.True(t, ok, "byte %d: %v", n, err)
			require.Zero(t, p)
		}
	}
}

func FuzzTokens(f *testing.F) {
	v := newVerifier(f, fileConfig(f))
	token := good(f, nil)
	f.Add(token)
	for _, c := range hostileTokens(f) {
		f.Add(c.token)
	}
	f.Fuzz(func(t *testing.T, given string) {
		p, err := v.Authenticate(t.Context(), identity.Credentials{Token: given})
		if given == token {
			require.NoError(t, err)
			return
		}
		refused, ok := errors.AsType[*identity.Error](err)
		require.True(t, ok, "%v", err)
		require.NotEmpty(t, refused.Reason)
		require.Zero(t, p)
	})
}
