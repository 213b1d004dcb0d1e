package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// taskRun is a runtime.Host and runtime.Effects that records its calls.
type taskRun struct {
	mu                sync.Mutex
	emitted           []string
	gaps              int
	markers           []checkpoint.EventKind
	strandedCount     int
	unassignedReasons []string
	emitGate          chan struct{} // holds Emit up, when set
	memoGate          chan struct{} // holds Remember up, when set
	memos             map[string]payload.JSON
	memoErr           error // of Remember, when set
}

func (r *taskRun) EmitEvent(e runtime.Emission) {
	if r.emitGate != nil {
		<-r.emitGate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == runtime.EventGap {
		r.gaps++
		return
	}
	if e.Kind == runtime.EventRestarted || e.Kind == runtime.EventWorkerLost || e.Kind == runtime.EventContinued {
		r.markers = append(r.markers, e.Kind)
		return
	}
	r.emitted = append(r.emitted, string(e.Value))
}

func (r *taskRun) RecordMemo(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	if r.memoGate != nil {
		<-r.memoGate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memoErr != nil {
		return "", false, r.memoErr
	}
	if first, known := r.memos[m.Key]; known {
		return first, true, nil
	}
	if r.memos == nil {
		r.memos = make(map[string]payload.JSON)
	}
	r.memos[m.Key] = m.Value
	return m.Value, false, nil
}

func (r *taskRun) ResetIdleTimeout() {}

func (r *taskRun) ReportUnassigned(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unassignedReasons = append(r.unassignedReasons, why)
}

func (r *taskRun) HandOff() { r.ReportUnassigned("handed over") }

func (r *taskRun) NotifyStranded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strandedCount++
}

func (r *taskRun) CallGraph(context.Context, runtime.GraphCall) (runtime.CallResult, error) {
	return runtime.CallResult{}, errors.New("not here")
}

var testGraph = &graph.Graph{Name: "g", Version: "1"}

func newTask(id string, r *taskRun) *runtime.Task {
	return &runtime.Task{ID: id, Graph: testGraph, Node: &graph.Node{Name: "a"}, Effects: r, Host: r, Attempt: 1}
}

func newHello(id string, slots int, held ...string) message.Hello {
	return message.Hello{
		Worker: id, Capabilities: []message.Capability{{Graph: "g"}}, HeldLeases: held, Credit: message.Credit{Total: slots}, ComparesAnswers: true,
	}
}

// executeAsync runs a task in the background.
func executeAsync(ctx context.Context, h *worker.Hub, t *runtime.Task) <-chan message.Result {
	out := make(chan message.Result, 1)
	go func() { out <- h.Execute(ctx, t) }()
	return out
}

func openSession(t *testing.T, h *worker.Hub, hello message.Hello) *worker.Session {
	t.Helper()
	s, _, err := h.OpenSession(hello)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func nextAssignment(t *testing.T, s *worker.Session) message.Assignment {
	t.Helper()
	for {
		m, err := s.NextMessage(t.Context())
		require.NoError(t, err)
		if a, ok := m.(message.Assignment); ok {
			return a
		}
	}
}

// sleepVirtual lets time pass, in the bubble of a test.
func sleepVirtual(d time.Duration) { <-time.NewTimer(d).C }

func newResult(update string) message.Result { return message.Result{Update: payload.JSON(update)} }

func completeTask(t *testing.T, h *worker.Hub, a message.Assignment, update string) {
	t.Helper()
	r, err := h.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult(update)})
	require.NoError(t, err)
	require.False(t, r.IsDuplicate)
}

func TestAWorkerWithoutHeartbeatsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		heard := &taskRun{}
		r := executeAsync(t.Context(), h, newTask("t1", heard))
		nextAssignment(t, s)
		began := time.Now()
		var err error
		for err == nil { // at this very moment the lease ends too, and the task may be offered again
			_, err = s.NextMessage(t.Context())
		}
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
		require.Equal(t, 30*time.Second, time.Since(began), "three beats of ten seconds")
		synctest.Wait() // the lease has ended
		s.Close()
		openSession(t, h, newHello("w1", 0)) // has come back without the task
		completeTask(t, h, nextAssignment(t, openSession(t, h, newHello("w2", 1))), "2")
		require.Equal(t, newResult("2"), <-r)
		require.Contains(t, heard.markers, runtime.EventWorkerLost)
	})
}

// The operator sees how many tasks wait, why, and how many were lost.
func TestTasksThatWaitAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		counted := func(wantUnserved, wantBusy int) {
			t.Helper()
			synctest.Wait()
			unserved, busy := h.WaitingTasks()
			require.Equal(t, []int{wantUnserved, wantBusy}, []int{unserved, busy})
		}
		counted(0, 0)
		gone, cancel := context.WithCancel(t.Context())
		r0 := executeAsync(gone, h, newTask("t0", &taskRun{}))
		r1 := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		r2 := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		counted(3, 0)
		cancel()
		<-r0
		counted(2, 0)
		s := openSession(t, h, newHello("w1", 1))
		s.HandleHeartbeat(1, []string{nextAssignment(t, s).Token})
		counted(0, 1)
		s.Close()
		counted(1, 0)
		require.Zero(t, h.WorkerLosses())
		sleepVirtual(time.Minute)
		counted(2, 0)
		require.Equal(t, uint64(1), h.WorkerLosses())
		s = openSession(t, h, newHello("w2", 2))
		completeTask(t, h, nextAssignment(t, s), "2")
		completeTask(t, h, nextAssignment(t, s), "2")
		<-r1
		<-r2
		counted(0, 0)
	})
}

// The worker that comes back with its task goes on with what it has said.
func TestAWorkerThatComesBackContinuesItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first := worker.New(worker.Options{Key: key})
		ctx, cancel := context.WithCancel(t.Context())
		r := executeAsync(ctx, first, newTask("t1", &taskRun{}))
		a := nextAssignment(t, openSession(t, first, newHello("w1", 1)))

		second := worker.New(worker.Options{Key: key})
		s := openSession(t, second, newHello("w1", 1, a.Token))
		heard := &taskRun{}
		again := executeAsync(t.Context(), second, newTask("t1", heard))
		synctest.Wait()
		s.HandleEvents(a.Token, []runtime.Emission{{Kind: checkpoint.EventMessage, Value: "1"}}, 0)
		completeTask(t, second, a, "2")
		require.Equal(t, newResult("2"), <-again)
		require.Equal(t, []checkpoint.EventKind{runtime.EventContinued}, heard.markers)
		require.Equal(t, []string{"1"}, heard.emitted)
		cancel()
		<-r
	})
}

func TestALeaseLastsAsLongAsHeartbeatsRenewIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		r := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		for n := range uint64(100) {
			sleepVirtual(10 * time.Second)
			s.HandleHeartbeat(n, []string{a.Token})
			m, err := s.NextMessage(t.Context())
			require.NoError(t, err)
			require.Equal(t, message.HeartbeatAck{Number: n}, m)
		}
		// Now the worker forgets the task, but is alive.
		for n := range uint64(3) {
			sleepVirtual(10 * time.Second)
			s.HandleHeartbeat(n, nil)
		}
		sleepVirtual(time.Second)
		again := nextAssignment(t, s)
		require.Equal(t, 2, again.Delivery)
		s.HandleHeartbeat(9, []string{a.Token, again.Token})
		var ack message.HeartbeatAck
		for ack.Number != 9 {
			m, err := s.NextMessage(t.Context())
			require.NoError(t, err)
			var ok bool
			ack, ok = m.(message.HeartbeatAck)
			require.True(t, ok)
		}
		require.Equal(t, message.HeartbeatAck{Number: 9, LostLeases: []string{a.Token}}, ack)
		completeTask(t, h, again, "1")
		<-r
	})
}

func TestAReclaimedTaskOfNoRunIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first := worker.New(worker.Options{Key: key})
		s := openSession(t, first, newHello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := executeAsync(ctx, first, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)

		second := worker.New(worker.Options{Key: key})
		s2, w, err := second.OpenSession(newHello("w1", 1, a.Token))
		require.NoError(t, err)
		defer s2.Close()
		require.Equal(t, []string{a.Token}, w.RenewedLeases)
		began := time.Now()
		for n := uint64(0); ; n++ {
			sleepVirtual(10 * time.Second)
			s2.HandleHeartbeat(n, []string{a.Token})
			m, err := s2.NextMessage(t.Context())
			require.NoError(t, err)
			ack, ok := m.(message.HeartbeatAck)
			require.True(t, ok)
			if len(ack.LostLeases) > 0 {
				break
			}
		}
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		_, err = second.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		cancel()
		<-r
	})
}

// A result may come before the run is taken up, and before the stream.
func TestAResultWaitsForItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first := worker.New(worker.Options{Key: key})
		s := openSession(t, first, newHello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		r := executeAsync(ctx, first, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)

		second := worker.New(worker.Options{Key: key})
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := second.CompleteTask(short, message.Completion{Token: a.Token, Result: newResult("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWaitTimeout})

		taken := make(chan error, 1)
		go func() {
			_, err := second.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")})
			taken <- err
		}()
		sleepVirtual(5 * time.Second)
		synctest.Wait()
		require.Equal(t, newResult("1"), <-executeAsync(t.Context(), second, newTask("t1", &taskRun{})))
		require.NoError(t, <-taken)
		again, err := second.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("1")})
		require.NoError(t, err)
		require.True(t, again.IsDuplicate)
		cancel()
		<-r
	})
}

// A memo that is stored is known to the worker that gets the task next, though the
// worker that recorded it had lost the task before it was told.
func TestAMemoIsNotLostWithItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		e := &taskRun{memoGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", e))
		first := openSession(t, h, newHello("w1", 1))
		a := nextAssignment(t, first)
		lost := make(chan error, 1)
		go func() {
			_, _, err := h.RecordMemo(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
			lost <- err
		}()
		synctest.Wait()
		first.Close()
		openSession(t, h, newHello("w1", 0)) // has come back without its task
		second := openSession(t, h, newHello("w2", 1))
		b := nextAssignment(t, second)
		require.Empty(t, b.Memos, "it is not stored yet")
		close(e.memoGate)
		require.ErrorIs(t, <-lost, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		value, existed, err := h.RecordMemo(t.Context(), b.Token, checkpoint.Memo{Key: "k", Value: "2"})
		require.NoError(t, err)
		require.Equal(t, []any{payload.JSON("1"), true}, []any{value, existed})
		second.Close()
		openSession(t, h, newHello("w2", 0))
		c := nextAssignment(t, openSession(t, h, newHello("w3", 1)))
		require.Equal(t, []checkpoint.Memo{{Key: "k", Value: "1"}}, c.Memos)
		completeTask(t, h, c, "1")
		<-r
	})
}

// A worker was paused in a node that asks. Others asked in its place, the server
// was replaced, and the interrupt was answered: what the worker says now is about
// the time before the answer.
func TestALeaseFromBeforeAnAnswerIsNotOneForAfter(t *testing.T) {
	for name, after := range map[string]func(*runtime.Task){
		"answered": func(t *runtime.Task) {
			t.Journal.Answers = []pregel.Answer{{InterruptID: "q1", Value: "1"}}
		},
		"answered in a called graph": func(t *runtime.Task) { t.LastWaiting = []string{"q1"} },
		"retried":                    func(t *runtime.Task) { t.Attempt++ },
		"routed":                     func(t *runtime.Task) { t.Router, t.Branch = "f", "b" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := []byte("secret")
				first := worker.New(worker.Options{Key: key})
				s := openSession(t, first, newHello("w1", 1))
				ctx, cancel := context.WithCancel(t.Context())
				before := executeAsync(ctx, first, newTask("t1", &taskRun{}))
				stale := nextAssignment(t, s)
				cancel()
				<-before

				second := worker.New(worker.Options{Key: key, ReclaimTimeout: time.Minute})
				s = openSession(t, second, newHello("w1", 2, stale.Token))
				resumed := newTask("t1", &taskRun{})
				after(resumed)
				r := executeAsync(t.Context(), second, resumed)
				fresh := nextAssignment(t, s)
				require.NotEqual(t, stale.Token, fresh.Token)
				began := time.Now()
				completeTask(t, second, fresh, "new")
				require.Equal(t, newResult("new"), <-r)
				_, err := second.CompleteTask(t.Context(), message.Completion{Token: stale.Token, Result: newResult("old")})
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
				require.Zero(t, time.Since(began), "it is told at once")
			})
		})
	}
}

// The work of routers and reducers depends on what is lost with a server.
func TestALeaseOfARouterEndsWithItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("secret")
		first := worker.New(worker.Options{Key: key})
		s := openSession(t, first, newHello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		route := newTask("t1", &taskRun{})
		route.Router, route.Branch = "f", "b"
		before := executeAsync(ctx, first, route)
		stale := nextAssignment(t, s)
		cancel()
		<-before
		second := worker.New(worker.Options{Key: key})
		_, welcome, err := second.OpenSession(newHello("w1", 1, stale.Token))
		require.NoError(t, err)
		require.Equal(t, []string{stale.Token}, welcome.LostLeases)
	})
}

func TestEventsAreBoundedAndNeverHoldUpAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		e := &taskRun{emitGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", e))
		a := nextAssignment(t, s)
		var events []runtime.Emission
		for i := range 5000 {
			events = append(events, runtime.Emission{Kind: checkpoint.EventCustom, Value: payload.JSON(fmt.Sprint(i))})
		}
		events[0].Durable = true
		s.HandleEvents(a.Token, events, 0)
		synctest.Wait()
		s.HandleEvents(a.Token, events[:1], 0)
		m, err := s.NextMessage(t.Context())
		require.NoError(t, err)
		require.Equal(t, message.ThrottleNotice{MinInterval: 100 * time.Millisecond, DroppedEvents: 4999 - 1024}, m)
		completeTask(t, h, a, "1") // acknowledged though the run takes no events
		close(e.emitGate)
		<-r
		e.mu.Lock()
		defer e.mu.Unlock()
		require.Equal(t, 1, e.gaps)
		require.Len(t, e.emitted, 1+1024+1)
		require.Equal(t, []string{"0", "3976", "0"}, []string{e.emitted[0], e.emitted[1], e.emitted[1025]},
			"what must be kept is kept, of the others the newest")
	})
}

func TestTooManyDurableEventsFailTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		e := &taskRun{emitGate: make(chan struct{})}
		r := executeAsync(t.Context(), h, newTask("t1", e))
		a := nextAssignment(t, s)
		events := make([]runtime.Emission, 5000)
		for i := range events {
			events[i].Durable = true
		}
		s.HandleEvents(a.Token, events, 0)
		close(e.emitGate)
		failed := <-r
		require.Equal(t, "EmitFlood", failed.Failure.Type)
		require.True(t, failed.Failure.Permanent)
	})
}

func TestTheMissingWorkerIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		serves []message.Capability
		want   string
	}{
		"nobody":        {nil, "no worker of graph g is connected"},
		"other graph":   {[]message.Capability{{Graph: "h"}}, "no worker of graph g is connected"},
		"other node":    {[]message.Capability{{Graph: "g", Node: "b"}}, "no connected worker serves node a of graph g"},
		"other version": {[]message.Capability{{Graph: "g", Version: "2"}}, "no connected worker serves version 1 of graph g; those that are connected serve 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				greeting := newHello("w1", 1)
				greeting.Capabilities = c.serves
				s := openSession(t, h, greeting)
				ctx, cancel := context.WithCancel(t.Context())
				e := &taskRun{}
				r := executeAsync(ctx, h, newTask("t1", e))
				synctest.Wait()
				s.Close()
				require.Equal(t, []string{c.want}, e.unassignedReasons)
				cancel()
				require.True(t, strings.HasPrefix((<-r).Failure.Message, "the task was stopped"))
			})
		})
	}
}

func TestTasksGoOutOldestFirstAndToWhoHasMostRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		var results []<-chan message.Result
		for i := range 5 {
			results = append(results, executeAsync(t.Context(), h, newTask(fmt.Sprint("t", i), &taskRun{})))
			synctest.Wait()
		}
		small := openSession(t, h, newHello("w1", 1))
		big := openSession(t, h, newHello("w2", 3))
		got := []message.Assignment{nextAssignment(t, small), nextAssignment(t, big), nextAssignment(t, big), nextAssignment(t, big)}
		for i, a := range got {
			require.Equal(t, fmt.Sprint("t", i), a.Task.ID)
		}
		for _, a := range got {
			completeTask(t, h, a, "1")
		}
		last := nextAssignment(t, small)
		require.Equal(t, "t4", last.Task.ID)
		completeTask(t, h, last, "1")
		for _, r := range results {
			<-r
		}
	})
}

func TestADrainingHubHandsOverWhatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		e := &taskRun{}
		r := executeAsync(ctx, h, newTask("t1", e))
		synctest.Wait()
		h.Drain(time.Second, "bye")
		synctest.Wait()
		require.Equal(t, []string{"no worker of graph g is connected", "handed over"}, e.unassignedReasons)
		cancel()
		<-r
	})
}

func TestADrainingHubTakesNoWorkers(t *testing.T) {
	h := worker.New(worker.Options{})
	h.Drain(time.Second, "bye")
	_, _, err := h.OpenSession(newHello("w1", 1))
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonServerDraining})
}

// A lease of an earlier server is of no use when the task was done without it.
func TestALeaseThatComesBackTooLateIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("secret")
		first := worker.New(worker.Options{Key: key})
		s := openSession(t, first, newHello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		before := executeAsync(ctx, first, newTask("t1", &taskRun{}))
		stale := nextAssignment(t, s)
		cancel()
		<-before

		second := worker.New(worker.Options{Key: key})
		r := executeAsync(t.Context(), second, newTask("t1", &taskRun{}))
		completeTask(t, second, nextAssignment(t, openSession(t, second, newHello("w2", 1))), "2")
		require.Equal(t, newResult("2"), <-r)
		began := time.Now()
		_, welcome, err := second.OpenSession(newHello("w1", 1, stale.Token))
		require.NoError(t, err)
		require.Equal(t, []string{stale.Token}, welcome.LostLeases)
		_, err = second.CompleteTask(t.Context(), message.Completion{Token: stale.Token, Result: newResult("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		require.Zero(t, time.Since(began))
	})
}

// What comes back is as old as it was.
func TestAReturnedTaskGoesBeforeYoungerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		for _, id := range []string{"t1", "t2", "t3"} {
			executeAsync(t.Context(), h, newTask(id, &taskRun{}))
			synctest.Wait()
		}
		require.Equal(t, "t1", nextAssignment(t, s).Task.ID)
		s.Close()
		openSession(t, h, newHello("w1", 0)) // has come back without its task
		require.Equal(t, "t1", nextAssignment(t, openSession(t, h, newHello("w2", 1))).Task.ID)
	})
}
