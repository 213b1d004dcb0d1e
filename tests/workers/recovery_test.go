package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/tests/harness"
)

// helloWithLeases greets as a worker that comes back with leases.
func helloWithLeases(id string, slots uint32, held ...*graphdv1.TaskAssignment) *graphdv1.Hello {
	h := newHello(id, slots)
	for _, a := range held {
		h.HeldLeases = append(h.HeldLeases, a.GetLease().GetToken())
	}
	return h
}

// beginTask waits for a task and says that the worker has begun it.
func (w *workerSession) beginTask() *graphdv1.TaskAssignment {
	w.t.Helper()
	a := w.nextTask()
	w.sendHeartbeat(1, a.GetLease().GetToken())
	receiveOrFail(w.t, w.acks, "the beat's ack")
	return a
}

// recordMemo records a memo of a task and returns its value.
func (w *workerSession) recordMemo(a *graphdv1.TaskAssignment, key, value string) string {
	w.t.Helper()
	recorded, err := w.client.RecordMemo(w.t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: key, Value: harness.NewPayload(value),
	})
	require.NoError(w.t, err)
	return recorded.GetValue().GetJson()
}

// waitTakenUp waits until a server has taken a run up from the one before.
func (s *server) waitTakenUp(run *graphdv1.Run, fence uint64) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		head, err := s.store.Head(s.t.Context(), run.GetThreadId())
		return err == nil && head.Fence > fence
	}, time.Minute, time.Millisecond)
}

// recoveryConfig is a server whose leases of tasks outlive every test.
func recoveryConfig(store *memory.Store, key string) config {
	options := worker.Options{Key: []byte(key), HeartbeatInterval: 30 * time.Second, LeaseTTL: time.Hour}
	return config{store: store, hub: options, lease: time.Second}
}

// A server dies, or is cut off in its drain, while a worker is in the middle of
// a task. Another worker is back first and is not given the task; the holder
// keeps it.
func TestARestartedServerKeepsATaskForItsHolder(t *testing.T) {
	ends := map[string]func(*server){"killed": (*server).crashServer, "drained": (*server).killServer}
	for key, name := range map[string]string{"secret": "with a worker key", "": "without"} {
		for how, end := range ends {
			t.Run(how+" "+name, func(t *testing.T) {
				store := memory.New(memory.Options{})
				s := startServer(t, recoveryConfig(store, key))
				w := s.connectWorker(newHello("w1", 1))
				run := s.startRun("g", `{"x":1}`)
				a := w.beginTask()
				end(s)

				s = startServer(t, recoveryConfig(store, key))
				other := s.connectWorker(newHello("w2", 5))
				s.waitTakenUp(run, 1)
				w = s.connectWorker(helloWithLeases("w1", 1, a))
				require.Empty(t, w.welcome.GetLost())
				require.Equal(t, "1", w.recordMemo(a, "charge", "1"))
				_, err := w.completeTask(a, completedResult(`{"x":2}`))
				require.NoError(t, err)
				require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
				require.Empty(t, other.tasks)
				require.Empty(t, w.tasks)
			})
		}
	}
}

// The memo and the result of the holder come by calls, before its stream is back
// and before the run is taken up.
func TestAHolderNeedsNoStreamToHandOver(t *testing.T) {
	store := memory.New(memory.Options{})
	s := startServer(t, recoveryConfig(store, ""))
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	a := w.beginTask()
	s.crashServer()

	s = startServer(t, recoveryConfig(store, ""))
	other := s.connectWorker(newHello("w2", 5))
	require.Equal(t, "1", other.recordMemo(a, "charge", "1"))
	_, err := other.completeTask(a, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
	require.Empty(t, other.tasks)
}

// The holder does not come back: another worker gets the task when the time of a
// lease has passed, and what the holder says later is refused.
func TestATaskGoesOnWithoutItsHolder(t *testing.T) {
	store := memory.New(memory.Options{})
	c := recoveryConfig(store, "")
	s := startServer(t, c)
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	a := w.beginTask()
	require.Equal(t, `"once"`, w.recordMemo(a, "charge", `"once"`))
	s.crashServer()

	c.hub.HeartbeatInterval, c.hub.LeaseTTL = 100*time.Millisecond, time.Second
	s = startServer(t, c)
	other := s.connectWorker(newHello("w2", 5))
	other.keepSendingHeartbeats(func() [][]byte { return nil })
	b := other.nextTask()
	require.Equal(t, a.GetTaskId(), b.GetTaskId())
	require.Equal(t, `"once"`, b.GetJournal().GetEntries()[0].GetMemo().GetJson())
	w = s.connectWorker(helloWithLeases("w1", 1, a))
	require.Len(t, w.welcome.GetLost(), 1)
	_, err := w.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: "late", Value: harness.NewPayload(`1`),
	})
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
	_, err = other.completeTask(b, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
}

// Tasks that no worker has are not kept back: those of a run that was handed over
// in order, and those of the supersteps after the one that is recovered.
func TestWhatNoWorkerHasIsNotKeptBack(t *testing.T) {
	store := memory.New(memory.Options{})
	s := startServer(t, recoveryConfig(store, ""))
	graphs := listSpecs(newChainGraph("g", "a", "b", "c"))
	probe := s.connectWorker(&graphdv1.Hello{
		WorkerId: "w0", Manifest: &graphdv1.WorkerManifest{Graphs: graphs, Features: []string{"drift"}}, Credit: &graphdv1.Credit{TotalSlots: 1},
	})
	run := s.startRun("g", `{"x":1}`)
	a := probe.beginTask()
	drained := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		defer close(drained)
		go s.engine.Drain(ctx)
		_ = s.grpc.Drain(ctx)
		s.engine.Drain(ctx)
	}()
	receiveOrFail(t, probe.drains, "the drain")
	_, err := probe.completeTask(a, completedResult(`{"log":["a"]}`))
	require.NoError(t, err)
	receiveOrFail(t, drained, "the drain's end")

	s = startServer(t, recoveryConfig(store, ""))
	w := s.startWorker("w1", 1, graphs, map[string]taskFunc{"b": returnsUpdate(`{"log":["b"]}`), "c": returnsUpdate(`{"log":["c"]}`)})
	require.JSONEq(t, `{"x":1,"log":["a","b","c"]}`, s.waitStopped(run).GetOutput().GetJson())
	require.Equal(t, []string{"b", "c"}, w.listRan())
}

// The attempt that a worker was given counts no more than that it holds the task:
// a server that recovers a run begins to count anew.
func TestAHolderOfALaterAttemptKeepsIt(t *testing.T) {
	store := memory.New(memory.Options{})
	s := startServer(t, recoveryConfig(store, ""))
	g := newChainGraph("g", "a")
	g.Nodes[0].Policy = &graphdv1.PolicySpec{
		Retry: []*graphdv1.RetrySpec{{MaxAttempts: 3, InitialInterval: durationpb.New(time.Millisecond)}},
	}
	h := newHello("w1", 1)
	h.Manifest.Graphs = listSpecs(g)
	w := s.connectWorker(h)
	run := s.startRun("g", `{"x":1}`)
	first := w.nextTask()
	_, err := w.completeTask(first, failedResult("Some", "fails once"))
	require.NoError(t, err)
	a := w.beginTask()
	require.Equal(t, []any{uint32(2), first.GetTaskId()}, []any{a.GetAttempt(), a.GetTaskId()})
	s.crashServer()

	s = startServer(t, recoveryConfig(store, ""))
	other := newHello("w2", 5)
	other.Manifest.Graphs = listSpecs(g)
	w2 := s.connectWorker(other)
	s.waitTakenUp(run, 1)
	again := helloWithLeases("w1", 1, first, a)
	again.Manifest.Graphs = listSpecs(g)
	w = s.connectWorker(again)
	require.Equal(t, [][]byte{first.GetLease().GetToken()}, append([][]byte{}, w.lostLeases(first, a)...))
	_, err = w.completeTask(a, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
	require.Empty(t, w2.tasks)
}

// lostLeases asks by a heartbeat which leases are lost.
func (w *workerSession) lostLeases(held ...*graphdv1.TaskAssignment) [][]byte {
	var tokens [][]byte
	for _, a := range held {
		tokens = append(tokens, a.GetLease().GetToken())
	}
	w.sendHeartbeat(77, tokens...)
	return receiveOrFail(w.t, w.acks, "the ack").GetLost()
}
