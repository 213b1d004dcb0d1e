package capacity_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
)

// callerLimits are how many runs may be live that callers of the tenant acme have started.
type callerLimits map[string]int64

func (l callerLimits) HasCallerLimits(of runtime.Holding) bool {
	return of == runtime.HoldingLiveRuns && len(l) > 0
}

func (l callerLimits) FindCallerLimit(tenant, caller string, of runtime.Holding) int64 {
	if most, ok := l[caller]; ok && tenant == "acme" && of == runtime.HoldingLiveRuns {
		return most
	}
	return runtime.NoTenantLimit
}

func newCallersProcess(runs int, limits runLimits, callers callerLimits) *process {
	p := &process{}
	p.Limiter = capacity.New(capacity.Options{
		MaxRuns: runs, MaxBytes: 4 * share, Tenants: limits, Callers: callers, Uptime: p.now, Wake: p.wake,
	})
	return p
}

// tryBegin makes a run live, or queues its thread.
func (p *process) tryBegin(thread, caller string) (*capacity.Holder, error) {
	h, _ := p.newHolder(thread)
	_, err := h.Reserve(caller, 1)
	if err != nil {
		h.Release()
		p.EnqueueThread(thread, "run of "+caller, err)
	}
	return h, err
}

func (p *process) begin(t *testing.T, thread, caller string) *capacity.Holder {
	t.Helper()
	h, err := p.tryBegin(thread, caller)
	require.NoError(t, err, thread)
	return h
}

func (p *process) queue(t *testing.T, thread, caller string) {
	t.Helper()
	_, err := p.tryBegin(thread, caller)
	require.ErrorIs(t, err, capacity.ErrNoCapacity, thread)
	require.True(t, p.IsQueued(thread))
}

func (p *process) requireGranted(t *testing.T, want ...string) {
	t.Helper()
	threads, _ := p.GrantWaiting(16)
	require.Equal(t, want, threads)
}

func TestACallerAtItsLimitTakesNoSlotOfOthers(t *testing.T) {
	p := newCallersProcess(10, runLimits{"acme": 3}, callerLimits{"ana": 1, "": 1})
	first := p.begin(t, "acme@1", "ana")
	h, _ := p.newHolder("acme@2")
	_, err := h.Reserve("ana", 1)
	refused := p.RefusalError(err)
	require.Equal(t, runtime.ReasonQuotaExceeded, refused.Reason)
	require.Equal(t, "tenant:acme/caller/live_runs", refused.Quota)
	require.Equal(t, map[string]string{"limit": "live_runs", "most": "1", "of": "caller"}, refused.Meta)
	require.NoError(t, p.CheckSlot("acme@2"), "it does not know the caller")
	p.begin(t, "other@1", "ana")
	p.begin(t, "other@2", "ana")

	nameless := p.begin(t, "acme@3", "")
	_, err = p.tryBegin("acme@4", "")
	require.Equal(t, "tenant:acme/caller/live_runs", p.RefusalError(err).Quota)
	ben := p.begin(t, "acme@5", "ben")
	_, err = p.tryBegin("acme@6", "ben")
	require.Equal(t, "tenant:acme/live_runs", p.RefusalError(err).Quota, "the tenant has three")
	require.Equal(t, 5, p.Counts().TenantSlots)
	require.Equal(t, 5, p.Counts().CallerSlots)
	for _, h := range []*capacity.Holder{first, nameless, ben} {
		require.True(t, h.Release())
	}
	require.Equal(t, 2, p.Counts().CallerSlots)
}

// Threads of a caller at its limit are passed over, whatever their number, and keep their
// order; those of the tenant's other callers begin.
func TestQueuedThreadsOfAFullCallerArePassedOver(t *testing.T) {
	p := newCallersProcess(10, runLimits{"acme": 3}, callerLimits{"ana": 1})
	ana := p.begin(t, "acme@a0", "ana")
	ben, eve := p.begin(t, "acme@b0", "ben"), p.begin(t, "acme@e0", "eve")
	p.queue(t, "acme@a1", "ana")
	p.queue(t, "acme@a2", "ana")
	p.queue(t, "acme@b1", "ben")
	p.queue(t, "acme@e1", "eve")
	p.requireGranted(t)

	require.True(t, ben.Release())
	p.requireGranted(t, "acme@b1")
	p.EndGrants([]string{"acme@b1"}) // and it did not begin
	p.requireGranted(t, "acme@e1")
	second := p.begin(t, "acme@e1", "eve")
	p.EndGrants([]string{"acme@e1"})
	require.True(t, ana.Release())
	p.requireGranted(t, "acme@a1")
	p.requireGranted(t)
	p.EndGrants([]string{"acme@a1"}) // and it did not begin
	p.requireGranted(t, "acme@a2")
	last := p.begin(t, "acme@a2", "ana")
	p.EndGrants([]string{"acme@a2"})
	for _, h := range []*capacity.Holder{eve, second, last} {
		h.Release()
	}
	require.Zero(t, p.CountQueued())
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// A thread that waits for a tenant or a server waits for its caller afterwards.
func TestThreadsWhoseCallersAreNotKnown(t *testing.T) {
	p := newCallersProcess(10, nil, callerLimits{"ana": 1})
	ana := p.begin(t, "acme@a0", "ana")
	p.EnqueueForSlots([]string{"acme@a1", "acme@b1"})
	p.requireGranted(t, "acme@a1", "acme@b1")
	p.queue(t, "acme@a1", "ana")
	p.begin(t, "acme@b1", "ben")
	p.EndGrants([]string{"acme@a1", "acme@b1"})
	p.requireGranted(t)
	require.True(t, ana.Release())
	p.requireGranted(t, "acme@a1")
}

// A thread whose next run is another's does not wait for the caller of the run before.
func TestAThreadDoesNotWaitForTheCallerOfAnEarlierRun(t *testing.T) {
	p := newCallersProcess(10, nil, callerLimits{"ana": 1})
	p.begin(t, "acme@a0", "ana")
	p.queue(t, "acme@t", "ana")
	wakes := p.wakes
	p.NoteNextRun("acme@t", "run of ana")
	p.NoteNextRun("acme@none", "run")
	p.requireGranted(t)
	require.Equal(t, wakes, p.wakes)
	p.NoteNextRun("acme@t", "run of ben")
	require.Equal(t, wakes+1, p.wakes)
	p.requireGranted(t, "acme@t")
}

// Runs that are live when callers get limits count for them, and none is ended.
func TestChangedLimitsOfCallers(t *testing.T) {
	callers := callerLimits{}
	p := newCallersProcess(10, runLimits{"acme": 9}, callers)
	var live []*capacity.Holder
	for n := range 3 {
		live = append(live, p.begin(t, fmt.Sprintf("acme@%d", n), "ana"))
	}
	require.Zero(t, p.Counts().CallerSlots, "nothing is counted without a limit")
	live[1].Release()
	callers["ana"] = 2
	p.RecheckTenants()
	require.Equal(t, 2, p.Counts().CallerSlots)
	p.queue(t, "acme@3", "ana")
	p.queue(t, "acme@4", "ana")
	p.requireGranted(t)
	callers["ana"] = 3
	p.RecheckTenants()
	p.requireGranted(t, "acme@3")
	live = append(live, p.begin(t, "acme@3", "ana"))
	p.EndGrants([]string{"acme@3"})
	p.requireGranted(t)

	delete(callers, "ana")
	p.RecheckTenants()
	p.requireGranted(t, "acme@4")
	live = append(live, p.begin(t, "acme@4", "ana"))
	p.EndGrants([]string{"acme@4"})
	require.Equal(t, 3, p.Counts().CallerSlots)
	callers["ana"] = 1
	p.RecheckTenants()
	p.RecheckTenants()
	require.Equal(t, 4, p.Counts().CallerSlots, "each counts once")
	for i, h := range live {
		if i != 1 {
			h.Release()
		}
	}
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// Runs that wait for workers offer their slots where their caller is short of them.
func TestIdleRunsOfferSlotsOfTheirCaller(t *testing.T) {
	callers := callerLimits{}
	p := newCallersProcess(100, runLimits{}, callers)
	beginIdle := func(thread, caller string) (*capacity.Holder, *owner) {
		h, o := p.newHolder(thread)
		_, err := h.Reserve(caller, 1)
		require.NoError(t, err)
		require.False(t, h.OfferSlot(), "there are slots")
		return h, o
	}
	ben, askedBen := beginIdle("acme@b", "ben")
	ana, asked := beginIdle("acme@a", "ana")
	callers["ana"] = 2
	p.RecheckTenants()
	second := p.begin(t, "acme@c", "ana")
	require.Equal(t, 1, asked.asked, "the caller is short of them")
	require.Zero(t, askedBen.asked)
	require.True(t, ana.OfferSlot())
	require.False(t, second.OfferSlot(), "one is enough")
	for _, h := range []*capacity.Holder{ben, ana, second} {
		h.Release()
	}
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// Threads that wait for their callers cost a look at the queue nothing.
func TestOneCallersQueueCostsOthersNothing(t *testing.T) {
	measure := func(waiting int) float64 {
		p := newCallersProcess(1<<20, nil, callerLimits{"ana": 0})
		for n := range waiting {
			p.queue(t, fmt.Sprintf("acme@%d", n), "ana")
		}
		return testing.AllocsPerRun(100, func() {
			p.EnqueueForSlots([]string{"acme@t"})
			threads, _ := p.GrantWaiting(16)
			require.Len(t, threads, 1)
			p.EndGrants(threads)
		})
	}
	require.InDelta(t, measure(1), measure(2000), 2)
}
