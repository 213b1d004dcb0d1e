package checkpointtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func logCases() []testCase {
	return []testCase{
		{"an event is read as it was written", logComplete},
		{"events are read in pages, oldest first", logPages},
		{"a long log has no gap", logLong},
		{"the log of a missing thread is not found", logMissing},
		{"a trimmed position is told", logTrim},
		{"a log may be trimmed to nothing and goes on", logTrimAll},
		{"a smaller trim brings nothing back", logTrimLess},
	}
}

func logComplete(e *env) {
	th := e.newThread("t")
	answered := newInterrupt("t", "q", "c")
	answered.Responder, answered.ResponderHow, answered.ResponseMethod, answered.ResponseTime = "ben", "jwt", "GraphService/Resume", testDay(2)
	all := []checkpoint.Event{
		{Seq: 1, Time: testDay(1), Kind: checkpoint.EventRunState, Run: "r", Actor: "ana", State: checkpoint.RunFailed, Failure: &checkpoint.Failure{Reason: "X", Message: "ü", Attempt: 1}},
		{Seq: 2, Time: testDay(2), Kind: checkpoint.EventTask, Namespace: "a:1", Step: -1, Node: "n", Task: "x", Attempt: 2, Phase: checkpoint.PhaseRetrying, Delay: 1500 * time.Millisecond, Triggers: []string{"a", "b"}},
		{Seq: 3, Time: testDay(3), Kind: checkpoint.EventUpdate, Step: 4, Value: `{"b": 9007199254740993, "a":1.0}`, Cached: true},
		{Seq: 4, Time: testDay(4), Kind: checkpoint.EventCheckpoint, Checkpoint: "c", Parent: "p", Source: checkpoint.SourceLoop, Next: []checkpoint.NextTask{{ID: "i", Node: "n"}}},
		{Seq: 5, Time: testDay(5), Kind: checkpoint.EventInterrupt, Interrupts: []checkpoint.Interrupt{answered}},
		{Seq: 6, Time: testDay(6), Kind: checkpoint.EventCustom, Name: "tick", Value: "null"},
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Events, c.Head.LastEvent = all, 6 })
	got, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Equal(e, all, got)
}

// listEventNumbers reads events and returns their numbers.
func (t *threadDriver) listEventNumbers(after uint64, limit int) []uint64 {
	t.Helper()
	list, err := t.store.Events(t.ctx, t.id, after, limit)
	require.NoError(t, err)
	out := []uint64{}
	for i := range list {
		out = append(out, list[i].Seq)
	}
	return out
}

func logPages(e *env) {
	th := e.newThread("t")
	th.applyEdits(addEvents(3))
	th.applyEdits()
	th.applyEdits(addEvents(2))
	require.Equal(e, []uint64{1, 2, 3, 4, 5}, th.listEventNumbers(0, 0))
	require.Equal(e, []uint64{1, 2}, th.listEventNumbers(0, 2))
	require.Equal(e, []uint64{3, 4}, th.listEventNumbers(2, 2))
	require.Equal(e, []uint64{5}, th.listEventNumbers(4, 9))
	require.Empty(e, th.listEventNumbers(5, 2))
	require.Empty(e, th.listEventNumbers(99, 0))
}

func logLong(e *env) {
	th := e.newThread("t")
	for i := range 60 {
		th.applyEdits(addEvents(i % 9))
	}
	th.applyEdits(addEvents(700)) // more than a store may want to keep in one record
	th.applyEdits(addEvents(1))
	last := th.head.LastEvent
	require.Greater(e, last, uint64(200))
	for _, size := range []int{3, 7, 64, 2000} {
		next := uint64(1)
		for after := uint64(0); ; {
			page := th.listEventNumbers(after, size)
			for _, seq := range page {
				require.Equal(e, next, seq)
				next++
			}
			if len(page) < size {
				break
			}
			after = page[len(page)-1]
		}
		require.Equal(e, last+1, next)
	}
}

func logMissing(e *env) {
	_, err := e.store.Events(e.ctx, "nobody", 0, 1)
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	e.newThread("t").applyEdits()
	list, err := e.store.Events(e.ctx, "t", 0, 1)
	require.NoError(e, err)
	require.Empty(e, list)
}

func trimBefore(before uint64) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.TrimEvents, c.Head.FirstEvent = before, before }
}

func logTrim(e *env) {
	th := e.newThread("t")
	for range 30 {
		th.applyEdits(addEvents(5))
	}
	th.applyEdits(addEvents(1), trimBefore(42))
	for _, after := range []uint64{0, 1, 40} {
		_, err := e.store.Events(e.ctx, "t", after, 5)
		require.ErrorIs(e, err, checkpoint.ErrTrimmed, "after %d", after)
	}
	require.Equal(e, []uint64{42, 43}, th.listEventNumbers(41, 2))
	require.Equal(e, []uint64{151}, th.listEventNumbers(150, 2))
	require.EqualValues(e, 42, th.requireStored().FirstEvent)
}

func logTrimAll(e *env) {
	th := e.newThread("t")
	th.applyEdits(addEvents(5))
	th.applyEdits(trimBefore(6))
	_, err := e.store.Events(e.ctx, "t", 4, 0)
	require.ErrorIs(e, err, checkpoint.ErrTrimmed)
	require.Empty(e, th.listEventNumbers(5, 0))
	th.applyEdits(addEvents(2))
	require.Equal(e, []uint64{6, 7}, th.listEventNumbers(5, 0))
	// A trim beyond the end takes the new events of the same change along.
	th.applyEdits(addEvents(1), trimBefore(99))
	require.Empty(e, th.listEventNumbers(8, 0))
	th.applyEdits(addEvents(1))
	require.Equal(e, []uint64{9}, th.listEventNumbers(8, 0))
}

func logTrimLess(e *env) {
	th := e.newThread("t")
	th.applyEdits(addEvents(9))
	th.applyEdits(trimBefore(6))
	th.applyEdits(trimBefore(3))
	_, err := e.store.Events(e.ctx, "t", 4, 0)
	require.ErrorIs(e, err, checkpoint.ErrTrimmed)
	require.Equal(e, []uint64{6, 7, 8, 9}, th.listEventNumbers(5, 0))
}
