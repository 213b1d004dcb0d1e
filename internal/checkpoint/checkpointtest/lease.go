package checkpointtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func leaseCases() []testCase {
	return []testCase{
		{"the end of a lease is the store's present plus its length", leaseClock},
		{"no length leaves the end as it is", leaseKept},
		{"without an owner there is no lease", leaseNoOwner},
		{"a lease runs out by the store's clock", leaseRunsOut},
	}
}

func setOwner(name string, lease time.Duration) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.Head.Owner, c.Lease = name, lease }
}

func leaseClock(e *env) {
	th := e.newThread("t")
	r := th.applyEdits(setOwner("o", time.Minute))
	require.WithinRange(e, r.LeaseExpires, r.Now.Add(time.Minute), r.Now.Add(time.Minute+time.Minute/16))
	if !e.ownClock {
		require.Equal(e, e.clock.currentTime(), r.Now)
	}
	h := th.requireStored()
	require.Equal(e, r.LeaseExpires, h.LeaseExpires)
	require.False(e, h.Now.Before(r.Now))
	require.True(e, h.Leased())

	r = th.applyEdits(setOwner("o", 300*time.Millisecond)) // shorter than it was, so it is written anew
	e.advanceTime(20 * time.Millisecond)
	renewed := th.applyEdits(setOwner("o", 300*time.Millisecond))
	require.True(e, renewed.LeaseExpires.After(r.LeaseExpires))
	require.Equal(e, renewed.LeaseExpires, th.requireStored().LeaseExpires)
}

func leaseKept(e *env) {
	th := e.newThread("t")
	r := th.applyEdits(setOwner("o", time.Minute))
	e.advanceTime(20 * time.Millisecond)
	kept := th.applyEdits(addEvents(1))
	require.Equal(e, r.LeaseExpires, kept.LeaseExpires)
	require.True(e, kept.Now.After(r.Now))
	require.Equal(e, r.LeaseExpires, th.requireStored().LeaseExpires)
}

func leaseNoOwner(e *env) {
	th := e.newThread("t")
	r := th.applyEdits(setOwner("", time.Minute))
	require.Zero(e, r.LeaseExpires)
	th.applyEdits(setOwner("o", time.Minute))
	r = th.applyEdits(setOwner("", 0))
	require.Zero(e, r.LeaseExpires)
	h := th.requireStored()
	require.Zero(e, h.LeaseExpires)
	require.False(e, h.Leased())
}

func leaseRunsOut(e *env) {
	th := e.newThread("t")
	th.applyEdits(setOwner("o", 30*time.Millisecond))
	e.advanceTime(34 * time.Millisecond) // a sixteenth later at most
	h := th.requireStored()
	require.False(e, h.Leased())
	require.Equal(e, "o", h.Owner, "an expired lease still says whose it was")
}
