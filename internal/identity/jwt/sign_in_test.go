package jwt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

const signInClient = "graphd-page"

// A person who signs in is the principal whom a token with the same claims names, now and when the
// kept claims are read.
func TestSignInsHaveThePrincipalOfTokens(t *testing.T) {
	for name, changes := range map[string]map[string]any{
		"all claims":  {"sid": "s1", "nonce": "n1", "picture": strings.Repeat("p", 1000)},
		"no groups":   {"groups": nil},
		"one role":    {"realm_access": map[string]any{"roles": "viewer", "x": 1}},
		"two tenants": {"aud": []string{signInClient}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t, fileConfig(t))
			want, err := v.Authenticate(t.Context(), identity.Credentials{Token: good(t, merge(changes, "aud", "graphd"))})
			require.NoError(t, err)
			got, err := v.VerifySignIn(t.Context(), good(t, merge(changes, "aud", signInClient)), issuerURL, signInClient)
			require.NoError(t, err)
			require.Equal(t, want, got.Caller)
			require.Equal(t, issuerURL, got.Issuer)
			require.NotContains(t, got.Claims, "ppp")
			kept, err := v.ReadClaims(got.Issuer, got.Claims)
			require.NoError(t, err)
			require.Equal(t, want, kept)
			if name == "all claims" {
				require.Equal(t, "s1 n1", got.Session+" "+got.Nonce)
				require.JSONEq(t, `{"sub":"alice","groups":["ops"],"org":"acme","realm_access.roles":["viewer"]}`, got.Claims)
			}
		})
	}
}

func merge(changes map[string]any, key string, value any) map[string]any {
	all := map[string]any{key: value}
	for name, v := range changes {
		if name != key {
			all[name] = v
		}
	}
	return all
}

func TestSignInsAreChecked(t *testing.T) {
	v := newVerifier(t, fileConfig(t))
	for name, c := range map[string]struct {
		changes map[string]any
		reason  identity.Reason
		field   string
	}{
		"a token of the API": {nil, identity.TokenAudience, ""},
		"no audience":        {map[string]any{"aud": nil}, identity.TokenAudience, ""},
		"another party":      {map[string]any{"aud": signInClient, "azp": "other"}, identity.TokenAudience, "azp"},
		"no party of two":    {map[string]any{"aud": []string{signInClient, "other"}}, identity.TokenAudience, "azp"},
		"expired":            {map[string]any{"aud": signInClient, "exp": now.Add(-jwt.MaxSkew).Unix()}, identity.TokenExpired, ""},
		"a number as sid":    {map[string]any{"aud": signInClient, "sid": 1}, identity.TokenClaim, "sid"},
		"a long sid":         {map[string]any{"aud": signInClient, "sid": strings.Repeat("s", 257)}, identity.TokenClaim, "sid"},
		"a number as nonce":  {map[string]any{"aud": signInClient, "nonce": 1}, identity.TokenClaim, "nonce"},
		"no name":            {map[string]any{"aud": signInClient, "sub": nil}, identity.TokenClaim, "sub"},
		"no tenant":          {map[string]any{"aud": signInClient, "org": nil}, identity.TokenClaim, "org"},
	} {
		_, err := v.VerifySignIn(t.Context(), good(t, c.changes), issuerURL, signInClient)
		require.Equal(t, &identity.Error{Reason: c.reason, Field: c.field}, err, name)
	}
	_, err := v.VerifySignIn(t.Context(), good(t, map[string]any{"aud": signInClient}), "https://other.example.org", signInClient)
	require.Equal(t, &identity.Error{Reason: identity.TokenIssuer}, err)
	_, err = v.VerifySignIn(t.Context(), sign(t, "ES256", "attacker", claims(map[string]any{"aud": signInClient}), nil), issuerURL, signInClient)
	require.Equal(t, &identity.Error{Reason: identity.TokenSignature}, err)
	require.True(t, v.HasIssuer(issuerURL))
	require.False(t, v.HasIssuer(issuerURL+"/"))
}

// What a session keeps is read by the rules as they are now, or not at all.
func TestKeptClaimsFollowTheRules(t *testing.T) {
	signed, err := newVerifier(t, fileConfig(t)).VerifySignIn(t.Context(), good(t, map[string]any{"aud": signInClient}), issuerURL, signInClient)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*jwt.Issuer)
		want   string // "" = refused
	}{
		"the same rules":     {func(*jwt.Issuer) {}, "alice [ops]"},
		"other prefixes":     {func(i *jwt.Issuer) { i.NamePrefix, i.GroupPrefix = "n:", "g:" }, "n:alice [g:ops]"},
		"fewer claims":       {func(i *jwt.Issuer) { i.Claims.Groups = "" }, "alice []"},
		"another claim":      {func(i *jwt.Issuer) { i.Claims.Groups = "teams" }, ""},
		"one claim more":     {func(i *jwt.Issuer) { i.Claims.Tenants = "orgs" }, ""},
		"the issuer is gone": {func(i *jwt.Issuer) { i.Issuer = "https://other.example.org" }, ""},
		"a long prefix":      {func(i *jwt.Issuer) { i.NamePrefix = strings.Repeat("p", 256) }, ""},
	} {
		config := fileConfig(t)
		c.change(&config.Issuers[0])
		p, err := newVerifier(t, config).ReadClaims(signed.Issuer, signed.Claims)
		if c.want == "" {
			require.Equal(t, &identity.Error{Reason: identity.SessionInvalid}, err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, p.Name+" ["+strings.Join(p.Groups, " ")+"]", name)
	}
}

// An address that a person has given, and the issuer has not verified, is no name.
func TestUnverifiedAddressesNameNobody(t *testing.T) {
	config := fileConfig(t)
	config.Issuers[0].Claims.Name = "email"
	v := newVerifier(t, config)
	for value, isRefused := range map[any]bool{true: false, "true": false, false: true, "false": true, 1: true, "": true} {
		given := map[string]any{"email": "ana@example.org", "email_verified": value, "aud": []string{"graphd", signInClient}, "azp": signInClient}
		_, byToken := v.Authenticate(t.Context(), identity.Credentials{Token: good(t, given)})
		_, bySignIn := v.VerifySignIn(t.Context(), good(t, given), issuerURL, signInClient)
		if isRefused {
			want := &identity.Error{Reason: identity.TokenClaim, Field: "email_verified"}
			require.Equal(t, []error{want, want}, []error{byToken, bySignIn}, value)
			continue
		}
		require.Equal(t, []error{nil, nil}, []error{byToken, bySignIn}, value)
	}
	_, err := v.Authenticate(t.Context(), identity.Credentials{Token: good(t, map[string]any{"email": "ana@example.org"})})
	require.NoError(t, err, "most issuers say nothing of it")
	_, err = newVerifier(t, fileConfig(t)).Authenticate(t.Context(), identity.Credentials{Token: good(t, map[string]any{"email_verified": false})})
	require.NoError(t, err, "the name is another claim")
}
