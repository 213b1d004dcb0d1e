package capacity_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
)

// runLimits are how many runs of each tenant may be live.
type runLimits map[string]int64

func (l runLimits) FindTenantLimit(tenant string, of runtime.Holding) int64 {
	if most, ok := l[tenant]; ok && of == runtime.HoldingLiveRuns {
		return most
	}
	return runtime.NoTenantLimit
}

func newLimitedProcess(runs int, limits runLimits) *process {
	p := &process{}
	p.Limiter = capacity.New(capacity.Options{
		MaxRuns: runs, MaxBytes: 4 * share, Tenants: limits, Uptime: p.now, Wake: p.wake,
	})
	return p
}

// refuse returns why a run of a thread may not go live.
func (p *process) refuse(t *testing.T, thread string) *capacity.NoCapacityError {
	t.Helper()
	require.ErrorIs(t, p.CheckSlot(thread), capacity.ErrNoCapacity)
	h, _ := p.newHolder(thread)
	_, err := h.Reserve("", 1)
	lack, ok := errors.AsType[*capacity.NoCapacityError](err)
	require.True(t, ok, "%v", err)
	return lack
}

func TestATenantAtItsLimitTakesNoSlotOfOthers(t *testing.T) {
	p := newLimitedProcess(4, runLimits{"acme": 2})
	a, _ := p.admit(t, "acme@a", 1)
	p.admit(t, "acme@b", 1)
	require.Equal(t, &capacity.NoCapacityError{Tenant: "acme", MostRuns: 2}, p.refuse(t, "acme@c"))
	refused := p.RefusalError(p.refuse(t, "acme@c"))
	require.Equal(t, runtime.ReasonQuotaExceeded, refused.Reason)
	require.Equal(t, "tenant:acme/live_runs", refused.Quota)
	require.Equal(t, map[string]string{"limit": "live_runs", "most": "2", "of": "tenant"}, refused.Meta)

	require.NoError(t, p.CheckSlot("other@a"))
	p.admit(t, "other@a", 1)
	p.admit(t, "t", 1)
	require.Empty(t, p.refuse(t, "u").Tenant, "the server itself is full")
	require.Equal(t, "max-live-runs", p.RefusalError(p.refuse(t, "u")).Meta["limit"])
	a.Release()
	require.NoError(t, p.CheckSlot("acme@c"))
	require.Equal(t, 3, p.Counts().TenantSlots)
}

// The threads of a tenant without free slots stay behind, in their order, and are taken
// when it has some.
func TestQueuedThreadsOfAFullTenantArePassedOver(t *testing.T) {
	p := newLimitedProcess(10, runLimits{"acme": 1})
	live, _ := p.admit(t, "acme@live", 1)
	p.EnqueueForSlots([]string{"acme@1", "a", "acme@2", "other@1", "b", "acme@3"})
	threads, full := p.GrantWaiting(16)
	require.Equal(t, []string{"a", "other@1", "b"}, threads, "in the order of all tenants")
	require.False(t, full)
	p.EndGrants(threads)
	threads, _ = p.GrantWaiting(16)
	require.Empty(t, threads)
	require.Equal(t, 3, p.CountQueued())

	require.True(t, live.Release(), "its threads wait")
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"acme@1"}, threads, "only as many as it has slots for")
	threads, _ = p.GrantWaiting(16)
	require.Empty(t, threads)
	p.EndGrants([]string{"acme@1"}) // and it did not begin
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"acme@2"}, threads, "what is not taken is for the next")
	second, _ := p.admit(t, "acme@2", 1)
	p.EndGrants(threads)
	threads, _ = p.GrantWaiting(16)
	require.Empty(t, threads)
	require.True(t, p.IsQueued("acme@3"))
	require.True(t, second.Release())
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"acme@3"}, threads)
	require.Zero(t, p.CountQueued())
}

func TestChangedLimitsOfTenants(t *testing.T) {
	limits := runLimits{"acme": 1}
	p := newLimitedProcess(10, limits)
	var live []*capacity.Holder
	admit := func(thread string) {
		h, _ := p.admit(t, thread, 1)
		live = append(live, h)
	}
	admit("acme@0")
	p.EnqueueForSlots([]string{"acme@1", "acme@2"})
	threads, _ := p.GrantWaiting(16)
	require.Empty(t, threads)
	limits["acme"] = 2
	wakes := p.wakes
	p.RecheckTenants()
	require.Equal(t, wakes+1, p.wakes)
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"acme@1"}, threads)
	admit("acme@1")
	p.EndGrants(threads)

	limits["acme"] = 0
	require.True(t, live[0].Release(), "nothing that is live is ended")
	threads, _ = p.GrantWaiting(16)
	require.Empty(t, threads)
	delete(limits, "acme")
	p.RecheckTenants()
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"acme@2"}, threads)
	live[1].Release()
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// A thread that is queued when its tenant has a slot again must not wait for the next
// release.
func TestAThreadIsNotQueuedTooLate(t *testing.T) {
	p := newLimitedProcess(10, runLimits{"acme": 1})
	live, _ := p.admit(t, "acme@live", 1)
	lack := p.refuse(t, "acme@t")
	live.Release()
	p.EnqueueThread("acme@t", "", lack)
	require.Equal(t, 1, p.wakes)
	threads, _ := p.GrantWaiting(16)
	require.Equal(t, []string{"acme@t"}, threads)
	p.admit(t, "acme@t", 1)
	p.EnqueueThread("acme@u", "", lack)
	require.Equal(t, 1, p.wakes, "the tenant has no slot")
}

// Runs that wait for workers offer their slots where their tenant is short of them, and
// those of others keep theirs.
func TestIdleRunsOfferSlotsOfTheirTenant(t *testing.T) {
	p := newLimitedProcess(100, runLimits{"acme": 2})
	other, askedOther := p.admit(t, "other@a", 1)
	require.False(t, other.OfferSlot())
	a, asked := p.admit(t, "acme@a", 1)
	require.False(t, a.OfferSlot(), "there are slots")
	b, _ := p.admit(t, "acme@b", 1)
	require.Equal(t, 1, asked.asked, "the tenant is short of them")
	require.Zero(t, askedOther.asked)
	require.True(t, a.OfferSlot())
	require.False(t, b.OfferSlot(), "one is enough")
	other.Release()
	a.Release()
	b.Release()
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// Threads that wait cost a look at the queue of another tenant nothing.
func TestOneTenantsQueueCostsOthersNothing(t *testing.T) {
	measure := func(waiting int) float64 {
		p := newLimitedProcess(1<<20, runLimits{"acme": 0})
		for n := range waiting {
			p.EnqueueForSlots([]string{fmt.Sprintf("acme@%d", n)})
		}
		return testing.AllocsPerRun(100, func() {
			p.EnqueueForSlots([]string{"t"})
			threads, _ := p.GrantWaiting(16)
			require.Len(t, threads, 1)
			p.EndGrants(threads)
		})
	}
	require.InDelta(t, measure(0), measure(60_000), 2)
}

func TestRemovedThreadsLeaveTheQueue(t *testing.T) {
	p := newLimitedProcess(1000, runLimits{"acme": 1})
	live, _ := p.admit(t, "acme@live", 1)
	var want []string
	for n := range 300 {
		thread := fmt.Sprintf("acme@%d", n)
		p.EnqueueForSlots([]string{thread, thread})
		if n%3 == 0 {
			want = append(want, thread)
		}
	}
	for n := range 300 { // they get slots otherwise, and the limit is theirs meanwhile
		if thread := fmt.Sprintf("acme@%d", n); n%3 != 0 {
			live.Release()
			h, _ := p.admit(t, thread, 1)
			h.Release()
			live, _ = p.admit(t, "acme@live", 1)
		}
	}
	require.Equal(t, len(want), p.CountQueued())
	var got []string
	for range want {
		live.Release()
		threads, _ := p.GrantWaiting(16)
		got = append(got, threads...)
		live, _ = p.admit(t, "acme@live", 1)
	}
	require.Equal(t, want, got)
}
