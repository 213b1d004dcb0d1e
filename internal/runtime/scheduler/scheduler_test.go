package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
)

// world is all that a scheduler sees: a store with threads that are due, queues, and
// what became of the threads.
type world struct {
	mu          sync.Mutex
	due         []string
	granted     []string
	served      []string
	noSlot      bool
	waiting     int           // threads that are due and queued, and stand before the others
	lookTime    time.Duration // that a look at them takes
	looks       int
	failures    map[string]error // what processing a thread returns
	processed   []string
	quarantined map[string]int // failures that were stored
	abandoned   map[string]struct{}
}

func (w *world) Due(_ context.Context, limit int) ([]string, time.Time, error) {
	if w.waiting > 0 {
		advanceTime(w.lookTime)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	list := slices.Repeat([]string{"waiting"}, w.waiting)
	list = append(list, w.due...)
	if limit < len(list) {
		return list[:limit], time.Now(), nil
	}
	return list, time.Time{}, nil
}

func (w *world) Head(_ context.Context, thread string) (checkpoint.Head, error) {
	return checkpoint.Head{Thread: thread, Faults: 2}, nil
}

func (w *world) ProcessDue(_ context.Context, thread string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processed = append(w.processed, thread)
	err := w.failures[thread]
	if err == nil {
		w.due = slices.DeleteFunc(w.due, func(x string) bool { return x == thread })
	}
	return err
}

func (w *world) FreeSpace(context.Context, string) error { return nil }

func (w *world) StoreQuarantine(_ context.Context, head *checkpoint.Head, failures int, _ time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quarantined[head.Thread] = failures
	return nil
}

func (w *world) HasFreeSlot() bool { return !w.noSlot }

func (w *world) GrantWaiting(int) (threads []string, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	threads, w.granted = w.granted, nil
	return threads, w.noSlot
}

func (w *world) EndGrants([]string)          {}
func (w *world) IsQueued(thread string) bool { return thread == "waiting" }
func (w *world) CountQueued() int            { return w.waiting }

func (w *world) MarkMaybeLeased(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned[thread] = struct{}{}
}

func (w *world) ListMaybeLeased() []string { return nil }

func (w *world) ClearMaybeLeased(thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.abandoned, thread)
}

func (w *world) queueServed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	threads := w.served
	w.served = nil
	return threads
}

// takeProcessed returns, sorted, what was processed since the last call.
func (w *world) takeProcessed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	threads := w.processed
	w.processed = nil
	slices.Sort(threads)
	return threads
}

// advanceTime moves the clock of a bubble.
func advanceTime(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// runScheduler runs a scheduler over a world until the test ends. It is for a bubble
// of synctest.
func runScheduler(t *testing.T, w *world) *scheduler.Scheduler {
	w.quarantined, w.abandoned = make(map[string]int), make(map[string]struct{})
	began := time.Now()
	s := scheduler.New(scheduler.Options{
		Store: w, Granter: w, Queue: w, Abandoned: w, IsLive: func(string) bool { return false },
		ReportLive: func() {}, QueueServed: w.queueServed, ScanInterval: time.Second,
		Uptime: func() time.Duration { return time.Since(began) }, Now: time.Now, Observer: runtime.NopObserver{}, Logger: zap.NewNop(),
	})
	s.SetProcessor(w)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.Run(t.Context(), stop) })
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	return s
}

func TestDueThreadsAreProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{due: []string{"a", "b"}, granted: []string{"c"}, served: []string{"d"}}
		s := runScheduler(t, w)
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c", "d"}, w.takeProcessed())

		w.mu.Lock()
		w.due = []string{"e"}
		w.mu.Unlock()
		s.Wake()
		synctest.Wait()
		require.Equal(t, []string{"e"}, w.takeProcessed())

		w.mu.Lock()
		w.due = []string{"f"}
		w.mu.Unlock()
		synctest.Wait()
		require.Empty(t, w.takeProcessed(), "no scan is due")
		advanceTime(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"f"}, w.takeProcessed())
	})
}

func TestWakeWithoutSlotLeavesTheStoreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{noSlot: true, due: []string{"a"}}
		s := runScheduler(t, w)
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed(), "a scan looks all the same")
		w.mu.Lock()
		w.due = []string{"b"}
		w.mu.Unlock()
		s.Wake()
		synctest.Wait()
		require.Empty(t, w.takeProcessed())
	})
}

// Many threads that wait for a slot of their tenant stand before the others in the store.
// The scheduler looks over them for a small part of the time, however often it is woken, and
// still finds the others.
func TestManyWaitingThreadsAreLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{waiting: 1000, lookTime: time.Millisecond}
		s := runScheduler(t, w)
		const rounds = 1000
		for n := range rounds {
			if n == rounds/2 {
				w.mu.Lock()
				w.due = []string{"a"}
				w.mu.Unlock()
			}
			s.Wake()
			advanceTime(time.Millisecond)
		}
		require.Equal(t, []string{"a"}, w.takeProcessed())
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Greater(t, w.looks, rounds/20)
		require.LessOrEqual(t, w.looks, rounds/9)
	})
}

// A few threads that wait don't slow down others.
func TestFewWaitingThreadsDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{waiting: 100, lookTime: time.Millisecond}
		s := runScheduler(t, w)
		for range 50 {
			advanceTime(2 * time.Millisecond)
			w.mu.Lock()
			w.due = []string{"a"}
			w.mu.Unlock()
			s.Wake()
			advanceTime(2 * time.Millisecond)
			require.Equal(t, []string{"a"}, w.takeProcessed())
		}
	})
}

func TestFailingThreadIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{due: []string{"a", "b"}, failures: map[string]error{"a": errors.New("broken")}}
		s := runScheduler(t, w)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, w.takeProcessed())
		require.Equal(t, map[string]int{"a": 3}, w.quarantined, "its head knew of two")
		s.Wake()
		synctest.Wait()
		require.Empty(t, w.takeProcessed())
		advanceTime(4*time.Second + time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed(), "the pause is over")
		require.Equal(t, 4, w.quarantined["a"])

		s.NoteCommitted("a", 0)
		s.Wake()
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed(), "a change without faults ends the quarantine")
	})
}

func TestSchedulerPausesWhileTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{due: []string{"a"}, failures: map[string]error{"a": checkpoint.ErrUnavailable}}
		s := runScheduler(t, w)
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed())
		require.Contains(t, w.abandoned, "a")
		s.Wake()
		synctest.Wait()
		require.Empty(t, w.takeProcessed(), "it pauses")
		require.Empty(t, w.quarantined, "the thread is not to blame")
		advanceTime(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed())

		advanceTime(time.Second + time.Millisecond) // the pause of two seconds is half over
		s.NoteCommitted("other", 0)
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.takeProcessed(), "a change that the store took ends the pause")
	})
}
