// Package checkpointtest is the checkpoint contract as a test suite: a case
// for every sentence of it that a store could break. Every backend runs all.
package checkpointtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Tombstones is how many deleted versions of graphs the stores of the suite
// remember.
const Tombstones = 3

// Store is the interface of a backend.
type Store interface {
	checkpoint.Store
	checkpoint.Graphs
	checkpoint.Secrets
}

// Open makes an empty store for a case. It remembers Tombstones deleted versions
// of graphs. The store should take its present from now; a store with a clock of
// its own sets OwnClock.
type Open func(t *testing.T, now func() time.Time) Store

// Option says how a backend differs.
type Option func(*env)

// OwnClock says that the store does not use the clock of the suite: cases that
// need time to pass then wait for it, some tens of milliseconds each.
func OwnClock() Option {
	return func(e *env) { e.ownClock = true }
}

// Run runs every case, each on a store of its own.
func Run(t *testing.T, open Open, options ...Option) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Apply", applyCases()},
		{"Lease", leaseCases()},
		{"History", historyCases()},
		{"Lists", listCases()},
		{"Progress", progressCases()},
		{"Log", logCases()},
		{"Records", recordCases()},
		{"ThreadView", viewCases()},
		{"Index", indexCases()},
		{"Tags", tagCases()},
		{"ThreadTags", threadTagCases()},
		{"ThreadPager", threadPagerCases()},
		{"Tenants", tenantCases()},
		{"Values", valueCases()},
		{"Bounds", boundCases()},
		{"Concurrency", concurrencyCases()},
		{"Graphs", graphCases()},
		{"Life", closeCases()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					e := &env{T: t, ctx: t.Context(), clock: newClock()}
					for _, o := range options {
						o(e)
					}
					e.store = open(t, e.clock.currentTime)
					t.Cleanup(func() { require.NoError(t, e.store.Close()) })
					c.run(e)
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(e *env)
}

// env is the environment of a case.
type env struct {
	*testing.T
	ctx      context.Context
	store    Store
	clock    *clock
	ownClock bool
}

// advanceTime lets time go by for the store.
func (e *env) advanceTime(d time.Duration) {
	if !e.ownClock {
		e.clock.advanceTime(d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// clock is a present that only the suite moves.
type clock struct {
	mu      sync.Mutex
	present time.Time
}

func newClock() *clock {
	return &clock{present: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)}
}

func (c *clock) currentTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.present
}

func (c *clock) advanceTime(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.present = c.present.Add(d)
}

// threadDriver drives a thread the way the runtime does: it keeps the head and
// makes changes that continue it.
type threadDriver struct {
	*env
	id   string
	head checkpoint.Head
	rev  uint64
	ops  int
}

// newThread returns a driver for a thread that does not exist yet.
func (e *env) newThread(id string) *threadDriver {
	return &threadDriver{env: e, id: id, head: checkpoint.Head{
		Thread: id, LogID: "log-" + id, Graph: "g", Version: "1", State: checkpoint.ThreadIdle,
		Created: testDay(0), Updated: testDay(0), FirstEvent: 1,
	}}
}

// testDay is an instant with a fraction that only nanoseconds can hold.
func testDay(n int) time.Time {
	return time.Date(2026, 1, 1, 8, 0, 0, 1, time.UTC).AddDate(0, 0, n)
}

// newChange returns the next change of the thread, with nothing in it.
func (t *threadDriver) newChange(edits ...func(*checkpoint.Change)) *checkpoint.Change {
	t.ops++
	c := &checkpoint.Change{
		Thread: t.id, Expect: t.rev, Op: fmt.Sprintf("%s/%d", t.id, t.ops), Head: t.head,
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// applyEdits makes a change that must succeed and takes over its head.
func (t *threadDriver) applyEdits(edits ...func(*checkpoint.Change)) checkpoint.Receipt {
	t.Helper()
	return t.applyChange(t.newChange(edits...))
}

func (t *threadDriver) applyChange(c *checkpoint.Change) checkpoint.Receipt {
	t.Helper()
	r, err := t.store.Apply(t.ctx, c)
	require.NoError(t, err)
	require.Equal(t, c.Expect+1, r.Revision, "a receipt's revision is Expect+1")
	t.rev = r.Revision
	if !c.Delete {
		t.head = c.Head
	}
	return r
}

// requireStored returns the head as the store has it, which must be the applied
// head.
func (t *threadDriver) requireStored() checkpoint.Head {
	t.Helper()
	h, err := t.store.Head(t.ctx, t.id)
	require.NoError(t, err)
	require.Equal(t, t.rev, h.Revision)
	same := h
	same.Revision, same.LeaseExpires, same.Now = 0, time.Time{}, time.Time{}
	require.Equal(t, t.head, same)
	return h
}

// addEvents appends n events to a change.
func addEvents(n int) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		for range n {
			c.Head.LastEvent++
			c.Events = append(c.Events, checkpoint.Event{
				Seq: c.Head.LastEvent, Time: testDay(1), Kind: checkpoint.EventCustom, Run: "r", Node: "n",
				Name: "tick", Value: "9007199254740993",
			})
		}
	}
}

// addCheckpoint adds a checkpoint of a namespace that continues the thread.
func addCheckpoint(namespace string, channels ...checkpoint.Channel) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		c.Head.Seq++
		cp := &checkpoint.Checkpoint{
			ID: checkpointID(c.Head.Seq), Seq: c.Head.Seq, Namespace: namespace, Graph: "g", Version: "1", Run: "r",
			Source: checkpoint.SourceLoop, Step: int(c.Head.Seq) - 2, Time: testDay(1), Channels: channels,
		}
		if namespace == "" {
			cp.Parent, c.Head.Checkpoint = c.Head.Checkpoint, cp.ID
		}
		c.Checkpoints = append(c.Checkpoints, cp)
	}
}

func checkpointID(seq uint64) string { return fmt.Sprintf("%08d-cp", seq) }

func checkpointIDs(cps []*checkpoint.Checkpoint) []string {
	out := []string{}
	for _, cp := range cps {
		out = append(out, cp.ID)
	}
	return out
}
