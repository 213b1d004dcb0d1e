package certificate_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
)

func TestRulesFollowTheirFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		change := func(text string) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.NoError(t, backoff.Sleep(t.Context(), time.Second))
			synctest.Wait()
		}
		change("rules:\n  - cn: alice\n    name: first\n")
		var mu sync.Mutex
		var reported []error
		f, err := certificate.OpenFile(path, nil, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, err)
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { f.WatchFile(ctx, time.Second) })
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}
		nameNow := func() string {
			p, err := f.Authenticate(t.Context(), identity.Credentials{Certificates: []*x509.Certificate{leaf}})
			require.NoError(t, err)
			return p.Name
		}
		require.Equal(t, "first", nameNow())
		change("rules:\n  - cn: alice\n    name: second\n")
		require.Equal(t, "second", nameNow())
		change("rules:\n  - cn: alice\n")
		require.Equal(t, "second", nameNow())
		mu.Lock()
		require.Len(t, reported, 1)
		require.ErrorContains(t, reported[0], "rules.yaml:2: rules[0].name")
		mu.Unlock()
		cancel()
		watching.Wait()
	})
}

func TestAWrongFileOfRulesIsRefused(t *testing.T) {
	_, err := certificate.OpenFile(filepath.Join(t.TempDir(), "rules.yaml"), nil, func(error) {})
	require.ErrorContains(t, err, "rules.yaml: can't be read")
}
