package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
)

// createKey adds an API key to a file and returns its token.
func createKey(t *testing.T, path, name string) string {
	t.Helper()
	_, token, err := apikey.Create(t.Context(), path, apikey.Key{Name: name}, time.Now())
	require.NoError(t, err)
	return token
}

// Keys are added and revoked, and their file breaks, while calls are served.
func TestKeysAreTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := CallerOptions{APIKeys: filepath.Join(t.TempDir(), "keys.yaml")}
		first := createKey(t, o.APIKeys, "first")
		core, logs := observer.New(zap.InfoLevel)
		c, err := o.openCallerFiles(callerFileInterval, zap.New(core))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		for _, follow := range c.followers {
			following.Go(func() { follow(ctx) })
		}
		check := func(token string) (name string, reason identity.Reason) {
			require.NoError(t, backoff.Sleep(t.Context(), callerFileInterval))
			synctest.Wait()
			p, err := c.Authenticate(t.Context(), identity.Credentials{Token: token})
			if refused, ok := errors.AsType[*identity.Error](err); ok {
				return "", refused.Reason
			}
			require.NoError(t, err)
			return p.Name, ""
		}
		requireName := func(want, token string) {
			name, reason := check(token)
			require.Empty(t, reason)
			require.Equal(t, want, name)
		}
		requireName("first", first)
		second := createKey(t, o.APIKeys, "second")
		requireName("second", second)
		_, err = apikey.Revoke(t.Context(), o.APIKeys, strings.Split(first, "_")[1], time.Now())
		require.NoError(t, err)
		_, reason := check(first)
		require.Equal(t, identity.TokenRevoked, reason)
		changes := logs.TakeAll()
		require.Len(t, changes, 2, "a key was added and one was revoked")
		for _, line := range changes {
			require.Equal(t, "what says who calls has changed and is in use", line.Message)
			require.Equal(t, o.APIKeys, line.ContextMap()["file"])
		}

		require.NoError(t, os.WriteFile(o.APIKeys, []byte("keys: ["), 0o600))
		requireName("second", second)
		requireName("second", second)
		require.Equal(t, 1, logs.Len(), "a state of the file is logged once")
		require.Contains(t, logs.All()[0].ContextMap()["error"], o.APIKeys)
		cancel()
		following.Wait()
	})
}

// A policy that changes or breaks is told of in the log.
func TestThePolicyIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := AccessOptions{Access: filepath.Join(t.TempDir(), "access.yaml")}
		write := func(role string) {
			require.NoError(t, os.WriteFile(o.Access, []byte("bindings: [{roles: ["+role+"], groups: [a]}]\n"), 0o600))
		}
		write("viewer")
		core, logs := observer.New(zap.InfoLevel)
		policy, err := o.openPolicy(callerFileInterval, zap.New(core))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go policy.follow(ctx)
		for _, step := range []struct{ role, want string }{
			{"answerer", "the policy of --access has changed and is in use"},
			{"boss", "the policy of --access can't be read again"},
			{"answerer", "the policy of --access has changed and is in use"},
		} {
			before := policy.value()
			write(step.role)
			require.NoError(t, backoff.Sleep(ctx, 2*callerFileInterval))
			synctest.Wait()
			lines := logs.TakeAll()
			require.Len(t, lines, 1, step.role)
			require.Equal(t, step.want, lines[0].Message)
			require.Equal(t, step.role == "boss", policy.value() == before)
		}
		cancel()
		synctest.Wait()
	})
}

// A rule that gives a role that is none keeps a server from starting.
func TestRulesGiveKnownRoles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	for role, says := range map[string]string{"worker": "", "boss": "rules[0].roles[0] is no role: want one of viewer, answerer"} {
		require.NoError(t, os.WriteFile(path, []byte("rules: [{cn: a, name: a, roles: ["+role+"]}]\n"), 0o600))
		_, err := (&CallerOptions{CertificateRules: path}).openCallerFiles(callerFileInterval, zap.NewNop())
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
	}
}

// A server that follows files ends with all that it has begun.
func TestAServerThatKnowsItsCallersLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	issuers := filepath.Join(dir, "issuers.yaml")
	require.NoError(t, os.WriteFile(issuers, []byte(
		"issuers:\n  - { issuer: \"http://127.0.0.1:1\", audiences: [graphd] }\n"), 0o600))
	keys := filepath.Join(dir, "keys.yaml")
	createKey(t, keys, "first")
	var o Options
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(f)
	require.NoError(t, f.Parse([]string{
		"--listen", "127.0.0.1:0", "--store", "memory", "--api-keys", keys, "--token-issuers", issuers,
	}))
	s, err := NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	require.NoError(t, s.DrainServer(t.Context()))
}
