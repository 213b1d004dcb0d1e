package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
	"github.com/graphd-dev/graphd/internal/worker/kept"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// completeAsync runs the completion of a task in the background.
func completeAsync(ctx context.Context, h *worker.Hub, a message.Assignment, next bool) <-chan message.Receipt {
	out := make(chan message.Receipt, 1)
	go func() {
		r, err := h.CompleteTask(ctx, message.Completion{Token: a.Token, Result: newResult("1"), WantsNext: next})
		if err != nil {
			r.IsDuplicate = true
		}
		out <- r
	}()
	synctest.Wait()
	return out
}

// requireNothingSent reports whether nothing was sent on the stream.
func requireNothingSent(t *testing.T, s *worker.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := s.NextMessage(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheNextTaskComesWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		first := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		answer := completeAsync(t.Context(), h, nextAssignment(t, s), true)
		require.Equal(t, newResult("1"), <-first, "the result does not wait for the next task")
		second := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		got := <-answer
		require.Equal(t, "t2", got.Next.Task.ID)
		require.Equal(t, 1, got.Next.Delivery)
		requireNothingSent(t, s)
		completeTask(t, h, *got.Next, "2")
		require.Equal(t, newResult("2"), <-second)
	})
}

func TestATaskThatWaitsAlreadyComesWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		synctest.Wait()
		require.Equal(t, "t2", (<-completeAsync(t.Context(), h, a, true)).Next.Task.ID)
	})
}

func TestAnAnswerWaitsForTheNextTaskOnly(t *testing.T) {
	for name, c := range map[string]struct {
		next bool
		act  func(s *worker.Session)
		want time.Duration
	}{
		"a moment":                     {next: true, want: 20 * time.Millisecond},
		"if it was asked for":          {next: false},
		"as long as the session lives": {next: true, act: func(s *worker.Session) { s.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				s := openSession(t, h, newHello("w1", 1))
				executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
				a := nextAssignment(t, s)
				began := time.Now()
				answer := completeAsync(t.Context(), h, a, c.next)
				if c.act != nil {
					c.act(s)
				}
				require.Equal(t, message.Receipt{}, <-answer)
				require.Equal(t, c.want, time.Since(began))
				if c.act != nil {
					return
				}
				executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
				require.Equal(t, "t2", nextAssignment(t, s).Task.ID, "later tasks come on the stream")
			})
		})
	}
}

// The answer may be lost, and so may its connection; the call is repeated.
func TestARepeatedCallGetsTheSameNextTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		answer := completeAsync(t.Context(), h, a, true)
		second := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		lost := (<-answer).Next

		again := <-completeAsync(t.Context(), h, a, true)
		require.True(t, again.IsDuplicate)
		require.Equal(t, lost.Token, again.Next.Token)
		s.HandleAlive(again.Next.Token)
		require.Nil(t, (<-completeAsync(t.Context(), h, a, true)).Next, "it has been begun: no worker gets it twice")
		completeTask(t, h, *again.Next, "2")
		require.Equal(t, newResult("2"), <-second)
	})
}

func TestATaskWhoseAnswerWasLostWithItsWorkerGoesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		answer := completeAsync(ctx, h, a, true)
		second := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		cancel()
		given := (<-answer).Next
		s.Close()
		sleepVirtual(20 * time.Second) // the answer may have arrived: the lease has to end
		other := nextAssignment(t, openSession(t, h, newHello("w2", 1)))
		require.Equal(t, "t2", other.Task.ID)
		completeTask(t, h, other, "2")
		require.Equal(t, newResult("2"), <-second)
		if given != nil {
			_, err := h.CompleteTask(t.Context(), message.Completion{Token: given.Token, Result: newResult("3")})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		}
		require.Nil(t, (<-completeAsync(t.Context(), h, a, true)).Next)
	})
}

func TestTheNextTaskOfAThreadStaysWithTheWorkerThatWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		openSession(t, h, newHello("w2", 9))
		answer := completeAsync(t.Context(), h, a, true)
		executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		require.Equal(t, "t2", (<-answer).Next.Task.ID, "though another one has more room")
	})
}

func TestNoNextTaskIsGivenBeyondTheCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		s.HandleCredit(message.Credit{Total: 0, Revision: 1})
		answer := completeAsync(t.Context(), h, a, true)
		executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		require.Nil(t, (<-answer).Next)
	})
}

// nextReply waits for the answer to a result that was sent on the stream.
func nextReply(t *testing.T, s *worker.Session) message.CompletionReply {
	t.Helper()
	m, err := s.NextMessage(t.Context())
	require.NoError(t, err)
	r, ok := m.(message.CompletionReply)
	require.True(t, ok, "%T", m)
	return r
}

func TestAResultOnTheStreamIsAnsweredOnTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		next   bool
		follow bool
		want   time.Duration
	}{
		"with the next task":              {next: true, follow: true},
		"after a moment without a task":   {next: true, want: 20 * time.Millisecond},
		"at once when nothing is awaited": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := worker.New(worker.Options{})
				s := openSession(t, h, newHello("w1", 1))
				first := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
				a := nextAssignment(t, s)
				began := time.Now()
				s.HandleCompletion(t.Context(), message.Completion{Token: a.Token, Result: newResult("1"), WantsNext: c.next})
				require.Equal(t, newResult("1"), <-first)
				if c.follow {
					executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
				}
				r := nextReply(t, s)
				require.Equal(t, a.Token, r.Token)
				require.NoError(t, r.Err)
				require.Equal(t, c.follow, r.Receipt.Next != nil)
				require.Equal(t, c.want, time.Since(began))
				sleepVirtual(time.Second)
				requireNothingSent(t, s)

				s.HandleCompletion(t.Context(), message.Completion{Token: a.Token, Result: newResult("7"), WantsNext: true})
				again := nextReply(t, s)
				require.True(t, again.Receipt.IsDuplicate)
				if c.follow {
					require.Equal(t, r.Receipt.Next.Token, again.Receipt.Next.Token)
				}
			})
		})
	}
}

// One timer answers all results that wait, each in its time.
func TestResultsOnTheStreamAreAnsweredInTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 4))
		var all []message.Assignment
		for _, id := range []string{"t1", "t2", "t3"} {
			executeAsync(t.Context(), h, newTask(id, &taskRun{}))
			all = append(all, nextAssignment(t, s))
		}
		began := time.Now()
		complete := func(i int) {
			s.HandleCompletion(t.Context(), message.Completion{Token: all[i].Token, Result: newResult("1"), WantsNext: true})
		}
		requireAnswer := func(i int, after time.Duration) {
			require.Equal(t, message.CompletionReply{Token: all[i].Token}, nextReply(t, s))
			require.Equal(t, after, time.Since(began))
		}
		complete(0)
		executeAsync(t.Context(), h, newTask("t4", &taskRun{}))
		require.NotNil(t, nextReply(t, s).Receipt.Next)
		sleepVirtual(15 * time.Millisecond)
		complete(1)
		requireAnswer(1, 35*time.Millisecond)
		sleepVirtual(time.Second)
		complete(2)
		requireAnswer(2, 1055*time.Millisecond)
	})
}

func TestAResultOnTheStreamWaitsForItsEventsBesideTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		e := &taskRun{}
		first := executeAsync(t.Context(), h, newTask("t1", e))
		a := nextAssignment(t, s)
		s.HandleCompletion(t.Context(), message.Completion{Token: a.Token, Result: newResult("1"), EventsOnStream: 1})
		s.HandleEvents(a.Token, []runtime.Emission{{Value: `"x"`}}, 0)
		require.Equal(t, newResult("1"), <-first)
		require.Equal(t, message.CompletionReply{Token: a.Token}, nextReply(t, s))
		require.Equal(t, []string{`"x"`}, e.emitted)

		s.HandleCompletion(t.Context(), message.Completion{Token: "forged", Result: newResult("1")})
		require.ErrorIs(t, nextReply(t, s).Err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
	})
}

// The lease may be lost while a result waits for its events.
func TestAResultThatWaitedForTooLongIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		first := executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		refused := make(chan error, 1)
		go func() {
			_, err := h.CompleteTask(t.Context(), message.Completion{Token: a.Token, Result: newResult("late"), EventsOnStream: 1})
			refused <- err
		}()
		synctest.Wait()
		s.HandleNack(a.Token, "not mine", 0, nil)
		b := nextAssignment(t, openSession(t, h, newHello("w2", 1)))
		require.ErrorIs(t, <-refused, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		completeTask(t, h, b, "2")
		require.Equal(t, newResult("2"), <-first)
	})
}

// A worker whose task goes to another one, because it lacks values of it, gets a task that waits.
func TestAWorkerThatLacksValuesIsOfferedAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		only := newTask("t2", &taskRun{})
		only.Graph = &graph.Graph{Name: "g", Version: "2"}
		executeAsync(t.Context(), h, only)
		synctest.Wait()
		hello := newHello("w2", 9)
		hello.Capabilities = []message.Capability{{Graph: "g", Version: "1"}}
		other := openSession(t, h, hello)
		s.HandleNack(a.Token, "values are missing", 0, []kept.Digest{{1}})
		require.Equal(t, "t1", nextAssignment(t, other).Task.ID)
		require.Equal(t, "t2", nextAssignment(t, s).Task.ID)
	})
}

// A repeated call gets back what its own answer had, and nothing else.
func TestARepeatedCallGetsNoTaskThatWentAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 1))
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		a := nextAssignment(t, s)
		require.Nil(t, (<-completeAsync(t.Context(), h, a, true)).Next)
		executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		synctest.Wait()
		require.Nil(t, (<-completeAsync(t.Context(), h, a, true)).Next, "it is on the stream")
		require.Equal(t, "t2", nextAssignment(t, s).Task.ID)
		require.Nil(t, (<-completeAsync(t.Context(), h, a, true)).Next, "it has left on the stream")
	})
}

func TestCreditThatWasOvertakenIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := openSession(t, h, newHello("w1", 0))
		s.HandleCredit(message.Credit{Total: 1, Revision: 2})
		s.HandleCredit(message.Credit{Total: 9, Revision: 1})
		executeAsync(t.Context(), h, newTask("t1", &taskRun{}))
		require.Equal(t, "t1", nextAssignment(t, s).Task.ID)
		executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		synctest.Wait()
		requireNothingSent(t, s)
	})
}
