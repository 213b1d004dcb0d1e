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
)

// holding greets as a worker that comes back with leases.
func holding(id string, slots uint32, held ...*graphdv1.TaskAssignment) *graphdv1.Hello {
	h := hello(id, slots)
	for _, a := range held {
		h.HeldLeases = append(h.HeldLeases, a.GetLease().GetToken())
	}
	return h
}

// begins waits for a task and says that the worker has begun it.
func (w *session) begins() *graphdv1.TaskAssignment {
	w.t.Helper()
	a := w.next()
	w.beat(1, a.GetLease().GetToken())
	await(w.t, w.acks, "the beat's ack")
	return a
}

// remembers records a memo of a task and returns its value.
func (w *session) remembers(a *graphdv1.TaskAssignment, key, value string) string {
	w.t.Helper()
	recorded, err := w.c.RecordMemo(w.t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: key, Value: text(value),
	})
	require.NoError(w.t, err)
	return recorded.GetValue().GetJson()
}

// drivenAgain waits until a server has taken a run up from the one before.
func (s *server) drivenAgain(run *graphdv1.Run, fence uint64) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		head, err := s.store.Head(s.t.Context(), run.GetThreadId())
		return err == nil && head.Fence > fence
	}, time.Minute, time.Millisecond)
}

// recovering is a server whose leases of tasks outlast every test.
func recovering(store *memory.Store, key string) config {
	options := worker.Options{Key: []byte(key), Beat: 30 * time.Second, LeaseTTL: time.Hour}
	return config{store: store, hub: options, lease: time.Second}
}

// A server dies, or is cut off in its drain, while a worker is in the middle of
// a task. Another worker is back first and is not given the task; the holder
// keeps it.
func TestARestartedServerKeepsATaskForItsHolder(t *testing.T) {
	ends := map[string]func(*server){"killed": (*server).crash, "drained": (*server).kill}
	for key, name := range map[string]string{"secret": "with a worker key", "": "without"} {
		for how, end := range ends {
			t.Run(how+" "+name, func(t *testing.T) {
				store := memory.New(memory.Options{})
				s := start(t, recovering(store, key))
				w := s.connect(hello("w1", 1))
				run := s.begin("g", `{"x":1}`)
				a := w.begins()
				end(s)

				s = start(t, recovering(store, key))
				other := s.connect(hello("w2", 5))
				s.drivenAgain(run, 1)
				w = s.connect(holding("w1", 1, a))
				require.Empty(t, w.welcome.GetLost())
				require.Equal(t, "1", w.remembers(a, "charge", "1"))
				_, err := w.complete(a, completed(`{"x":2}`))
				require.NoError(t, err)
				require.JSONEq(t, `{"x":2,"log":[]}`, s.wait(run).GetOutput().GetJson())
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
	s := start(t, recovering(store, ""))
	w := s.connect(hello("w1", 1))
	run := s.begin("g", `{"x":1}`)
	a := w.begins()
	s.crash()

	s = start(t, recovering(store, ""))
	other := s.connect(hello("w2", 5))
	require.Equal(t, "1", other.remembers(a, "charge", "1"))
	_, err := other.complete(a, completed(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.wait(run).GetOutput().GetJson())
	require.Empty(t, other.tasks)
}

// The holder does not come back: another worker gets the task when the time of a
// lease has passed, and what the holder says later is refused.
func TestATaskGoesOnWithoutItsHolder(t *testing.T) {
	store := memory.New(memory.Options{})
	c := recovering(store, "")
	s := start(t, c)
	w := s.connect(hello("w1", 1))
	run := s.begin("g", `{"x":1}`)
	a := w.begins()
	require.Equal(t, `"once"`, w.remembers(a, "charge", `"once"`))
	s.crash()

	c.hub.Beat, c.hub.LeaseTTL = 100*time.Millisecond, time.Second
	s = start(t, c)
	other := s.connect(hello("w2", 5))
	other.keepAlive(func() [][]byte { return nil })
	b := other.next()
	require.Equal(t, a.GetTaskId(), b.GetTaskId())
	require.Equal(t, `"once"`, b.GetJournal().GetEntries()[0].GetMemo().GetJson())
	w = s.connect(holding("w1", 1, a))
	require.Len(t, w.welcome.GetLost(), 1)
	_, err := w.c.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{
		LeaseToken: a.GetLease().GetToken(), Key: "late", Value: text(`1`),
	})
	require.Equal(t, "TASK_LEASE_LOST", reason(t, err))
	_, err = other.complete(b, completed(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.wait(run).GetOutput().GetJson())
}

// Tasks that no worker has are not kept back: those of a run that was handed over
// in order, and those of the supersteps after the one that is recovered.
func TestWhatNoWorkerHasIsNotKeptBack(t *testing.T) {
	store := memory.New(memory.Options{})
	s := start(t, recovering(store, ""))
	graphs := specs(chain("g", "a", "b", "c"))
	probe := s.connect(&graphdv1.Hello{
		WorkerId: "w0", Manifest: &graphdv1.WorkerManifest{Graphs: graphs, Features: []string{"drift"}}, Credit: &graphdv1.Credit{TotalSlots: 1},
	})
	run := s.begin("g", `{"x":1}`)
	a := probe.begins()
	drained := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		defer close(drained)
		go s.engine.Drain(ctx)
		_ = s.grpc.Drain(ctx)
		s.engine.Drain(ctx)
	}()
	await(t, probe.drains, "the drain")
	_, err := probe.complete(a, completed(`{"log":["a"]}`))
	require.NoError(t, err)
	await(t, drained, "the drain's end")

	s = start(t, recovering(store, ""))
	w := s.work("w1", 1, graphs, map[string]code{"b": does(`{"log":["b"]}`), "c": does(`{"log":["c"]}`)})
	require.JSONEq(t, `{"x":1,"log":["a","b","c"]}`, s.wait(run).GetOutput().GetJson())
	require.Equal(t, []string{"b", "c"}, w.ran())
}

// The attempt that a worker was given counts no more than that it holds the task:
// a server that recovers a run begins to count anew.
func TestAHolderOfALaterAttemptKeepsIt(t *testing.T) {
	store := memory.New(memory.Options{})
	s := start(t, recovering(store, ""))
	g := chain("g", "a")
	g.Nodes[0].Policy = &graphdv1.PolicySpec{
		Retry: []*graphdv1.RetrySpec{{MaxAttempts: 3, InitialInterval: durationpb.New(time.Millisecond)}},
	}
	h := hello("w1", 1)
	h.Manifest.Graphs = specs(g)
	w := s.connect(h)
	run := s.begin("g", `{"x":1}`)
	first := w.next()
	_, err := w.complete(first, failure("Some", "fails once"))
	require.NoError(t, err)
	a := w.begins()
	require.Equal(t, []any{uint32(2), first.GetTaskId()}, []any{a.GetAttempt(), a.GetTaskId()})
	s.crash()

	s = start(t, recovering(store, ""))
	other := hello("w2", 5)
	other.Manifest.Graphs = specs(g)
	w2 := s.connect(other)
	s.drivenAgain(run, 1)
	again := holding("w1", 1, first, a)
	again.Manifest.Graphs = specs(g)
	w = s.connect(again)
	require.Equal(t, [][]byte{first.GetLease().GetToken()}, append([][]byte{}, w.lostOf(first, a)...))
	_, err = w.complete(a, completed(`{"x":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":2,"log":[]}`, s.wait(run).GetOutput().GetJson())
	require.Empty(t, w2.tasks)
}

// lostOf asks by a beat which leases are lost.
func (w *session) lostOf(held ...*graphdv1.TaskAssignment) [][]byte {
	var tokens [][]byte
	for _, a := range held {
		tokens = append(tokens, a.GetLease().GetToken())
	}
	w.beat(77, tokens...)
	return await(w.t, w.acks, "the ack").GetLost()
}
