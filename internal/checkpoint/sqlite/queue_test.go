package sqlite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
			turn = append(turn, fmt.Sprintf("%s/%d", j.thread, j.cost))
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
			require.NoError(t, q.putJob(&job{thread: thread, cost: c}))
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
	require.ErrorIs(t, q.putJob(&job{}), checkpoint.ErrUnavailable, "it is closed")

	q = newQueue()
	put("greedy", 1, 2, 3)
	put("a", 5)
	put("b", 6, 7)
	require.Equal(t, [][]string{{"greedy/1", "a/5", "b/6", "greedy/2", "b/7", "greedy/3"}}, takeTurns(q))

	q = newQueue()
	for i := range 2 * maxBatch {
		put(fmt.Sprint(i), 1)
	}
	gone := &job{thread: "gone", cost: 1}
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
	huge := &job{run: func(*writer) error { return nil }, thread: "huge", cost: 2 * maxCost}
	require.NoError(t, q.putJob(huge), "alone it may be that large")
	require.ErrorIs(t, q.putJob(&job{cost: 1}), checkpoint.ErrStoreBusy)
	require.True(t, q.abandonJob(huge))
	require.Nil(t, huge.run)
	require.False(t, q.abandonJob(huge), "it has left")
	require.NoError(t, q.putJob(&job{cost: maxCost}))
	require.ErrorIs(t, q.putJob(&job{cost: 1}), checkpoint.ErrStoreBusy)
	begun, _ := q.takeBatch(nil)
	require.Len(t, begun, 1)
	require.False(t, q.abandonJob(begun[0]))

	for range maxJobs {
		j := &job{}
		require.NoError(t, q.putJob(j))
		require.True(t, q.abandonJob(j))
	}
	require.ErrorIs(t, q.putJob(&job{}), checkpoint.ErrStoreBusy)
	begun, _ = q.takeBatch(nil)
	require.Empty(t, begun)
	require.NoError(t, q.putJob(&job{}))
}

// A change that has no turn in time is refused, and is not made later.
func TestAChangeWithoutATurnIsRefused(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "a.db"), TurnTimeout: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, s.writer.runChange(t.Context(), func(*writer) error {
			close(begun)
			<-release
			return nil
		}), "its time to wait is over, but it has begun")
	})
	<-begun
	for range 3 {
		_, err = s.Apply(t.Context(), newThreadOf("t", 10))
		require.ErrorIs(t, err, checkpoint.ErrStoreBusy)
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	}
	close(release)
	wg.Wait()
	_, err = s.Apply(t.Context(), newThreadOf("u", 10))
	require.NoError(t, err)
	_, err = s.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
}

// While one thread has its large changes written, the others go on: each waits
// for one of them at most.
func TestLargeChangesLetOthersThrough(t *testing.T) {
	s := openStoreAt(t, t.TempDir())
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, s.writer.runChange(t.Context(), func(*writer) error {
			close(begun)
			<-release
			return nil
		}))
	})
	<-begun
	var mu sync.Mutex
	var order []string
	hand := func(thread string, cost int) {
		waiting := s.writer.queue.countJobs()
		wg.Go(func() {
			assert.NoError(t, s.writer.runJob(t.Context(), &job{thread: thread, cost: cost, run: func(*writer) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, thread)
				return nil
			}}))
		})
		for s.writer.queue.countJobs() == waiting {
			runtime.Gosched()
		}
	}
	for range 3 {
		hand("large", largeCost+1)
	}
	for i := range 5 {
		hand(fmt.Sprint("small", i), 100)
	}
	close(release)
	wg.Wait()
	require.Equal(t, []string{"large", "small0", "small1", "small2", "small3", "small4", "large", "large"}, order)
}

// A change beyond a limit is refused before it waits, and the limit is named.
func TestAChangeThatIsTooLargeIsRefused(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "a.db"), MaxChangeBytes: 100_000, MaxChangeRows: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.Apply(t.Context(), newThreadOf("t", 100_000))
	var size *checkpoint.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, []any{"max-change-bytes", 100_000}, []any{size.Limit, size.Max})
	require.Greater(t, size.Actual, 100_000)
	require.NotErrorIs(t, err, checkpoint.ErrUnavailable, "it is not to be tried again")
	many := newThreadOf("t", 10)
	for i := range 10 {
		many.Memos = append(many.Memos, checkpoint.Memo{Task: "x", Checkpoint: "1", Key: fmt.Sprint(i), Value: "1"})
	}
	_, err = s.Apply(t.Context(), many)
	require.ErrorAs(t, err, &size)
	require.Equal(t, []any{"max-change-rows", 10}, []any{size.Limit, size.Max})
	_, err = s.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
	_, err = s.Apply(t.Context(), newThreadOf("t", 10_000))
	require.NoError(t, err)
}
