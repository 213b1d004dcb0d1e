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

// road is a store behind a proxy, and a server beside it.
type road struct {
	*testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	store  *Store
}

func newRoad(t *testing.T) *road {
	t.Helper()
	server := redistest.Start(t, "--appendfsync", "no")
	proxy := redistest.StartProxy(t, server)
	s, err := Open(t.Context(), Options{URL: proxy.URL()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &road{t, server, proxy, s}
	_, err = s.Apply(t.Context(), told("first", 0)) // the server knows the script
	require.NoError(t, err)
	return r
}

// told is a change of a thread that tells of one event.
func told(thread string, expect uint64) *checkpoint.Change {
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

// crowd makes changes of many threads at once: they meet while the road is
// blocked. It returns what became of each.
func (r *road) crowd(ctx context.Context, changes []*checkpoint.Change, meanwhile func()) []error {
	r.Helper()
	out := make([]error, len(changes))
	var all sync.WaitGroup
	r.proxy.Hold()
	for i, c := range changes {
		all.Go(func() { _, out[i] = r.store.Apply(ctx, c) })
	}
	c := r.store.convoys[0]
	require.Eventually(r, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiting)+c.away == len(changes)
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(r, len(c.waiting), len(changes)-atMost)
	meanwhile()
	r.proxy.Release()
	all.Wait()
	return out
}

func many(n int, expect uint64) []*checkpoint.Change {
	list := make([]*checkpoint.Change, n)
	for i := range list {
		list[i] = told(fmt.Sprint("t", i), expect)
	}
	return list
}

func (r *road) reads() int {
	r.Helper()
	info, err := r.server.Client.InfoMap(r.Context(), "stats").Result()
	require.NoError(r, err)
	n, err := strconv.Atoi(info["Stats"]["total_reads_processed"])
	require.NoError(r, err)
	return n
}

func TestChangesThatMeetGoTogether(t *testing.T) {
	r := newRoad(t)
	before := r.reads()
	for _, err := range r.crowd(t.Context(), many(200, 0), func() {}) {
		require.NoError(t, err)
	}
	require.Less(t, r.reads()-before, 100, "requests that arrived for 200 changes")
	heads, err := r.store.Threads(t.Context(), checkpoint.ThreadQuery{})
	require.NoError(t, err)
	require.Len(t, heads, 201)
}

func TestOneConflictLeavesTheOthers(t *testing.T) {
	r := newRoad(t)
	changes := many(50, 0)
	for i := range changes {
		if i%2 == 1 {
			changes[i] = told(changes[i].Thread, 7)
		}
	}
	for i, err := range r.crowd(t.Context(), changes, func() {}) {
		if i%2 == 1 {
			require.ErrorIs(t, err, checkpoint.ErrConflict)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestForgottenScriptOnTheWay(t *testing.T) {
	r := newRoad(t)
	for _, err := range r.crowd(t.Context(), many(50, 0), func() {
		require.NoError(t, r.server.Client.ScriptFlush(t.Context()).Err())
	}) {
		require.NoError(t, err)
	}
}

// TestLostExchange loses answers that were for many: each change is looked up
// under its op, and none is made twice.
func TestLostExchange(t *testing.T) {
	r := newRoad(t)
	for round := range uint64(3) {
		for _, err := range r.crowd(t.Context(), many(50, round), func() { r.proxy.LoseAnswers(4) }) {
			require.NoError(t, err)
		}
	}
	require.Positive(t, r.proxy.Lost())
	for i := range 50 {
		events, err := r.store.Events(t.Context(), fmt.Sprint("t", i), 0, 0)
		require.NoError(t, err)
		require.Len(t, events, 3)
	}
}

func TestWhoGivesUpIsNotTakenAlong(t *testing.T) {
	r := newRoad(t)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	for i, err := range r.crowd(t.Context(), many(50, 0), func() {
		c := r.store.convoys[0]
		waiting := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.waiting)
		}
		before := waiting()
		c.mu.Lock()
		c.left = time.Now().Add(time.Hour) // the road is not taken for stuck
		c.mu.Unlock()
		go func() {
			_, err := r.store.Apply(ctx, told("late", 0))
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

// TestTheFirstOneGivesUpOnTheWay takes one along whose time ends before the
// answers are there.
func TestTheFirstOneGivesUpOnTheWay(t *testing.T) {
	r := newRoad(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	list := make([]*rider, 3)
	for i, c := range many(len(list), 0) {
		a := r.store.encode(c, outdated{}, "", true)
		list[i] = &rider{ctx: t.Context(), source: a.script.source, missed: &lost{}, done: make(chan struct{})}
		list[i].command, list[i].size = a.finish()
	}
	list[0].ctx = short
	r.proxy.Hold()
	go r.store.convoys[0].travel(list)
	<-short.Done()
	r.proxy.Release()
	for _, one := range list {
		<-one.done
		require.NoError(t, one.err)
		require.Equal(t, "OK", one.answer.text(0))
	}
}

// TestAnExchangeThatPanicsAnswersItsChanges strands changes of which one has
// been answered already.
func TestAnExchangeThatPanicsAnswersItsChanges(t *testing.T) {
	answered, waits := &rider{done: make(chan struct{})}, &rider{done: make(chan struct{})}
	close(answered.done)
	p := contain.Call(func() { panic("a defect") })
	strand([]*rider{answered, waits}, p)
	<-waits.done
	require.NoError(t, answered.err)
	require.ErrorIs(t, waits.err, p)
}
