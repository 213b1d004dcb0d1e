package capacity_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
)

const share = 1 << 20 // bytes of one run of four

// process is a limiter with a clock that the test moves.
type process struct {
	*capacity.Limiter
	uptime time.Duration
	wakes  int
}

func (p *process) now() time.Duration { return p.uptime }

func (p *process) wake() { p.wakes++ }

func newProcess(runs int, bytes int64) *process {
	p := &process{}
	p.Limiter = capacity.New(capacity.Options{
		MaxRuns: runs, MaxBytes: bytes, Uptime: p.now, Wake: p.wake,
	})
	return p
}

// owner counts how often it is asked for its slot.
type owner struct{ asked int }

func (o *owner) ReconsiderSlot() { o.asked++ }

func (p *process) newHolder(thread string) (*capacity.Holder, *owner) {
	h, o := new(capacity.Holder), new(owner)
	h.Init(p.Limiter, thread, o)
	return h, o
}

// admit makes a run live that must be let in.
func (p *process) admit(t *testing.T, thread string, need int64) (*capacity.Holder, *owner) {
	t.Helper()
	h, o := p.newHolder(thread)
	grant, err := h.Reserve("", need)
	require.NoError(t, err)
	require.Equal(t, need, grant.HeldBytes)
	return h, o
}

func TestSlots(t *testing.T) {
	p := newProcess(2, 4*share)
	a, _ := p.admit(t, "a", 1)
	b, _ := p.admit(t, "b", 1)
	require.False(t, p.HasFreeSlot())
	c, _ := p.newHolder("c")
	_, err := c.Reserve("", 1)
	require.ErrorIs(t, err, capacity.ErrNoCapacity)
	require.Equal(t, "max-live-runs", p.RefusalError(err).Meta["limit"])
	require.False(t, c.Release(), "it held nothing")

	p.EnqueueThread("c", "", err)
	p.EnqueueThread("c", "", err)
	require.Zero(t, p.wakes, "there is no slot")
	require.True(t, p.IsQueued("c"))
	require.Equal(t, 1, p.CountQueued())
	threads, full := p.GrantWaiting(16)
	require.True(t, full)
	require.Empty(t, threads)

	require.True(t, a.Release(), "others may wait for the last slot")
	require.False(t, b.Release())
	threads, full = p.GrantWaiting(16)
	require.False(t, full)
	require.Equal(t, []string{"c"}, threads)
	require.False(t, p.IsQueued("c"))
	p.EnqueueThread("d", "", err)
	require.Equal(t, 1, p.wakes, "a slot was free already")
	require.Equal(t, capacity.Counts{}, p.Counts())
}

func TestMemoryIsReservedUntilTheRunBegins(t *testing.T) {
	p := newProcess(4, 4*share)
	a, _ := p.admit(t, "a", 3*share)
	b, _ := p.newHolder("b")
	_, err := b.Reserve("", 2*share)
	require.ErrorIs(t, err, capacity.ErrNoCapacity)
	require.Equal(t, "max-live-bytes", p.RefusalError(err).Meta["limit"])
	p.EnqueueThread("b", "", err)
	require.Equal(t, 1, p.wakes, "there is a slot")
	_, _ = p.admit(t, "small", share-1)
	late, _ := p.newHolder("late")
	_, err = late.Reserve("", share)
	require.ErrorIs(t, err, capacity.ErrNoCapacity, "b came first")
	threads, _ := p.GrantWaiting(16)
	require.Empty(t, threads, "a holds it")

	require.True(t, a.Release())
	threads, _ = p.GrantWaiting(16)
	require.Equal(t, []string{"b"}, threads)
	require.EqualValues(t, 3*share-1, p.HeldBytes())
	grant, err := b.Reserve("", share)
	require.NoError(t, err)
	require.EqualValues(t, 2*share, grant.HeldBytes, "it keeps what was reserved")
	require.EqualValues(t, 3*share-1, p.HeldBytes())
	p.EndGrants(threads)
	require.EqualValues(t, 3*share-1, p.HeldBytes(), "the reservation has become the run's")
}

func TestRunKeepsTheSuperstepThatItWasLetInFor(t *testing.T) {
	p := newProcess(4, 4*share)
	a, _ := p.admit(t, "a", 3*share)
	b, _ := p.newHolder("b")
	_, err := b.Reserve("", 2*share)
	p.EnqueueThread("b", "", err)
	require.True(t, a.Release())
	threads, _ := p.GrantWaiting(16)
	require.Equal(t, []string{"b"}, threads)
	_, err = b.Reserve("", 2*share)
	require.NoError(t, err)
	other, _ := p.admit(t, "other", share)
	require.False(t, b.RequestYield(), "there is memory")
	require.False(t, b.RequestDiscard(false), "there is memory")
	b.AddBytes(2 * share)
	require.False(t, b.RequestDiscard(true), "it was let in for that superstep")
	require.True(t, b.RequestDiscard(false))
	require.False(t, other.RequestYield(), "it is the last heavy run")
}

func TestEndGrantsReleasesWhatDidNotBegin(t *testing.T) {
	p := newProcess(4, 4*share)
	p.EnqueueThread("a", "", &capacity.NoCapacityError{NeedBytes: 2 * share})
	threads, _ := p.GrantWaiting(16)
	require.Equal(t, []string{"a"}, threads)
	require.Equal(t, capacity.Counts{HeldBytes: 2 * share, HeavyRuns: 1, ContinuingBytes: 2 * share, ContinuingHeavyRuns: 1, GrantedThreads: 1}, p.Counts())
	p.EndGrants(threads)
	require.Equal(t, capacity.Counts{}, p.Counts())
}

func TestEvictedRunWaitsForMemoryAgain(t *testing.T) {
	p := newProcess(4, 4*share)
	a, _ := p.admit(t, "a", share)
	b, _ := p.admit(t, "b", share)
	small, _ := p.admit(t, "small", 1)
	require.False(t, a.EvictRun(false), "there is memory")
	a.AddBytes(3 * share)
	require.True(t, p.IsExceeded())
	require.False(t, small.EvictRun(false), "it holds little")
	require.False(t, a.EvictRun(true), "nothing waits")
	require.True(t, a.EvictRun(false))
	require.True(t, a.EvictRun(true), "it is decided")
	require.True(t, a.IsEvicted())
	require.False(t, p.IsExceeded(), "what goes on fits")
	b.AddBytes(4 * share)
	require.False(t, b.EvictRun(false), "it is the last heavy one")

	mark := capacity.PruneMark{Seq: 7}
	a.RequeueThread(mark)
	require.True(t, a.Release())
	require.True(t, p.HasWaiters())
	require.True(t, p.IsQueued("a"))
	p.uptime = capacity.HeavyTurn - 1
	require.False(t, b.EvictRun(true), "its turn is not over")
	p.uptime = capacity.HeavyTurn
	require.True(t, b.EvictRun(true))
	require.True(t, b.Release())
	require.False(t, p.IsQueued("b"), "it was not asked to wait")

	threads, _ := p.GrantWaiting(16)
	require.Equal(t, []string{"a"}, threads)
	a, _ = p.newHolder("a")
	grant, err := a.Reserve("", share)
	require.NoError(t, err)
	require.Equal(t, capacity.Grant{HeldBytes: 4 * share, PruneMark: mark}, grant)
}

func TestEvictedRunThatReleasesBytesMakesNoRoom(t *testing.T) {
	p := newProcess(4, 4*share)
	a, _ := p.admit(t, "a", share)
	b, _ := p.admit(t, "b", share)
	c, _ := p.admit(t, "c", share)
	a.AddBytes(3 * share)
	require.True(t, a.EvictRun(false))
	a.AddBytes(-4*share + 1) // of its subgraph, before its last change is stored
	b.AddBytes(3 * share)
	require.True(t, p.IsExceeded(), "b and c go on")
	require.EqualValues(t, 5*share+1, p.HeldBytes())
	require.True(t, b.EvictRun(false), "c is heavy too")
	require.False(t, c.EvictRun(false))
	for _, h := range []*capacity.Holder{a, b, c} {
		h.Release()
	}
	require.Equal(t, capacity.Counts{}, p.Counts())
}

// TestRunsThatGrowTogetherKeepTheLimit has many runs grow at the same moment: each that
// goes on must know of those that went on before it, whatever others release meanwhile.
func TestRunsThatGrowTogetherKeepTheLimit(t *testing.T) {
	const runs, rounds = 16, 2000
	for range rounds {
		p := capacity.New(capacity.Options{MaxRuns: runs, MaxBytes: runs * runtime.MinShare, Uptime: func() time.Duration { return 0 }, Wake: func() {}})
		heavy := p.ShareBytes() * runs * 3 / 10 // room for three
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range runs {
			h := new(capacity.Holder)
			h.Init(p, strconv.Itoa(i), nil)
			_, err := h.Reserve("", 1)
			require.NoError(t, err)
			all.Go(func() {
				<-begin
				h.AddBytes(heavy)
				if h.RequestYield() {
					h.Release()
				}
			})
		}
		close(begin)
		all.Wait()
		require.False(t, p.IsExceeded())
		require.Equal(t, 3*(heavy+1), p.HeldBytes(), "no more stop than must")
	}
}

func TestIdleRunsOfferSlotsWhereTheyAreShort(t *testing.T) {
	p := newProcess(3, 4*share) // short from the third one on
	a, asked := p.admit(t, "a", 1)
	require.False(t, a.OfferSlot(), "there are slots")
	require.Equal(t, 1, p.Counts().IdleHolders)
	_, _ = p.admit(t, "b", 1)
	require.Zero(t, asked.asked)
	c, _ := p.admit(t, "c", 1)
	require.Equal(t, 1, asked.asked)
	require.True(t, a.OfferSlot())
	require.False(t, a.OfferSlot(), "it has done so")
	require.False(t, c.OfferSlot(), "one is enough")
	require.Equal(t, 1, p.Counts().OfferedSlots)
	require.True(t, a.Release())
	c.Release()
	require.Equal(t, capacity.Counts{HeldBytes: 1, ContinuingBytes: 1, UsedSlots: 1}, p.Counts())
}

func TestClosedLimiterAdmitsNothing(t *testing.T) {
	p := newProcess(4, 4*share)
	a, _ := p.admit(t, "a", 2*share)
	b, _ := p.admit(t, "b", share)
	a.AddBytes(3 * share)
	p.EnqueueForSlots([]string{"c"})
	p.Close()
	require.False(t, p.HasFreeSlot())
	require.False(t, a.EvictRun(false))
	require.False(t, b.OfferSlot())
	c, _ := p.newHolder("c")
	_, err := c.Reserve("", 1)
	require.ErrorIs(t, err, capacity.ErrNoCapacity)
	require.Equal(t, runtime.ReasonServerDraining, p.RefusalError(err).Reason, "the caller tries another server")
	threads, full := p.GrantWaiting(16)
	require.True(t, full)
	require.Empty(t, threads)
}
