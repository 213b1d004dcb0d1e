package writer

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// takeTurns takes everything from a queue and says which jobs shared a transaction.
func takeTurns(q *queue) (turns [][]string) {
	q.closeQueue()
	for {
		batch, more := q.takeBatch(nil)
		if !more {
			return turns
		}
		var turn []string
		for _, j := range batch {
			turn = append(turn, fmt.Sprintf("%s/%d", j.Thread, j.Cost))
		}
		turns = append(turns, turn)
	}
}

// Threads take turns, large changes go alone, and small ones go in between.
func TestQueueIsFair(t *testing.T) {
	const large = largeCost + 1
	q := newQueue()
	put := func(thread string, costs ...int) {
		for _, c := range costs {
			require.NoError(t, q.putJob(&Job{Thread: thread, Cost: c}))
		}
	}
	put("greedy", 1, 2, 3, 4)
	put("huge", large, large+1, large+2)
	put("a", 5)
	put("b", 6, 7)
	require.Equal(t, 10, q.countJobs())
	first, _ := q.takeBatch(nil)
	require.Len(t, first, 1, "a large one does not wait behind all that is small")
	put("c", 8)
	second, _ := q.takeBatch(nil)
	require.Len(t, second, 8)
	put("d", 9)
	require.Equal(t, [][]string{
		{fmt.Sprint("huge/", large+1)}, {"d/9"}, {fmt.Sprint("huge/", large+2)},
	}, takeTurns(q))
	require.ErrorIs(t, q.putJob(&Job{}), checkpoint.ErrUnavailable, "it is closed")

	q = newQueue()
	put("greedy", 1, 2, 3)
	put("a", 5)
	put("b", 6, 7)
	require.Equal(t, [][]string{{"greedy/1", "a/5", "b/6", "greedy/2", "b/7", "greedy/3"}}, takeTurns(q))

	q = newQueue()
	for i := range 2 * maxBatch {
		put(fmt.Sprint(i), 1)
	}
	gone := &Job{Thread: "gone", Cost: 1}
	require.NoError(t, q.putJob(gone))
	require.True(t, q.abandonJob(gone))
	turns := takeTurns(q)
	require.Len(t, turns, 2)
	require.Len(t, turns[1], maxBatch, "who has left has no turn")

	q = newQueue()
	for i := range 10 {
		put(fmt.Sprint(i), largeCost)
	}
	require.Len(t, takeTurns(q)[0], batchCost/largeCost)
}

// What a disk that stalls leaves waiting is bounded, and what callers who left
// had handed in is let go.
func TestWhatWaitsIsBounded(t *testing.T) {
	q := newQueue()
	huge := &Job{Run: func(context.Context, *sql.Conn) error { return nil }, Thread: "huge", Cost: 2 * maxCost}
	require.NoError(t, q.putJob(huge), "alone it may be that large")
	require.ErrorIs(t, q.putJob(&Job{Cost: 1}), checkpoint.ErrStoreBusy)
	require.True(t, q.abandonJob(huge))
	require.Nil(t, huge.Run)
	require.False(t, q.abandonJob(huge), "it has left")
	require.NoError(t, q.putJob(&Job{Cost: maxCost}))
	require.ErrorIs(t, q.putJob(&Job{Cost: 1}), checkpoint.ErrStoreBusy)
	begun, _ := q.takeBatch(nil)
	require.Len(t, begun, 1)
	require.False(t, q.abandonJob(begun[0]))

	for range maxJobs {
		j := &Job{}
		require.NoError(t, q.putJob(j))
		require.True(t, q.abandonJob(j))
	}
	require.ErrorIs(t, q.putJob(&Job{}), checkpoint.ErrStoreBusy)
	begun, _ = q.takeBatch(nil)
	require.Empty(t, begun)
	require.NoError(t, q.putJob(&Job{}))
}

// A change that has no turn in time is refused, and is not made later.
func TestAChangeWithoutATurnIsRefused(t *testing.T) {
	w := openWriter(t, &checkedFile{})
	begun, release := make(chan struct{}), make(chan struct{})
	// Handed in past RunJob, the one under way waits for as long as it takes.
	held := &Job{done: make(chan error, 1), Run: func(context.Context, *sql.Conn) error {
		close(begun)
		<-release
		return nil
	}}
	require.NoError(t, w.queue.putJob(held))
	<-begun
	w.limits.turn = time.Millisecond
	for range 3 {
		err := w.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error { return addName(ctx, conn, "t") })
		require.ErrorIs(t, err, checkpoint.ErrStoreBusy)
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	}
	close(release)
	require.NoError(t, <-held.done)
	w.limits.turn = time.Minute
	require.NoError(t, w.RunChange(t.Context(), func(ctx context.Context, conn *sql.Conn) error { return addName(ctx, conn, "u") }))
	require.False(t, hasName(t, w, "t"))
	require.True(t, hasName(t, w, "u"))
}

// While one thread has its large changes written, the others go on: each waits
// for one of them at most.
func TestLargeChangesLetOthersThrough(t *testing.T) {
	w := openWriter(t, &checkedFile{})
	release := holdWriter(t, w)
	var order []string
	var wg sync.WaitGroup
	var errs [8]error
	hand := func(i int, thread string, cost int) {
		enqueueJob(w, &wg, &Job{Thread: thread, Cost: cost, Run: func(context.Context, *sql.Conn) error {
			order = append(order, thread)
			return nil
		}}, &errs[i])
	}
	for i := range 3 {
		hand(i, "large", largeCost+1)
	}
	for i := range 5 {
		hand(3+i, fmt.Sprint("small", i), 100)
	}
	release()
	wg.Wait()
	require.Equal(t, []string{"large", "small0", "small1", "small2", "small3", "small4", "large", "large"}, order)
	require.Equal(t, [8]error{}, errs)
}
