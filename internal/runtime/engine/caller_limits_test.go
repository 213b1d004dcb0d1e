package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// callerLimits are how many live runs callers of acme may have, which a test changes.
type callerLimits struct {
	mu     sync.Mutex
	limits map[string]int64
}

func newCallerLimits(caller string, most int64) *callerLimits {
	return &callerLimits{limits: map[string]int64{caller: most}}
}

func (l *callerLimits) setLimit(caller string, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits[caller] = most
}

func (l *callerLimits) HasCallerLimits(of runtime.Holding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of == runtime.HoldingLiveRuns && len(l.limits) > 0
}

func (l *callerLimits) FindCallerLimit(tenant, caller string, of runtime.Holding) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most, ok := l.limits[caller]; ok && tenant == "acme" && of == runtime.HoldingLiveRuns {
		return most
	}
	return runtime.NoTenantLimit
}

func newCallersFixture(t *testing.T, limits *callerLimits) *tenantFixture {
	t.Helper()
	return newTenantFixtureWith(t, memory.New(memory.Options{}), engine.Options{Tenants: newTenantLimits(runtime.HoldingLiveRuns, 6), Callers: limits})
}

func startedBy(a runtime.Actor) func(*runtime.StartRequest) {
	return func(r *runtime.StartRequest) { r.By = a }
}

// requireCallerExceeded checks that a limit of live runs of a caller of acme has refused a
// call.
func requireCallerExceeded(t *testing.T, err error, most string) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonQuotaExceeded})
	require.Equal(t, "live_runs", errorMeta(err, "limit"))
	require.Equal(t, most, errorMeta(err, "most"))
	require.Equal(t, "caller", errorMeta(err, "of"))
	require.ErrorContains(t, err, "the caller has "+most+" runs that this server drives already, its limit (live_runs); nothing was stored")
}

func TestLiveRunsOfACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCallersFixture(t, newCallerLimits("ana", 2))
		f.begin("acme@asked", "asks", startedBy(ana))
		f.begin("acme@1", "works", startedBy(ana))
		f.begin("acme@2", "works", startedBy(ana))
		_, err := f.tryBegin("acme@3", "works", startedBy(ana))
		requireCallerExceeded(t, err, "2")
		_, err = f.store.Head(t.Context(), "acme@3")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")
		f.begin("acme@b1", "works", startedBy(ben))
		f.begin("other@1", "works", startedBy(ana))
		f.begin("other@2", "works", startedBy(ana))
		f.begin("other@3", "works", startedBy(ana))
		f.begin("acme@4", "computes", startedBy(ana))
		f.requireIdle("acme@4") // it needs no driver

		queued := f.begin("acme@5", "works", enqueueBusy, startedBy(ana))
		require.Equal(t, checkpoint.RunQueued, queued.Run.State)
		answered, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "acme@asked", By: ben, Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err, "an answer is never refused")
		require.Equal(t, checkpoint.RunQueued, answered.Run.State, "it continues a run of ana")
		sleepVirtual(time.Minute)
		require.Equal(t, []string{"run queued"}, f.describeEvents("acme@5"))
		f.begin("acme@b2", "works", startedBy(ben))
		f.begin("acme@b3", "works", startedBy(ben), enqueueBusy)
		require.Contains(t, f.describeEvents("acme@b3"), "run running")

		f.finish("acme@1", "acme@5", "acme@2", "acme@asked", "acme@b1", "acme@b2", "acme@b3", "other@1")
	})
}

// A server that stops and starts again takes over no more runs of a caller than it may have,
// and loses none.
func TestLiveRunsOfACallerAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newCallerLimits("ana", 3)
		f := newCallersFixture(t, limits)
		for i := range 3 {
			f.begin(fmt.Sprintf("acme@%d", i), "works", startedBy(ana))
			f.begin(fmt.Sprintf("acme@b%d", i), "works", startedBy(ben))
		}
		f.engine.Close()
		limits.setLimit("ana", 1)
		f.startEngine()
		sleepVirtual(time.Minute)
		_, err := f.tryBegin("acme@new", "works", startedBy(ana))
		requireCallerExceeded(t, err, "1")
		f.finish("acme@b0", "acme@b1", "acme@b2")
		for i := range 3 { // in any order
			f.proceedOf(fmt.Sprintf("acme@%d", i)) <- struct{}{}
			sleepVirtual(time.Second)
		}
		f.requireIdle("acme@0", "acme@1", "acme@2")
	})
}

// The first limit of a caller counts what is live already, and one that is raised while the
// server runs lets waiting runs begin.
func TestChangedLimitOfACallersLiveRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := &callerLimits{limits: map[string]int64{}}
		f := newCallersFixture(t, limits)
		f.begin("acme@1", "works", startedBy(ana))
		limits.setLimit("ana", 1)
		f.engine.RecheckTenants()
		_, err := f.tryBegin("acme@2", "works", startedBy(ana))
		requireCallerExceeded(t, err, "1")
		f.begin("acme@2", "works", startedBy(ana), enqueueBusy)
		require.Equal(t, []string{"run queued"}, f.describeEvents("acme@2"))
		limits.setLimit("ana", 2)
		f.engine.RecheckTenants()
		synctest.Wait()
		require.Contains(t, f.describeEvents("acme@2"), "run running")
		limits.setLimit("ana", 0)
		f.engine.RecheckTenants()
		f.finish("acme@1", "acme@2")
		_, err = f.tryBegin("acme@3", "works", startedBy(ana))
		requireCallerExceeded(t, err, "0")
	})
}

// A run that takes the place of the waiting run of another caller does not wait for it.
func TestARunDoesNotWaitForTheLimitOfAnotherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCallersFixture(t, newCallerLimits("ana", 1))
		f.begin("acme@1", "works", startedBy(ana))
		f.begin("acme@2", "works", startedBy(ana), enqueueBusy)
		f.begin("acme@2", "works", startedBy(ben), func(r *runtime.StartRequest) { r.Concurrency = runtime.CancelActive })
		sleepVirtual(time.Second)
		require.Contains(t, f.describeEvents("acme@2"), "run running", "it does not wait for ana")
		f.proceedOf("acme@2") <- struct{}{}
		f.proceedOf("acme@2") <- struct{}{}
		f.finish("acme@1")
		sleepVirtual(time.Second)
		f.requireIdle("acme@2")
	})
}
