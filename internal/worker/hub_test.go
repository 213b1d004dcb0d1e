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
)

// run is what a task may ask of its run; it notes what it was asked.
type run struct {
	mu       sync.Mutex
	emitted  []string
	gaps     int
	marks    []checkpoint.EventKind
	stranded int
	told     []string
	block    chan struct{} // holds Emit up, when set
	store    chan struct{} // holds Remember up, when set
	stored   map[string]payload.JSON
	refuse   error // of Remember, when set
}

func (r *run) Emit(e runtime.Emission) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == runtime.EventGap {
		r.gaps++
		return
	}
	if e.Kind == runtime.EventAnew || e.Kind == runtime.EventLost || e.Kind == runtime.EventContinued {
		r.marks = append(r.marks, e.Kind)
		return
	}
	r.emitted = append(r.emitted, string(e.Value))
}

func (r *run) Remember(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	if r.store != nil {
		<-r.store
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return "", false, r.refuse
	}
	if first, known := r.stored[m.Key]; known {
		return first, true, nil
	}
	if r.stored == nil {
		r.stored = make(map[string]payload.JSON)
	}
	r.stored[m.Key] = m.Value
	return m.Value, false, nil
}

func (r *run) Alive() {}

func (r *run) Unassigned(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, why)
}

func (r *run) HandOver() { r.Unassigned("handed over") }

func (r *run) Strand() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stranded++
}

func (r *run) Call(context.Context, runtime.GraphCall) (runtime.CallResult, error) {
	return runtime.CallResult{}, errors.New("not here")
}

var g = &graph.Graph{Name: "g", Version: "1"}

func task(id string, r *run) *runtime.Task {
	return &runtime.Task{ID: id, Graph: g, Node: &graph.Node{Name: "a"}, Effects: r, Host: r, Attempt: 1}
}

func hello(id string, slots int, held ...string) worker.Hello {
	return worker.Hello{
		Worker: id, Serves: []worker.Served{{Graph: "g"}}, Held: held, Credit: worker.Credit{Total: slots}, Compares: true,
	}
}

// execute runs a task in the background.
func execute(ctx context.Context, h *worker.Hub, t *runtime.Task) <-chan worker.Result {
	out := make(chan worker.Result, 1)
	go func() { out <- h.Execute(ctx, t) }()
	return out
}

func open(t *testing.T, h *worker.Hub, hello worker.Hello) *worker.Session {
	t.Helper()
	s, _, err := h.Open(hello)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func next(t *testing.T, s *worker.Session) worker.Assignment {
	t.Helper()
	for {
		m, err := s.Next(t.Context())
		require.NoError(t, err)
		if a, ok := m.(worker.Assignment); ok {
			return a
		}
	}
}

// pass lets time pass, in the bubble of a test.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func done(update string) worker.Result { return worker.Result{Update: payload.JSON(update)} }

func complete(t *testing.T, h *worker.Hub, a worker.Assignment, update string) {
	t.Helper()
	r, err := h.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done(update)})
	require.NoError(t, err)
	require.False(t, r.Duplicate)
}

func TestAWorkerThatNeverBeatsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		heard := &run{}
		r := execute(t.Context(), h, task("t1", heard))
		next(t, s)
		began := time.Now()
		var err error
		for err == nil { // at this very moment the lease ends too, and the task may be offered again
			_, err = s.Next(t.Context())
		}
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWorkerSilent})
		require.Equal(t, 30*time.Second, time.Since(began), "three beats of ten seconds")
		synctest.Wait() // the lease has ended
		s.Close()
		open(t, h, hello("w1", 0)) // has come back without the task
		complete(t, h, next(t, open(t, h, hello("w2", 1))), "2")
		require.Equal(t, done("2"), <-r)
		require.Contains(t, heard.marks, runtime.EventLost)
	})
}

// The operator sees how many tasks wait, why, and how many were lost.
func TestTasksThatWaitAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		counted := func(wantUnserved, wantBusy int) {
			t.Helper()
			synctest.Wait()
			unserved, busy := h.Waiting()
			require.Equal(t, []int{wantUnserved, wantBusy}, []int{unserved, busy})
		}
		counted(0, 0)
		gone, cancel := context.WithCancel(t.Context())
		r0 := execute(gone, h, task("t0", &run{}))
		r1 := execute(t.Context(), h, task("t1", &run{}))
		r2 := execute(t.Context(), h, task("t2", &run{}))
		counted(3, 0)
		cancel()
		<-r0
		counted(2, 0)
		s := open(t, h, hello("w1", 1))
		s.Beat(1, []string{next(t, s).Token})
		counted(0, 1)
		s.Close()
		counted(1, 0)
		require.Zero(t, h.Lost())
		pass(time.Minute)
		counted(2, 0)
		require.Equal(t, uint64(1), h.Lost())
		s = open(t, h, hello("w2", 2))
		complete(t, h, next(t, s), "2")
		complete(t, h, next(t, s), "2")
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
		r := execute(ctx, first, task("t1", &run{}))
		a := next(t, open(t, first, hello("w1", 1)))

		second := worker.New(worker.Options{Key: key})
		s := open(t, second, hello("w1", 1, a.Token))
		heard := &run{}
		again := execute(t.Context(), second, task("t1", heard))
		synctest.Wait()
		s.Emit(a.Token, []runtime.Emission{{Kind: checkpoint.EventMessage, Value: "1"}}, 0)
		complete(t, second, a, "2")
		require.Equal(t, done("2"), <-again)
		require.Equal(t, []checkpoint.EventKind{runtime.EventContinued}, heard.marks)
		require.Equal(t, []string{"1"}, heard.emitted)
		cancel()
		<-r
	})
}

func TestALeaseLastsAsLongAsItIsBeaten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		r := execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		for n := range uint64(100) {
			pass(10 * time.Second)
			s.Beat(n, []string{a.Token})
			m, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, worker.Ack{Number: n}, m)
		}
		// Now the worker forgets the task, but is alive.
		for n := range uint64(3) {
			pass(10 * time.Second)
			s.Beat(n, nil)
		}
		pass(time.Second)
		again := next(t, s)
		require.Equal(t, 2, again.Delivery)
		s.Beat(9, []string{a.Token, again.Token})
		var ack worker.Ack
		for ack.Number != 9 {
			m, err := s.Next(t.Context())
			require.NoError(t, err)
			var ok bool
			ack, ok = m.(worker.Ack)
			require.True(t, ok)
		}
		require.Equal(t, worker.Ack{Number: 9, Lost: []string{a.Token}}, ack)
		complete(t, h, again, "1")
		<-r
	})
}

func TestATaskHeldForNobodyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("k")
		first := worker.New(worker.Options{Key: key})
		s := open(t, first, hello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := execute(ctx, first, task("t1", &run{}))
		a := next(t, s)

		second := worker.New(worker.Options{Key: key})
		s2, w, err := second.Open(hello("w1", 1, a.Token))
		require.NoError(t, err)
		defer s2.Close()
		require.Equal(t, []string{a.Token}, w.Renewed)
		began := time.Now()
		for n := uint64(0); ; n++ {
			pass(10 * time.Second)
			s2.Beat(n, []string{a.Token})
			m, err := s2.Next(t.Context())
			require.NoError(t, err)
			ack, ok := m.(worker.Ack)
			require.True(t, ok)
			if len(ack.Lost) > 0 {
				break
			}
		}
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		_, err = second.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")})
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
		s := open(t, first, hello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		r := execute(ctx, first, task("t1", &run{}))
		a := next(t, s)

		second := worker.New(worker.Options{Key: key})
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := second.Complete(short, worker.Completion{Token: a.Token, Result: done("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonWaitTimeout})

		taken := make(chan error, 1)
		go func() {
			_, err := second.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")})
			taken <- err
		}()
		pass(5 * time.Second)
		synctest.Wait()
		require.Equal(t, done("1"), <-execute(t.Context(), second, task("t1", &run{})))
		require.NoError(t, <-taken)
		again, err := second.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1")})
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		cancel()
		<-r
	})
}

// A memo that is stored is known to whoever gets the task next, though the
// worker that recorded it had lost the task before it was told.
func TestAMemoIsNotLostWithItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		e := &run{store: make(chan struct{})}
		r := execute(t.Context(), h, task("t1", e))
		first := open(t, h, hello("w1", 1))
		a := next(t, first)
		lost := make(chan error, 1)
		go func() {
			_, _, err := h.Remember(t.Context(), a.Token, checkpoint.Memo{Key: "k", Value: "1"})
			lost <- err
		}()
		synctest.Wait()
		first.Close()
		open(t, h, hello("w1", 0)) // has come back without its task
		second := open(t, h, hello("w2", 1))
		b := next(t, second)
		require.Empty(t, b.Memos, "it is not stored yet")
		close(e.store)
		require.ErrorIs(t, <-lost, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		value, existed, err := h.Remember(t.Context(), b.Token, checkpoint.Memo{Key: "k", Value: "2"})
		require.NoError(t, err)
		require.Equal(t, []any{payload.JSON("1"), true}, []any{value, existed})
		second.Close()
		open(t, h, hello("w2", 0))
		c := next(t, open(t, h, hello("w3", 1)))
		require.Equal(t, []checkpoint.Memo{{Key: "k", Value: "1"}}, c.Memos)
		complete(t, h, c, "1")
		<-r
	})
}

// A worker was paused in a node that asks. Others asked in its place, the server
// was replaced, and the question was answered: what the worker says now is about
// the time before the answer.
func TestALeaseFromBeforeAnAnswerIsNotOneForAfter(t *testing.T) {
	for name, after := range map[string]func(*runtime.Task){
		"answered": func(t *runtime.Task) {
			t.Journal.Answers = []pregel.Answer{{Interrupt: "q1", Value: "1"}}
		},
		"answered in a called graph": func(t *runtime.Task) { t.Waited = []string{"q1"} },
		"retried":                    func(t *runtime.Task) { t.Attempt++ },
		"routed":                     func(t *runtime.Task) { t.Router, t.Branch = "f", "b" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := []byte("secret")
				first := worker.New(worker.Options{Key: key})
				s := open(t, first, hello("w1", 1))
				ctx, cancel := context.WithCancel(t.Context())
				before := execute(ctx, first, task("t1", &run{}))
				stale := next(t, s)
				cancel()
				<-before

				second := worker.New(worker.Options{Key: key, Held: time.Minute})
				s = open(t, second, hello("w1", 2, stale.Token))
				resumed := task("t1", &run{})
				after(resumed)
				r := execute(t.Context(), second, resumed)
				fresh := next(t, s)
				require.NotEqual(t, stale.Token, fresh.Token)
				began := time.Now()
				complete(t, second, fresh, "new")
				require.Equal(t, done("new"), <-r)
				_, err := second.Complete(t.Context(), worker.Completion{Token: stale.Token, Result: done("old")})
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
		s := open(t, first, hello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		route := task("t1", &run{})
		route.Router, route.Branch = "f", "b"
		before := execute(ctx, first, route)
		stale := next(t, s)
		cancel()
		<-before
		second := worker.New(worker.Options{Key: key})
		_, welcome, err := second.Open(hello("w1", 1, stale.Token))
		require.NoError(t, err)
		require.Equal(t, []string{stale.Token}, welcome.Lost)
	})
}

func TestEventsAreBoundedAndNeverHoldUpAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		e := &run{block: make(chan struct{})}
		r := execute(t.Context(), h, task("t1", e))
		a := next(t, s)
		var events []runtime.Emission
		for i := range 5000 {
			events = append(events, runtime.Emission{Kind: checkpoint.EventCustom, Value: payload.JSON(fmt.Sprint(i))})
		}
		events[0].Durable = true
		s.Emit(a.Token, events, 0)
		synctest.Wait()
		s.Emit(a.Token, events[:1], 0)
		m, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, worker.Throttle{MinInterval: 100 * time.Millisecond, Dropped: 4999 - 1024}, m)
		complete(t, h, a, "1") // acknowledged though the run takes no events
		close(e.block)
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
		s := open(t, h, hello("w1", 1))
		e := &run{block: make(chan struct{})}
		r := execute(t.Context(), h, task("t1", e))
		a := next(t, s)
		events := make([]runtime.Emission, 5000)
		for i := range events {
			events[i].Durable = true
		}
		s.Emit(a.Token, events, 0)
		close(e.block)
		failed := <-r
		require.Equal(t, "EmitFlood", failed.Failure.Type)
		require.True(t, failed.Failure.Permanent)
	})
}

func TestWhoIsMissingIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		serves []worker.Served
		want   string
	}{
		"nobody":        {nil, "no worker of graph g is connected"},
		"other graph":   {[]worker.Served{{Graph: "h"}}, "no worker of graph g is connected"},
		"other node":    {[]worker.Served{{Graph: "g", Node: "b"}}, "no connected worker serves node a of graph g"},
		"other version": {[]worker.Served{{Graph: "g", Version: "2"}}, "no connected worker serves version 1 of graph g; those that are connected serve 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				greeting := hello("w1", 1)
				greeting.Serves = c.serves
				s := open(t, h, greeting)
				ctx, cancel := context.WithCancel(t.Context())
				e := &run{}
				r := execute(ctx, h, task("t1", e))
				synctest.Wait()
				s.Close()
				require.Equal(t, []string{c.want}, e.told)
				cancel()
				require.True(t, strings.HasPrefix((<-r).Failure.Message, "the task was stopped"))
			})
		})
	}
}

func TestTasksGoOutOldestFirstAndToWhoHasMostRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		var results []<-chan worker.Result
		for i := range 5 {
			results = append(results, execute(t.Context(), h, task(fmt.Sprint("t", i), &run{})))
			synctest.Wait()
		}
		small := open(t, h, hello("w1", 1))
		big := open(t, h, hello("w2", 3))
		got := []worker.Assignment{next(t, small), next(t, big), next(t, big), next(t, big)}
		for i, a := range got {
			require.Equal(t, fmt.Sprint("t", i), a.Task.ID)
		}
		for _, a := range got {
			complete(t, h, a, "1")
		}
		last := next(t, small)
		require.Equal(t, "t4", last.Task.ID)
		complete(t, h, last, "1")
		for _, r := range results {
			<-r
		}
	})
}

func TestADrainingHubHandsOverWhatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		e := &run{}
		r := execute(ctx, h, task("t1", e))
		synctest.Wait()
		h.Drain(time.Second, "bye")
		synctest.Wait()
		require.Equal(t, []string{"no worker of graph g is connected", "handed over"}, e.told)
		cancel()
		<-r
	})
}

func TestADrainingHubTakesNoWorkers(t *testing.T) {
	h := worker.New(worker.Options{})
	h.Drain(time.Second, "bye")
	_, _, err := h.Open(hello("w1", 1))
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonServerDraining})
}

// A lease of an earlier server is of no use when the task was done without it.
func TestALeaseThatComesBackTooLateIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("secret")
		first := worker.New(worker.Options{Key: key})
		s := open(t, first, hello("w1", 1))
		ctx, cancel := context.WithCancel(t.Context())
		before := execute(ctx, first, task("t1", &run{}))
		stale := next(t, s)
		cancel()
		<-before

		second := worker.New(worker.Options{Key: key})
		r := execute(t.Context(), second, task("t1", &run{}))
		complete(t, second, next(t, open(t, second, hello("w2", 1))), "2")
		require.Equal(t, done("2"), <-r)
		began := time.Now()
		_, welcome, err := second.Open(hello("w1", 1, stale.Token))
		require.NoError(t, err)
		require.Equal(t, []string{stale.Token}, welcome.Lost)
		_, err = second.Complete(t.Context(), worker.Completion{Token: stale.Token, Result: done("1")})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		require.Zero(t, time.Since(began))
	})
}

// What comes back is as old as it was.
func TestAReturnedTaskGoesBeforeYoungerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		for _, id := range []string{"t1", "t2", "t3"} {
			execute(t.Context(), h, task(id, &run{}))
			synctest.Wait()
		}
		require.Equal(t, "t1", next(t, s).Task.ID)
		s.Close()
		open(t, h, hello("w1", 0)) // has come back without its task
		require.Equal(t, "t1", next(t, open(t, h, hello("w2", 1))).Task.ID)
	})
}
