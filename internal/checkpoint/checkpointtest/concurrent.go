package checkpointtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func concurrencyCases() []testCase {
	return []testCase{
		{"each revision has exactly one winner", concurrentCAS},
		{"many create, one wins", concurrentCreate},
		{"threads do not disturb each other", concurrentThreads},
		{"a reader never sees half a change", concurrentReaders},
		{"a follower of the changes of questions misses none", concurrentChanges},
		{"a deletion races with changes", concurrentDelete},
	}
}

// runParallel runs work n times at once and waits.
func runParallel(n int, work func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}

//nolint:testifylint // require ends only the test's own goroutine
func concurrentCAS(e *env) {
	const workers, rounds = 8, 20
	th := e.newThread("t")
	th.applyEdits()
	var wins [workers*rounds + 2]atomic.Int32
	runParallel(workers, func(i int) {
		for done := 0; done < rounds; {
			h, err := e.store.Head(e.ctx, "t")
			if !assert.NoError(e, err) {
				return
			}
			c := &checkpoint.Change{Thread: "t", Expect: h.Revision, Op: fmt.Sprintf("%d/%d/%d", i, done, h.Revision), Head: h}
			addEvents(1)(c)
			c.Events[0].Attempt = i + 1
			r, err := e.store.Apply(e.ctx, c)
			if errors.Is(err, checkpoint.ErrConflict) {
				continue
			}
			if !assert.NoError(e, err) {
				return
			}
			wins[r.Revision].Add(1)
			done++
		}
	})
	for rev := 2; rev < len(wins); rev++ {
		require.EqualValues(e, 1, wins[rev].Load(), "winners of revision %d", rev)
	}
	h, err := e.store.Head(e.ctx, "t")
	require.NoError(e, err)
	require.EqualValues(e, workers*rounds+1, h.Revision)
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Len(e, list, workers*rounds)
}

func concurrentCreate(e *env) {
	var won atomic.Int32
	runParallel(8, func(i int) {
		c := e.newThread("t").newChange(addEvents(1))
		c.Op = fmt.Sprint("create ", i)
		_, err := e.store.Apply(e.ctx, c)
		if err == nil {
			won.Add(1)
			return
		}
		assert.ErrorIs(e, err, checkpoint.ErrConflict)
	})
	require.EqualValues(e, 1, won.Load())
	h, err := e.store.Head(e.ctx, "t")
	require.NoError(e, err)
	require.EqualValues(e, 1, h.Revision)
}

//nolint:testifylint // require ends only the test's own goroutine
func concurrentThreads(e *env) {
	runParallel(16, func(i int) {
		th := e.newThread(fmt.Sprint("t", i))
		for range 10 {
			c := th.newChange(addCheckpoint("", largeChannel("v", th.head.Seq+1)), addEvents(2))
			r, err := e.store.Apply(e.ctx, c)
			if !assert.NoError(e, err) || !assert.Equal(e, th.rev+1, r.Revision) {
				return
			}
			th.rev, th.head = r.Revision, c.Head
		}
		cp, err := e.store.Checkpoint(e.ctx, th.id, "", "")
		if assert.NoError(e, err) {
			assert.EqualValues(e, 10, cp.Seq)
		}
		list, err := e.store.Events(e.ctx, th.id, 0, 0)
		assert.NoError(e, err)
		assert.Len(e, list, 20)
	})
	require.Len(e, e.listThreads(checkpoint.ThreadQuery{}), 16)
}

//nolint:testifylint // require ends only the test's own goroutine
func concurrentReaders(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint("", largeChannel("v", 1)), addEvents(1))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				h, err := e.store.Head(e.ctx, "t")
				if !assert.NoError(e, err) {
					return
				}
				assert.Equal(e, h.Seq, h.LastEvent, "one event per checkpoint")
				assert.Equal(e, checkpointID(h.Seq), h.Checkpoint)
				cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
				if !assert.NoError(e, err) || !assert.Len(e, cp.Channels, 1) {
					return
				}
				assert.Equal(e, largeChannel("v", cp.Seq), cp.Channels[0])
				list, err := e.store.Events(e.ctx, "t", h.LastEvent-1, 0)
				if !assert.NoError(e, err) || !assert.NotEmpty(e, list, "what the head counts is there") {
					return
				}
			}
		})
	}
	for range 50 {
		th.applyEdits(addCheckpoint("", largeChannel("v", th.head.Seq+1)), addEvents(1))
	}
	stop.Store(true)
	wg.Wait()
}

//nolint:testifylint // require ends only the test's own goroutine
func concurrentChanges(e *env) {
	const writers, each = 6, 20
	var stop atomic.Bool
	seen := map[string]int{}
	var cursor uint64
	follow := func() {
		list, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{
			ByChange: true, Limit: 5, After: checkpoint.InterruptPosition{Change: cursor},
		})
		assert.NoError(e, err)
		for i := range list {
			assert.Greater(e, list[i].Change, cursor)
			cursor = list[i].Change
			seen[list[i].Thread+"/"+list[i].ID]++
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			follow()
		}
	})
	runParallel(writers, func(i int) {
		th := e.newThread(fmt.Sprint("t", i))
		for n := range each {
			c := th.newChange()
			c.Interrupts = []checkpoint.Interrupt{newInterrupt(th.id, fmt.Sprint("q", n), "c")}
			r, err := e.store.Apply(e.ctx, c)
			if !assert.NoError(e, err) {
				return
			}
			th.rev = r.Revision
		}
	})
	stop.Store(true)
	wg.Wait()
	for before := -1; before != len(seen); {
		before = len(seen)
		follow()
	}
	require.Len(e, seen, writers*each)
	for id, n := range seen {
		require.Equal(e, 1, n, id)
	}
}

func concurrentDelete(e *env) {
	for round := range 10 {
		id := fmt.Sprint("t", round)
		e.newThread(id).applyEdits(addEvents(1))
		var won atomic.Int32
		runParallel(4, func(i int) {
			c := &checkpoint.Change{
				Thread: id, Expect: 1, Op: fmt.Sprint("op", i), Head: e.newThread(id).head, Delete: i%2 == 0,
			}
			c.Head.LastEvent = 1
			_, err := e.store.Apply(e.ctx, c)
			if err == nil {
				won.Add(1)
				return
			}
			assert.ErrorIs(e, err, checkpoint.ErrConflict)
		})
		require.EqualValues(e, 1, won.Load())
	}
}
