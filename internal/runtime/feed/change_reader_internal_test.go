package feed

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// changeLog is a store of changed interrupts that counts how often it is read.
type changeLog struct {
	mu    sync.Mutex
	list  []checkpoint.Interrupt
	reads int
	err   error
	delay time.Duration // of a read, after it has looked
}

func (l *changeLog) add(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := uint64(len(l.list) + 1)
	l.list = append(l.list, checkpoint.Interrupt{ID: strconv.FormatUint(n, 10), Thread: "t", Node: node, Change: n})
}

func (l *changeLog) readList(ctx context.Context, _ *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	l.mu.Lock()
	l.reads++
	var found []checkpoint.Interrupt
	for _, in := range l.list {
		if in.Change > q.After.Change && len(found) < q.Limit {
			found = append(found, in)
		}
	}
	err, delay := l.err, l.delay
	l.mu.Unlock()
	if delay > 0 && !wait(ctx, delay) {
		return nil, context.Cause(ctx)
	}
	return found, err
}

// wait waits for a time, and reports whether ctx goes on.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *changeLog) countReads() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

func newChangeFeed(l *changeLog) *Feed {
	return &Feed{opts: Options{ListInterrupts: l.readList, Now: time.Now}}
}

// TestFollowersOfATenantShareTheirReads has 100 followers, and counts the reads of the store.
func TestFollowersOfATenantShareTheirReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &changeLog{delay: time.Millisecond}
		f := newChangeFeed(l)
		const followers, changes = 100, 50
		var wg sync.WaitGroup
		for i := range followers {
			node := "even"
			if i%2 == 1 {
				node = "odd"
			}
			follower := f.FollowInterrupts(nil, checkpoint.InterruptQuery{Tenant: "default", Node: node}, 0)
			wg.Go(func() {
				defer follower.Close()
				var got []string
				for len(got) < changes/2 {
					list, err := follower.Next(t.Context())
					if err != nil {
						return
					}
					for i := range list {
						got = append(got, list[i].ID)
					}
				}
				want := changes - 1 // the last of the even ones, which are 1, 3, 5…
				if node == "odd" {
					want = changes
				}
				if got[len(got)-1] != strconv.Itoa(want) {
					t.Errorf("the last change of %s is %s", node, got[len(got)-1])
				}
			})
		}
		for i := range changes {
			wait(t.Context(), 7*time.Millisecond)
			if i%2 == 0 {
				l.add("even")
			} else {
				l.add("odd")
			}
			f.WakeInterruptFollowers("t")
		}
		wg.Wait()
		require.Less(t, l.countReads(), 3*changes, "not a read for each follower")
		require.Empty(t, f.interruptFollowers.readers)
	})
}

// TestAFollowerMovesWithWhatItHasSeen sees that a follower does not stay where something was for
// it last.
func TestAFollowerMovesWithWhatItHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &changeLog{}
		f := newChangeFeed(l)
		follower := f.FollowInterrupts(nil, checkpoint.InterruptQuery{Node: "mine"}, 0)
		defer follower.Close()
		for range 700 {
			l.add("other")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := follower.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, uint64(700), follower.After())
		l.add("mine")
		list, err := follower.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "701", list[0].ID)
		require.Equal(t, uint64(701), follower.After())
	})
}

// TestAFollowerThatIsBehindReadsAlone begins one at an old token beside one at the end.
func TestAFollowerThatIsBehindReadsAlone(t *testing.T) {
	l := &changeLog{}
	f := newChangeFeed(l)
	for range 2*changePageSize + 10 {
		l.add("n")
	}
	ahead := f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 2*changePageSize)
	defer ahead.Close()
	list, err := ahead.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 10)
	behind := f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 5)
	defer behind.Close()
	next := uint64(6)
	for next <= 2*changePageSize+10 {
		list, err := behind.Next(t.Context())
		require.NoError(t, err)
		for i := range list {
			require.Equal(t, next, list[i].Change)
			next++
		}
	}
	require.Equal(t, 3, l.countReads(), "the end comes from what the other has read")
}

// TestAReadThatFailsFailsForAllWhoWait sees that an error is shared, and that the end of one
// caller is no error of the others.
func TestAReadThatFailsFailsForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &changeLog{err: errors.New("store is gone"), delay: time.Second}
		f := newChangeFeed(l)
		var wg sync.WaitGroup
		for range 20 {
			follower := f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0)
			wg.Go(func() {
				defer follower.Close()
				_, err := follower.Next(t.Context())
				if err == nil || err.Error() != "store is gone" {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, l.countReads(), 2)

		l.err = nil
		l.add("n")
		leaves, cancel := context.WithCancel(t.Context())
		first, second := f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0), f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0)
		defer second.Close()
		wg.Go(func() {
			defer first.Close()
			if _, err := first.Next(leaves); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(cancel)
		list, err := second.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		wg.Wait()
	})
}

func TestKeptPagesAreBounded(t *testing.T) {
	l := &changeLog{}
	r := &changeReader{list: l.readList}
	for i := range uint64(3 * maxKeptPages) {
		l.add("n")
		list, _, err := r.ReadChanges(t.Context(), nil, i)
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
	require.Len(t, r.pages, maxKeptPages)
	l.list = append(l.list, checkpoint.Interrupt{Change: 1000, Message: strings.Repeat("x", maxKeptPageBytes)})
	list, _, err := r.ReadChanges(t.Context(), nil, 3*maxKeptPages)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Empty(t, r.pages)
	require.Zero(t, r.bytes)
	list, _, err = r.ReadChanges(t.Context(), nil, 3*maxKeptPages)
	require.NoError(t, err)
	require.Len(t, list, 1, "another follower reads it anew")
}

// TestAFollowerKnowsWhenItHasSeenAll reads what there is in several pages.
func TestAFollowerKnowsWhenItHasSeenAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &changeLog{}
		f := newChangeFeed(l)
		for range changePageSize + 1 {
			l.add("n")
		}
		follower := f.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0)
		defer follower.Close()
		for range 2 {
			_, err := follower.Next(t.Context())
			require.NoError(t, err)
			require.Zero(t, follower.WholeUntil(), "a page is not all, and a read may leave out what changes")
		}
		lastRead := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := follower.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, follower.WholeUntil().After(lastRead), "an empty read tells it, too")
		require.True(t, follower.WholeUntil().Before(time.Now()))
	})
}
