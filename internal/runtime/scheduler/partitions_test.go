package scheduler_test

import (
	"context"
	"fmt"
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

const testPartitions = 16

// partitionedWorld is a store whose threads lie in partitions. A thread is named by its partition
// and a number.
type partitionedWorld struct {
	mu        sync.Mutex
	due       [testPartitions][]string
	late      time.Duration
	looks     map[int]int // by partition, since the last takeLooks
	isDown    [testPartitions]bool
	answers   chan struct{} // a look at a partition that is down ends with it; nil = at once
	processed map[string][]string
}

func (w *partitionedWorld) PartitionCount() int { return testPartitions }

func (w *partitionedWorld) PartitionOf(thread string) (partition int) {
	_, _ = fmt.Sscanf(thread, "%d/", &partition)
	return partition
}

func (w *partitionedWorld) LookForDue(ctx context.Context, looks []checkpoint.DueLook) []checkpoint.DueThreads {
	found := make([]checkpoint.DueThreads, len(looks))
	waits := false
	w.mu.Lock()
	answers := w.answers
	for i, look := range looks {
		w.looks[look.Partition]++
		if w.isDown[look.Partition] {
			found[i].Err = checkpoint.ErrUnavailable
			waits = answers != nil
			continue
		}
		all := w.due[look.Partition]
		begin := min(look.Skip, len(all))
		found[i] = checkpoint.DueThreads{Threads: slices.Clone(all[begin:min(begin+look.Limit, len(all))]), Count: len(all)}
		if len(all) > 0 {
			found[i].Late = w.late
		}
	}
	w.mu.Unlock()
	if waits {
		select {
		case <-answers:
		case <-ctx.Done():
		}
	}
	return found
}

// takeLooks returns how many looks there were at each partition since the last call.
func (w *partitionedWorld) takeLooks() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	looks := w.looks
	w.looks = make(map[int]int)
	return looks
}

// partitionedServer is the processor of one server.
type partitionedServer struct {
	*partitionedWorld
	*world

	name string
}

// ProcessDue takes the thread off the list, unless another server did.
func (s *partitionedServer) ProcessDue(_ context.Context, thread string) error {
	w := s.partitionedWorld
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processed[s.name] = append(w.processed[s.name], thread)
	p := w.PartitionOf(thread)
	w.due[p] = slices.DeleteFunc(w.due[p], func(x string) bool { return x == thread })
	return nil
}

// runServers runs servers that know each other until the test ends. It is for a bubble of synctest.
func runServers(t *testing.T, w *partitionedWorld, names ...string) map[string]*scheduler.Scheduler {
	t.Helper()
	w.looks, w.processed = make(map[int]int), make(map[string][]string)
	began := time.Now()
	all := make(map[string]*scheduler.Scheduler)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, name := range names {
		one := &partitionedServer{partitionedWorld: w, world: &world{quarantined: map[string]int{}, abandoned: map[string]struct{}{}}, name: name}
		s := scheduler.New(scheduler.Options{
			Server: name, Store: one.world, Partitions: w, Granter: one.world, Queue: one.world, Abandoned: one.world,
			IsLive: func(string) bool { return false }, ReportLive: func() {}, QueueServed: one.queueServed, ScanInterval: time.Second,
			Uptime: func() time.Duration { return time.Since(began) }, Now: time.Now, Observer: runtime.NopObserver{}, Logger: zap.NewNop(),
		})
		s.SetProcessor(one)
		s.SetOtherServers(names)
		running.Go(func() { s.Run(t.Context(), stop) })
		all[name] = s
	}
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	synctest.Wait()
	w.takeLooks()
	return all
}

// addDue adds due threads to a partition.
func (w *partitionedWorld) addDue(partition, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		w.due[partition] = append(w.due[partition], fmt.Sprintf("%d/%d", partition, i))
	}
}

// countProcessed counts the threads that each server processed.
func (w *partitionedWorld) countProcessed() (count map[string]int, sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count = make(map[string]int)
	for name, threads := range w.processed {
		count[name] = len(threads)
		sum += len(threads)
	}
	return count, sum
}

// TestServersShareTheLooks has four servers, and one thread due in each partition: no thread is
// processed by two, and a partition is looked at less than once a server and second.
func TestServersShareTheLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		runServers(t, w, "a", "b", "c", "d")
		advanceTime(4*time.Second + time.Millisecond)
		w.takeLooks()
		for p := range testPartitions {
			w.addDue(p, 1)
		}
		advanceTime(12 * time.Second)
		count, sum := w.countProcessed()
		require.Equal(t, testPartitions, sum, "each by one server: %v", count)
		require.Greater(t, len(count), 2)
		for p, n := range w.takeLooks() {
			require.InDelta(t, 12*(1+1./2+1./3+1./4), n, 5, "partition %d", p)
		}
	})
}

// TestManyDueThreadsAreForAllServers has many due threads in one partition.
func TestManyDueThreadsAreForAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		runServers(t, w, "a", "b", "c", "d")
		w.addDue(3, 5000)
		advanceTime(20 * time.Second)
		_, sum := w.countProcessed()
		require.Empty(t, w.due[3])
		require.GreaterOrEqual(t, sum, 5000)
		require.Less(t, sum, 5500, "some are processed twice at most")
	})
}

// TestAnotherServerTakesWhatAnOwnerDoesNot has an owner that is gone, although the others do not
// know it.
func TestAnotherServerTakesWhatAnOwnerDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		all := runServers(t, w, "a", "b")
		for _, s := range all {
			s.SetOtherServers([]string{"a", "b", "gone"})
		}
		w.late = time.Minute
		for p := range testPartitions {
			w.addDue(p, 1)
		}
		advanceTime(10 * time.Second)
		_, sum := w.countProcessed()
		require.GreaterOrEqual(t, sum, testPartitions)
		for p := range testPartitions {
			require.Empty(t, w.due[p])
		}
	})
}

// TestAPartitionThatIsDownDelaysNoOther has a look hang at a partition that is down.
func TestAPartitionThatIsDownDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		runServers(t, w, "a")
		w.mu.Lock()
		w.isDown[5], w.answers = true, make(chan struct{})
		w.mu.Unlock()
		advanceTime(4 * time.Second) // a look finds out in its time, and the next hangs
		w.addDue(5, 1)
		w.addDue(6, 1)
		advanceTime(2 * time.Second)
		_, sum := w.countProcessed()
		require.Equal(t, 1, sum)
		w.mu.Lock()
		w.isDown[5] = false
		close(w.answers)
		w.answers = nil
		w.mu.Unlock()
		advanceTime(2 * time.Second)
		_, sum = w.countProcessed()
		require.Equal(t, 2, sum)
	})
}

// TestAServerKnowsWhatItLeavesDue has a server process a thread without a look, whoever looks for
// it first.
func TestAServerKnowsWhatItLeavesDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		all := runServers(t, w, "a", "b", "c", "d")
		for p := range testPartitions {
			all["a"].NoteDue(fmt.Sprintf("%d/now", p), 0)
			all["b"].NoteDue(fmt.Sprintf("%d/soon", p), 100*time.Millisecond)
			all["c"].NoteDue(fmt.Sprintf("%d/later", p), time.Hour)
			all["d"].NoteDue(fmt.Sprintf("%d/never", p), 50*time.Millisecond)
			all["d"].ForgetDue(fmt.Sprintf("%d/never", p))
		}
		synctest.Wait()
		count, _ := w.countProcessed()
		require.Equal(t, map[string]int{"a": testPartitions}, count)
		advanceTime(101 * time.Millisecond)
		count, _ = w.countProcessed()
		require.Equal(t, map[string]int{"a": testPartitions, "b": testPartitions}, count)
	})
}

// TestOnlyTheFirstServersAreWoken has a server without capacity wake all others for a thread.
func TestOnlyTheFirstServersAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &partitionedWorld{}
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint("server-", i))
		}
		for _, s := range runServers(t, w, names...) {
			s.WakeForThread("7/thread")
		}
		synctest.Wait()
		count, sum := w.countProcessed()
		require.Equal(t, 2, sum, "%v", count)
		require.Empty(t, w.takeLooks(), "no look is needed")
	})
}
