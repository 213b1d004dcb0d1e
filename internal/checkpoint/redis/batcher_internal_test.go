package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/contain"
)

// batcherFixture is a store behind a proxy, and its server.
type batcherFixture struct {
	*testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	store  *Store
}

func newBatcherFixture(t *testing.T) *batcherFixture {
	t.Helper()
	server := redistest.Start(t, "--appendfsync", "no")
	proxy := redistest.StartProxy(t, server)
	s, err := Open(t.Context(), Options{URL: proxy.URL()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &batcherFixture{t, server, proxy, s}
	_, err = s.Apply(t.Context(), newEventChange("first", 0)) // the server knows the script
	require.NoError(t, err)
	return r
}

// newEventChange is a change of a thread with one event.
func newEventChange(thread string, expect uint64) *checkpoint.Change {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &checkpoint.Change{
		Thread: thread, Expect: expect, Op: "op-" + strconv.FormatUint(expect, 10),
		Head: checkpoint.Head{
			Thread: thread, LogID: "log", State: checkpoint.ThreadIdle, Created: at, Updated: at,
			FirstEvent: 1, LastEvent: expect + 1,
		},
		Events: []checkpoint.Event{{Seq: expect + 1, Time: at, Kind: checkpoint.EventRunState}},
	}
}

// applyTogether applies changes of many threads at once, while the proxy is
// paused. It returns the error of each.
func (r *batcherFixture) applyTogether(ctx context.Context, changes []*checkpoint.Change, meanwhile func()) []error {
	r.Helper()
	out := make([]error, len(changes))
	var all sync.WaitGroup
	r.proxy.Pause()
	for i, c := range changes {
		all.Go(func() { _, out[i] = r.store.Apply(ctx, c) })
	}
	c := r.store.batchers[0]
	require.Eventually(r, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.queued)+c.inFlight == len(changes)
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(r, len(c.queued), len(changes)-maxInFlight)
	meanwhile()
	r.proxy.Resume()
	all.Wait()
	return out
}

func newChanges(n int, expect uint64) []*checkpoint.Change {
	list := make([]*checkpoint.Change, n)
	for i := range list {
		list[i] = newEventChange(fmt.Sprint("t", i), expect)
	}
	return list
}

func (r *batcherFixture) countRequests() int {
	r.Helper()
	info, err := r.server.Client.InfoMap(r.Context(), "stats").Result()
	require.NoError(r, err)
	n, err := strconv.Atoi(info["Stats"]["total_reads_processed"])
	require.NoError(r, err)
	return n
}

func TestConcurrentChangesAreBatched(t *testing.T) {
	r := newBatcherFixture(t)
	before := r.countRequests()
	for _, err := range r.applyTogether(t.Context(), newChanges(200, 0), func() {}) {
		require.NoError(t, err)
	}
	require.Less(t, r.countRequests()-before, 100, "requests that arrived for 200 changes")
	heads, err := r.store.Threads(t.Context(), checkpoint.ThreadQuery{})
	require.NoError(t, err)
	require.Len(t, heads, 201)
}

func TestOneConflictLeavesTheOthers(t *testing.T) {
	r := newBatcherFixture(t)
	changes := newChanges(50, 0)
	for i := range changes {
		if i%2 == 1 {
			changes[i] = newEventChange(changes[i].Thread, 7)
		}
	}
	for i, err := range r.applyTogether(t.Context(), changes, func() {}) {
		if i%2 == 1 {
			require.ErrorIs(t, err, checkpoint.ErrConflict)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestForgottenScriptInABatch(t *testing.T) {
	r := newBatcherFixture(t)
	for _, err := range r.applyTogether(t.Context(), newChanges(50, 0), func() {
		require.NoError(t, r.server.Client.ScriptFlush(t.Context()).Err())
	}) {
		require.NoError(t, err)
	}
}

// TestUnansweredBatch loses answers that were for many: each change is looked up
// under its op, and none is made twice.
func TestUnansweredBatch(t *testing.T) {
	r := newBatcherFixture(t)
	for round := range uint64(3) {
		for _, err := range r.applyTogether(t.Context(), newChanges(50, round), func() { r.proxy.LoseAnswers(4) }) {
			require.NoError(t, err)
		}
	}
	require.Positive(t, r.proxy.LostAnswers())
	for i := range 50 {
		events, err := r.store.Events(t.Context(), fmt.Sprint("t", i), 0, 0)
		require.NoError(t, err)
		require.Len(t, events, 3)
	}
}

func TestCancelledChangeIsNotSent(t *testing.T) {
	r := newBatcherFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	for i, err := range r.applyTogether(t.Context(), newChanges(50, 0), func() {
		c := r.store.batchers[0]
		waiting := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.queued)
		}
		before := waiting()
		c.mu.Lock()
		c.lastSent = time.Now().Add(time.Hour) // no exchange counts as stuck
		c.mu.Unlock()
		go func() {
			_, err := r.store.Apply(ctx, newEventChange("late", 0))
			gaveUp <- err
		}()
		require.Eventually(t, func() bool { return waiting() > before }, time.Minute, time.Millisecond)
		cancel()
		err := <-gaveUp
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.ErrorIs(t, err, context.Canceled)
	}) {
		require.NoError(t, err, i)
	}
	_, err := r.store.Head(t.Context(), "late")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
}

// TestFirstChangeOfABatchIsCancelled takes one along whose time ends before the
// answers are there.
func TestFirstChangeOfABatchIsCancelled(t *testing.T) {
	r := newBatcherFixture(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	list := make([]*pendingChange, 3)
	for i, c := range newChanges(len(list), 0) {
		a := r.store.encodeChange(c, prunedRecords{}, "", true)
		list[i] = &pendingChange{ctx: t.Context(), source: a.script.source, unanswered: &unanswered{}, done: make(chan struct{})}
		list[i].command, list[i].size = a.buildCommand()
	}
	list[0].ctx = short
	r.proxy.Pause()
	go r.store.batchers[0].sendBatch(list)
	<-short.Done()
	r.proxy.Resume()
	for _, one := range list {
		<-one.done
		require.NoError(t, one.err)
		require.Equal(t, "OK", one.reply.textAt(0))
	}
}

// TestBatchThatPanicsAnswersItsChanges holds up changes of which one has been
// answered already.
func TestBatchThatPanicsAnswersItsChanges(t *testing.T) {
	answered, waits := &pendingChange{done: make(chan struct{})}, &pendingChange{done: make(chan struct{})}
	close(answered.done)
	p := contain.Call(func() { panic("a defect") })
	failBatch([]*pendingChange{answered, waits}, p)
	<-waits.done
	require.NoError(t, answered.err)
	require.ErrorIs(t, waits.err, p)
}
