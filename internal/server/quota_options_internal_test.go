package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// The limits change, and their file breaks, while calls are served.
func TestQuotasAreTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quotas.yaml")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		write("caller: {streams: 1}\n")
		core, logs := observer.New(zap.InfoLevel)
		q, err := (&QuotaOptions{Quotas: path}).openQuotas(zap.New(core))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go q.followFile(ctx)
		ana := quota.Caller{Tenant: "acme", Principal: "ana"}
		acquire := func() error {
			_, err := q.Acquire(time.Now(), ana, quota.Streams)
			return err
		}
		require.NoError(t, acquire())
		require.Error(t, acquire())

		write("caller: {streams: 2}\n")
		require.NoError(t, backoff.Sleep(ctx, quotaFileInterval))
		synctest.Wait()
		require.NoError(t, acquire())
		require.Error(t, acquire(), "what is held counts for the new limit, too")
		changes := logs.TakeAll()
		require.Len(t, changes, 1)
		require.Equal(t, "the limits of tenants have changed and are in use", changes[0].Message)

		write("caller: {streams: many}\n")
		require.NoError(t, backoff.Sleep(ctx, 3*quotaFileInterval))
		synctest.Wait()
		require.Error(t, acquire())
		require.Equal(t, 1, logs.Len())
		require.Contains(t, logs.All()[0].ContextMap()["error"], "quotas.yaml:1: caller.streams has the wrong type: want a whole number")

		require.NoError(t, q.TakeCall(time.Now(), quota.Caller{Tenant: "b", Principal: "ben"}, quota.Calls))
		require.Equal(t, 4, q.CountAccounts())
		require.NoError(t, backoff.Sleep(ctx, 2*quotaDropInterval))
		synctest.Wait()
		require.Equal(t, 2, q.CountAccounts(), "ben is absent")
		cancel()
		synctest.Wait()
	})
}

// Every limit of the engine is one of the file, under the same name, and new limits of
// tenants are told of.
func TestLimitsOfTenantsReachTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "quotas.yaml")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		text := "overrides:\n- tenants: [acme]\n  tenant:\n"
		for _, l := range quota.Limits() {
			if isOfEngine(l) {
				text += fmt.Sprintf("    %s: %d\n", l, 100+int(l))
			}
		}
		write(text)
		q, err := (&QuotaOptions{Quotas: path}).openQuotas(zap.NewNop())
		require.NoError(t, err)
		for _, l := range quota.Limits() {
			holding, want := runtime.Holding(l.String()), int64(100+int(l))
			if !isOfEngine(l) {
				want = runtime.NoTenantLimit
			}
			require.Equal(t, want, q.FindTenantLimit("acme", holding), l)
			require.EqualValues(t, runtime.NoTenantLimit, q.FindTenantLimit("other", holding), l)
		}

		changes := 0
		q.changed = func() { changes++ }
		ctx, cancel := context.WithCancel(t.Context())
		go q.followFile(ctx)
		require.NoError(t, backoff.Sleep(ctx, 2*quotaFileInterval))
		synctest.Wait()
		require.Zero(t, changes)
		write("tenant: {live_runs: 7}\n")
		require.NoError(t, backoff.Sleep(ctx, 2*quotaFileInterval))
		synctest.Wait()
		require.Equal(t, 1, changes)
		require.EqualValues(t, 7, q.FindTenantLimit("other", runtime.HoldingLiveRuns))
		cancel()
		synctest.Wait()
	})
}

func isOfEngine(l quota.Limit) bool { return !l.IsRate() && l != quota.Streams && l != quota.Workers }

// Limits of callers that the engine counts are those of their principals.
func TestLimitsOfCallersReachTheEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("overrides:\n- principals: [ana]\n  caller: {live_runs: 5, streams: 4}\n"), 0o600))
	q, err := (&QuotaOptions{Quotas: path}).openQuotas(zap.NewNop())
	require.NoError(t, err)
	limits := q.callerLimits()
	for _, l := range quota.Limits() {
		holding, want := runtime.Holding(l.String()), int64(runtime.NoTenantLimit)
		if l == quota.LiveRuns {
			want = 5
		}
		require.Equal(t, l == quota.LiveRuns, limits.HasCallerLimits(holding), l)
		require.Equal(t, want, limits.FindCallerLimit("acme", "ana", holding), l)
		require.EqualValues(t, runtime.NoTenantLimit, limits.FindCallerLimit("acme", "ben", holding), l)
	}
	var none *quotaFile
	require.Nil(t, none.callerLimits())
}

// What the engine has counted is listed with the streams and workers that have a limit.
func TestWhatTenantsHoldIsListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte("overrides:\n- tenants: [acme]\n  tenant: {streams: 5}\n"), 0o600))
	q, err := (&QuotaOptions{Quotas: path}).openQuotas(zap.NewNop())
	require.NoError(t, err)
	for _, tenant := range []string{"acme", "acme", "other"} {
		for _, l := range []quota.Limit{quota.Streams, quota.Workers} {
			_, err := q.Acquire(time.Now(), quota.Caller{Tenant: tenant, Principal: "ana"}, l)
			require.NoError(t, err)
		}
	}
	counted := runtime.TenantHolding{Tenant: "acme", Of: runtime.HoldingThreads, Held: 1, Most: 2}
	require.Equal(t, []runtime.TenantHolding{counted, {Tenant: "acme", Of: "streams", Held: 2, Most: 5}},
		tenantUse{q, fakeHoldings{counted}}.ListTenantHoldings())
}

type fakeHoldings []runtime.TenantHolding

func (f fakeHoldings) ListTenantHoldings() []runtime.TenantHolding { return f }

func TestWrongQuotasAreRefusedAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	_, err := (&QuotaOptions{Quotas: path}).openQuotas(zap.NewNop())
	require.ErrorContains(t, err, "--quotas: "+path+": can't be read: no such file or directory")
	require.NoError(t, os.WriteFile(path, []byte("\ntenant: {calls: 5}\n"), 0o600))
	_, err = (&QuotaOptions{Quotas: path}).openQuotas(zap.NewNop())
	require.ErrorContains(t, err, path+":2: tenant.calls has the wrong type: want a mapping")
	_, ok := errors.AsType[*exit.UsageError](err)
	require.True(t, ok)
	none, err := (&QuotaOptions{}).openQuotas(zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, none)
}
