package workers_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/tests/harness"
)

// newHello greets as a worker that brings graph g with node a.
func newHello(id string, slots uint32) *graphdv1.Hello {
	return &graphdv1.Hello{
		WorkerId: id, Manifest: &graphdv1.WorkerManifest{Graphs: listSpecs(newChainGraph("g", "a")), Features: []string{"drift"}},
		Credit: &graphdv1.Credit{TotalSlots: slots, Revision: 1},
	}
}

func TestALostWorkersTaskMovesWhenItsLeaseEnds(t *testing.T) {
	s := startServer(t, config{hub: worker.Options{HeartbeatInterval: time.Second, LeaseTTL: 4 * time.Second}})
	first := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	lost := first.nextTask()
	first.sendHeartbeat(1, lost.GetLease().GetToken())
	receiveOrFail(t, first.acks, "the beat's ack")
	first.cancel()

	second := s.connectWorker(newHello("w2", 1))
	second.keepSendingHeartbeats(func() [][]byte { return nil })
	moved := second.nextTask()
	require.Equal(t, lost.GetTaskId(), moved.GetTaskId())
	require.Equal(t, []uint32{1, 2}, []uint32{moved.GetAttempt(), moved.GetDelivery()})
	require.Equal(t, []any{lost.GetRandomSeed(), lost.GetLogicalTime().AsTime()},
		[]any{moved.GetRandomSeed(), moved.GetLogicalTime().AsTime()})

	_, err := second.completeTask(lost, completedResult(`{"x":"of the zombie"}`))
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
	resp, err := second.completeTask(moved, completedResult(`{"x":"right"}`))
	require.NoError(t, err)
	require.False(t, resp.GetDuplicate())
	require.JSONEq(t, `{"x":"right","log":[]}`, s.waitStopped(run).GetOutput().GetJson())

	resp, err = second.completeTask(moved, completedResult(`{"x":"again"}`))
	require.NoError(t, err, "a result that comes again is acknowledged again")
	require.True(t, resp.GetDuplicate())
	_, err = second.completeTask(lost, completedResult(`{"x":"of the zombie"}`))
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
}

// A connection breaks before any sign of life of a task that has left for its
// worker: the task is that worker's until its lease ends, or it comes back.
func TestAnOfferIsKeptForItsWorker(t *testing.T) {
	for name, comeBack := range map[string]func(s *server, a *graphdv1.TaskAssignment){
		"that does not come back": func(*server, *graphdv1.TaskAssignment) {},
		"that comes back without": func(s *server, _ *graphdv1.TaskAssignment) { s.connectWorker(newHello("w1", 0)) },
		"that comes back with it": func(s *server, a *graphdv1.TaskAssignment) { s.connectWorker(helloWithLeases("w1", 1, a)) },
		"that leaves":             nil,
		"that comes back and leaves": func(s *server, a *graphdv1.TaskAssignment) {
			s.connectWorker(helloWithLeases("w1", 1, a)).sendGoodbye(a.GetLease().GetToken())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ttl := time.Hour
			if name == "that does not come back" {
				ttl = 4 * time.Second
			}
			s := startServer(t, config{hub: worker.Options{HeartbeatInterval: time.Second, LeaseTTL: ttl}})
			first := s.connectWorker(newHello("w1", 1))
			run := s.startRun("g", `{"x":1}`)
			offered := first.nextTask()
			second := s.connectWorker(newHello("w2", 1))
			second.keepSendingHeartbeats(func() [][]byte { return nil })
			if comeBack == nil {
				first.sendGoodbye()
			} else {
				first.cancel()
				s.waitWorkerGone("w1")
				require.Empty(t, second.tasks, "it may have begun")
				comeBack(s, offered)
			}
			if name == "that comes back with it" {
				_, err := second.completeTask(offered, completedResult(`{"x":"kept"}`))
				require.NoError(t, err)
				require.JSONEq(t, `{"x":"kept","log":[]}`, s.waitStopped(run).GetOutput().GetJson())
				require.Empty(t, second.tasks)
				return
			}
			moved := second.nextTask()
			require.Equal(t, offered.GetTaskId(), moved.GetTaskId())
			require.NotEqual(t, offered.GetLease().GetToken(), moved.GetLease().GetToken())
			_, err := second.completeTask(offered, completedResult(`{"x":"old"}`))
			require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
			_, err = second.completeTask(moved, completedResult(`{"x":"new"}`))
			require.NoError(t, err)
			require.JSONEq(t, `{"x":"new","log":[]}`, s.waitStopped(run).GetOutput().GetJson())
		})
	}
}

// sendGoodbye says goodbye and ends the stream in order.
func (w *workerSession) sendGoodbye(released ...[]byte) {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Goodbye{Goodbye: &graphdv1.Goodbye{Released: released}}})
	require.NoError(w.t, w.stream.CloseSend())
}

// waitWorkerGone waits until the server knows that a worker has gone.
func (s *server) waitWorkerGone(id string) {
	require.Eventually(s.t, func() bool {
		list, err := s.ListWorkers(s.t.Context(), &graphdv1.ListWorkersRequest{})
		return err == nil && !slices.ContainsFunc(list.GetWorkers(), func(w *graphdv1.WorkerInfo) bool { return w.GetWorkerId() == id })
	}, time.Minute, time.Millisecond)
}

func TestAReconnectingWorkerKeepsWhatItHolds(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 2))
	run := s.startRun("g", `{"x":1}`)
	a := first.nextTask()
	first.sendUpdate(&graphdv1.TaskUpdate{LeaseToken: a.GetLease().GetToken(), Kind: &graphdv1.TaskUpdate_Alive{}})
	first.sendHeartbeat(1, a.GetLease().GetToken())
	receiveOrFail(t, first.acks, "the beat's ack")
	first.cancel()
	again := newHello("w1", 2)
	again.HeldLeases = [][]byte{a.GetLease().GetToken(), []byte("made up")}
	second := s.connectWorker(again)
	require.Len(t, second.welcome.GetRenewed(), 1)
	require.Equal(t, a.GetLease().GetToken(), second.welcome.GetRenewed()[0].GetToken())
	require.Equal(t, [][]byte{[]byte("made up")}, second.welcome.GetLost())
	_, err := second.completeTask(a, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
}

func TestOfTwoWorkersWithOneNameTheNewerWins(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	old := first.nextTask()
	first.sendHeartbeat(1, old.GetLease().GetToken())
	receiveOrFail(t, first.acks, "the beat's ack")
	second := s.connectWorker(newHello("w1", 1))
	err := receiveOrFail(t, first.end, "the end of the older stream")
	require.Equal(t, "WORKER_REPLACED", reasonOf(t, err))
	require.Equal(t, codes.Aborted, status.Code(err))
	moved := second.nextTask()
	_, err = first.completeTask(old, completedResult(`{"x":"old"}`))
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
	_, err = second.completeTask(moved, completedResult(`{"x":"new"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":"new","log":[]}`, s.waitStopped(run).GetOutput().GetJson())
	list, err := s.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetWorkers(), 1)
}

func TestARefusedTaskGoesToAnother(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	refused := first.nextTask()
	second := s.connectWorker(newHello("w2", 1))
	first.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Nack{Nack: &graphdv1.Nack{
		LeaseToken: refused.GetLease().GetToken(), Reason: "no memory",
	}}})
	moved := second.nextTask()
	require.EqualValues(t, 1, moved.GetAttempt())
	_, err := second.completeTask(moved, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
}

func TestATaskThatIsRefusedTooOftenFails(t *testing.T) {
	s := startServer(t, config{hub: worker.Options{MaxNacks: 3}})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	for range 3 {
		_, err := w.completeTask(w.nextTask(), &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{
			Message: "no node a here", Cause: graphdv1.TaskFailed_CAUSE_NOT_SERVED,
		}}})
		require.NoError(t, err)
	}
	run = s.waitStopped(run)
	require.Equal(t, "Refused", run.GetFailure().GetType())
	require.Contains(t, run.GetFailure().GetMessage(), "no node a here")
}

func TestATaskThatKillsItsWorkersFails(t *testing.T) {
	s := startServer(t, config{hub: worker.Options{HeartbeatInterval: time.Second, LeaseTTL: 2 * time.Second, MaxLosses: 2}})
	w := s.connectWorker(newHello("w1", 5))
	w.keepSendingHeartbeats(func() [][]byte { return nil })
	run := s.startRun("g", `{"x":1}`)
	w.nextTask()
	w.nextTask()
	run = s.waitStopped(run)
	require.Equal(t, []string{"NODE_FAILED", "WorkerLost"}, []string{run.GetFailure().GetReason(), run.GetFailure().GetType()})
}

func TestALeavingWorkerFinishesWhatItHas(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 2))
	first.keepSendingHeartbeats(func() [][]byte { return nil })
	one, two := s.startRun("g", `{"x":1}`), s.startRun("g", `{"x":2}`)
	a, b := first.nextTask(), first.nextTask()
	if a.GetRunId() != one.GetRunId() {
		a, b = b, a
	}
	first.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Goodbye{Goodbye: &graphdv1.Goodbye{
		Released: [][]byte{b.GetLease().GetToken()},
	}}})
	second := s.connectWorker(newHello("w2", 5))
	moved := second.nextTask()
	require.Equal(t, b.GetTaskId(), moved.GetTaskId())
	three := s.startRun("g", `{"x":3}`)
	fresh := second.nextTask()
	for _, done := range []*graphdv1.TaskAssignment{a, moved, fresh} {
		_, err := second.completeTask(done, completedResult(`{"log":["done"]}`))
		require.NoError(t, err)
	}
	for _, run := range []*graphdv1.Run{one, two, three} {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
	}
	require.Empty(t, first.tasks)
}

func TestADrainingServerLetsItsWorkersFinish(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 2))
	run := s.startRun("g", `{"x":1}`)
	a := w.nextTask()
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		go s.engine.Drain(ctx)
		drained <- s.grpc.Drain(ctx)
	}()
	require.NotZero(t, receiveOrFail(t, w.drains, "the drain").GetDeadline().AsDuration())
	_, err := w.completeTask(a, completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.Equal(t, "SERVER_DRAINING", reasonOf(t, receiveOrFail(t, w.end, "the end of the stream")))
	require.NoError(t, receiveOrFail(t, drained, "the server"))
	stored, err := s.store.Run(t.Context(), run.GetThreadId(), run.GetRunId())
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, string(stored.Output))
}

func TestARunWaitsForAWorkerAndSaysSo(t *testing.T) {
	s := startServer(t, config{})
	probe := s.connectWorker(newHello("w0", 0)) // registers the graph and takes nothing
	probe.cancel()
	require.Eventually(t, func() bool {
		list, err := s.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
		return err == nil && len(list.GetWorkers()) == 0
	}, time.Minute, 5*time.Millisecond)
	stream, err := s.Stream(t.Context(), &graphdv1.StreamRequest{
		Run: &graphdv1.RunSpec{CreateThread: true, Graph: "g", Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":1}`)}},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_TASKS,
		}},
	})
	require.NoError(t, err)
	var waits []*graphdv1.TaskChange
	var connected *workerSession
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		if c := e.GetTask(); c.GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			waits = append(waits, c)
			require.Nil(t, connected, "told once")
			connected = s.connectWorker(newHello("w1", 1))
			_, err := connected.completeTask(connected.nextTask(), completedResult(`{"x":2}`))
			require.NoError(t, err)
		}
		if e.GetEnd() != nil {
			require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, e.GetEnd().GetRun().GetState())
			break
		}
	}
	require.Len(t, waits, 1)
	require.Equal(t, "NO_WORKER_AVAILABLE", waits[0].GetFailure().GetReason())
	require.Contains(t, waits[0].GetFailure().GetMessage(), "no worker of graph g is connected")
}

func TestACancelledTaskIsToldToStop(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	a := w.nextTask()
	_, err := s.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(t, err)
	require.Equal(t, a.GetLease().GetToken(), receiveOrFail(t, w.cancels, "the cancel").GetLeaseToken())
	require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, s.waitStopped(run).GetState())
	w.sendHeartbeat(1, a.GetLease().GetToken())
	require.Equal(t, [][]byte{a.GetLease().GetToken()}, receiveOrFail(t, w.acks, "the ack").GetLost())
	_, err = w.completeTask(a, completedResult(`{"x":2}`))
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
}

func TestMemosMoveWithTheTask(t *testing.T) {
	s := startServer(t, config{})
	first := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":1}`)
	a := first.nextTask()
	resp, err := first.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: "charge", Value: harness.NewPayload(`1`),
	})
	require.NoError(t, err)
	require.False(t, resp.GetExisted())
	resp, err = first.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: "charge", Value: harness.NewPayload(`2`),
	})
	require.NoError(t, err)
	require.Equal(t, []any{true, "1"}, []any{resp.GetExisted(), resp.GetValue().GetJson()}, "the first one stays")
	first.cancel()
	s.waitWorkerGone("w1")
	s.connectWorker(newHello("w1", 0))
	second := s.connectWorker(newHello("w2", 1))
	moved := second.nextTask()
	require.Len(t, moved.GetJournal().GetEntries(), 1)
	require.Equal(t, "1", moved.GetJournal().GetEntries()[0].GetMemo().GetJson())
	_, err = second.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: "other", Value: harness.NewPayload(`3`),
	})
	require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
	_, err = second.completeTask(moved, completedResult(""))
	require.NoError(t, err)
	s.waitStopped(run)
}

// A server goes away while a worker computes. With the same key the next one
// takes the result of the worker; with another one the task runs once more, when
// the lease can have lasted no longer.
func TestAServerIsReplacedWhileAWorkerComputes(t *testing.T) {
	for name, key := range map[string]string{"same key": "secret", "another key": "other"} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			options := worker.Options{Key: []byte("secret"), HeartbeatInterval: time.Second, LeaseTTL: 4 * time.Second}
			s := startServer(t, config{store: store, hub: options, lease: 3 * time.Second})
			w := s.connectWorker(newHello("w1", 1))
			run := s.startRun("g", `{"x":1}`)
			a := w.nextTask()
			w.sendHeartbeat(1, a.GetLease().GetToken())
			receiveOrFail(t, w.acks, "the ack")
			s.killServer()

			options.Key = []byte(key)
			next := startServer(t, config{store: store, hub: options, lease: 3 * time.Second})
			again := newHello("w1", 1)
			again.HeldLeases = [][]byte{a.GetLease().GetToken()}
			w = next.connectWorker(again)
			w.keepSendingHeartbeats(func() [][]byte { return [][]byte{a.GetLease().GetToken()} })
			if key == "secret" {
				require.Len(t, w.welcome.GetRenewed(), 1)
				_, err := w.completeTask(a, completedResult(`{"log":["of the first delivery"]}`))
				require.NoError(t, err)
			} else {
				require.Len(t, w.welcome.GetLost(), 1)
				_, err := w.completeTask(a, completedResult(`{"log":["of the first delivery"]}`))
				require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err))
				_, err = w.completeTask(w.nextTask(), completedResult(`{"log":["of the second delivery"]}`))
				require.NoError(t, err)
			}
			done := next.waitStopped(run)
			require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, done.GetState())
			require.Equal(t, 1, strings.Count(done.GetOutput().GetJson(), "delivery"), "applied once")
			require.Empty(t, w.tasks, "and not run more often than needed")
		})
	}
}

func TestCreditIsRespected(t *testing.T) {
	s := startServer(t, config{})
	h := newHello("w1", 3)
	h.Manifest.Graphs = listSpecs(newChainGraph("g", "a"), newChainGraph("h", "b"))
	h.Credit.PerNode = map[string]uint32{"h/b": 1}
	w := s.connectWorker(h)
	var running, most, ofB, mostB atomic.Int32
	raise := func(n, top *atomic.Int32) {
		v := n.Add(1)
		for old := top.Load(); v > old && !top.CompareAndSwap(old, v); old = top.Load() {
		}
	}
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				select {
				case a := <-w.tasks:
					raise(&running, &most)
					if a.GetGraph() == "h" {
						raise(&ofB, &mostB)
					}
					for range 3 { // give others the chance to be too many
						w.sendUpdate(&graphdv1.TaskUpdate{LeaseToken: a.GetLease().GetToken(), Kind: &graphdv1.TaskUpdate_Alive{}})
					}
					if a.GetGraph() == "h" {
						ofB.Add(-1)
					}
					running.Add(-1)
					_, _ = w.completeTask(a, completedResult(`{"log":[1]}`))
				case <-w.stream.Context().Done():
					return
				}
			}
		})
	}
	var runs []*graphdv1.Run
	for i := range 40 {
		runs = append(runs, s.startRun([]string{"g", "h"}[i%2], `{"x":1}`))
		if i == 20 {
			w.sendCredit(&graphdv1.Credit{TotalSlots: 2, PerNode: map[string]uint32{"h/b": 1}, Revision: 3})
			w.sendCredit(&graphdv1.Credit{TotalSlots: 100, Revision: 2}) // late: ignored
		}
	}
	for _, run := range runs {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
	}
	require.LessOrEqual(t, most.Load(), int32(3))
	require.LessOrEqual(t, mostB.Load(), int32(1))
	w.cancel()
	workers.Wait()
}

// A run that waits for a worker does not hold a server up that leaves.
func TestAWaitingRunIsHandedOver(t *testing.T) {
	store := memory.New(memory.Options{})
	s := startServer(t, config{store: store})
	w := s.connectWorker(newHello("w1", 0))
	w.cancel()
	run := s.startRun("g", `{"x":1}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		go s.engine.Drain(ctx)
		_ = s.grpc.Drain(ctx)
		s.engine.Drain(ctx)
	}()
	receiveOrFail(t, drained, "the drain")
	next := startServer(t, config{store: store})
	second := next.connectWorker(newHello("w2", 1))
	_, err := second.completeTask(second.nextTask(), completedResult(`{"x":2}`))
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, next.waitStopped(run).GetState())
}
