package jwt_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

// A token that was accepted is refused at its end, and accepted again by a clock that is
// put back, as if it had not been seen before.
func TestAcceptedTokensEndInTime(t *testing.T) {
	clock := now
	v, err := jwt.New(jwt.Options{Config: fileConfig(t), Now: func() time.Time { return clock }, Report: func(error) {}})
	require.NoError(t, err)
	token := good(t, map[string]any{"exp": now.Add(time.Minute).Unix()})
	for _, step := range []struct {
		at   time.Time
		want identity.Reason
	}{
		{now, ""},
		{now, ""},
		{now.Add(time.Minute + 30*time.Second - 1), ""},
		{now.Add(time.Minute + 30*time.Second), identity.TokenExpired},
		{now.Add(time.Hour), identity.TokenExpired},
		{now, ""},
		{now.Add(-30 * time.Second), ""},
		{now.Add(-30*time.Second - 1), identity.TokenNotYetValid},
		{now, ""},
	} {
		clock = step.at
		p, err := v.Authenticate(t.Context(), identity.Credentials{Token: token})
		require.Equal(t, step.want, reasonOf(t, err), "at %v", step.at)
		if step.want == "" {
			require.Equal(t, alice(), p)
		}
	}
}

// A key that is gone refuses the tokens that it has accepted before, as soon as the keys
// are read again.
func TestAcceptedTokensEndWithTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, publicSet(t, "p256"))
		r := startRemote(t, newIssuer(t), func(i *jwt.Issuer) { i.JWKSFile = path })
		named, nameless := good(t, nil), sign(t, jose.ES256, "p256", claims(nil), map[jose.HeaderKey]any{"kid": nil})
		sameName := []byte(strings.Replace(string(publicSet(t, "attacker")), "attacker", "p256", 1))
		for _, step := range []struct {
			text []byte
			want identity.Reason
		}{
			{publicSet(t, "p256"), ""},
			{publicSet(t, "p256", "next"), ""},
			{publicSet(t, "next"), identity.TokenSignature},
			{publicSet(t, "p256"), ""},
			{sameName, identity.TokenSignature},
			{publicSet(t, "next", "p256"), ""},
		} {
			require.NoError(t, os.WriteFile(path, step.text, 0o600))
			pass(t, 5*time.Second)
			for _, token := range []string{named, named, nameless, nameless} {
				require.Equal(t, step.want, r.check(t, token), "%s", step.text)
			}
		}
		require.Empty(t, r.reported())
	})
}

func TestAcceptedTokensEndWithKeysThatAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		r := startRemote(t, issuer, byDiscovery)
		token := good(t, nil)
		require.Empty(t, r.check(t, token))
		pass(t, time.Hour)
		require.Empty(t, r.check(t, token), "keys that were fetched again are the same")

		issuer.set(func(i *testIssuer) { i.jwks = publicSet(t, "next") })
		pass(t, 10*time.Second)
		require.Empty(t, r.check(t, token), "the key is not known to be gone")
		require.Empty(t, r.check(t, sign(t, jose.ES256, "next", claims(nil), nil)), "this token has the keys fetched")
		require.Equal(t, identity.TokenSignature, r.check(t, token))
	})
}

// Another configuration decides about tokens that were accepted before it.
func TestAcceptedTokensEndWithTheirConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := writeFile(t, publicSet(t, "p256"))
		entry := "issuers:\n  - issuer: " + issuerURL + "\n    jwks_file: " + keys + "\n    audiences: [graphd]\n"
		path := writeFile(t, []byte(entry))
		f, err := jwt.OpenFile(path, jwt.Options{Now: func() time.Time { return now }, Report: func(error) {}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { f.Run(ctx, issuersInterval) })
		token := good(t, nil)
		authenticate := func(text string) (identity.Principal, identity.Reason) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			pass(t, issuersInterval)
			p, err := f.Authenticate(t.Context(), identity.Credentials{Token: token})
			return p, reasonOf(t, err)
		}
		for _, step := range []struct {
			more string
			want identity.Reason
			name string
		}{
			{"", "", "alice"},
			{"    name_prefix: \"corp:\"\n", "", "corp:alice"},
			{"    algorithms: [RS256]\n", identity.TokenAlgorithm, ""},
			{"", "", "alice"},
			{"    claims: { tenant: missing }\n", identity.TokenClaim, ""},
		} {
			for range 2 {
				p, reason := authenticate(entry + step.more)
				require.Equal(t, step.want, reason, step.more)
				require.Equal(t, step.name, p.Name)
			}
		}
		_, reason := authenticate("issuers: []\n")
		require.Equal(t, identity.TokenIssuer, reason)
		cancel()
		following.Wait()
	})
}

// Calls with the same token at the same time, while its keys change to and fro.
func TestTokensAreRememberedByManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, publicSet(t, "p256"))
		r := startRemote(t, newIssuer(t), func(i *jwt.Issuer) { i.JWKSFile = path })
		tokens := []string{good(t, nil), good(t, map[string]any{"sub": "ben"})}
		for round := range 10 {
			want := identity.Reason("")
			if round%2 == 1 {
				want = identity.TokenSignature
			}
			require.NoError(t, os.WriteFile(path, publicSet(t, []string{"p256", "next"}[round%2]), 0o600))
			pass(t, 5*time.Second)
			var all sync.WaitGroup
			for n := range 32 {
				all.Go(func() {
					p, err := r.Authenticate(t.Context(), identity.Credentials{Token: tokens[n%2]})
					if reason := reasonOf(t, err); reason != want || err == nil && p.Name != []string{"alice", "ben"}[n%2] {
						t.Errorf("%v, %v", p, err)
					}
				})
			}
			all.Wait()
		}
	})
}
