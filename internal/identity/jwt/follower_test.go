package jwt_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/jwt"
)

const issuersInterval = 5 * time.Second

// issuersText is a file with issuers, each of which has an audience.
func issuersText(issuers ...[2]string) []byte {
	text := "issuers:\n"
	for _, i := range issuers {
		text += fmt.Sprintf("  - issuer: %s\n    audiences: [%s]\n", i[0], i[1])
	}
	return []byte(text)
}

// Issuers are added, changed and removed while tokens are verified. Those that stay
// keep their keys, also while they can't be fetched.
func TestIssuersFollowTheirFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer(t, "p256")
		path := writeFile(t, issuersText([2]string{issuerURL, "graphd"}))
		r := &remote{}
		f, err := jwt.OpenFile(path, jwt.Options{Now: func() time.Time { return now }, Transport: issuer, Report: r.report})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx, issuersInterval)
		}()
		check := func(changes map[string]any) identity.Reason {
			_, err := f.Authenticate(t.Context(), identity.Credentials{Token: good(t, changes)})
			return reasonOf(t, err)
		}
		change := func(text []byte) {
			require.NoError(t, os.WriteFile(path, text, 0o600))
			pass(t, issuersInterval)
		}
		synctest.Wait()
		require.Empty(t, check(nil))

		issuer.set(func(i *testIssuer) { i.status = 500 })
		change(issuersText([2]string{issuerURL, "other"}))
		require.Equal(t, identity.TokenAudience, check(nil))
		require.Empty(t, check(map[string]any{"aud": "other"}), "the keys are still those from before")

		before := len(r.reported())
		change([]byte("issuers: ["))
		require.Empty(t, check(map[string]any{"aud": "other"}))
		require.Len(t, r.reported(), before+1)
		require.ErrorContains(t, r.reported()[before], path)
		pass(t, issuersInterval)
		require.Len(t, r.reported(), before+1, "a state of the file is reported once")

		issuer.set(func(i *testIssuer) { i.status = 200 })
		change(issuersText([2]string{"https://second.example.org", "graphd"}))
		require.Equal(t, identity.TokenIssuer, check(map[string]any{"aud": "other"}))
		require.Empty(t, check(map[string]any{"iss": "https://second.example.org"}))
		cancel()
		<-ended
	})
}

func TestAWrongFileOfIssuersIsRefused(t *testing.T) {
	_, err := jwt.OpenFile(writeFile(t, []byte("issuers:\n  - issuer: x\n")), jwt.Options{Report: func(error) {}})
	require.ErrorContains(t, err, "jwks.json:2: issuers[0].")
}
