package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// receipts runs the completion of a task in the background.
func receipts(ctx context.Context, h *worker.Hub, a worker.Assignment, next bool) <-chan worker.Receipt {
	out := make(chan worker.Receipt, 1)
	go func() {
		r, err := h.Complete(ctx, worker.Completion{Token: a.Token, Result: done("1"), Next: next})
		if err != nil {
			r.Duplicate = true
		}
		out <- r
	}()
	synctest.Wait()
	return out
}

// quiet reports whether nothing was sent on the stream.
func quiet(t *testing.T, s *worker.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTheNextTaskComesWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		first := execute(t.Context(), h, task("t1", &run{}))
		answer := receipts(t.Context(), h, next(t, s), true)
		require.Equal(t, done("1"), <-first, "the result does not wait for the next task")
		second := execute(t.Context(), h, task("t2", &run{}))
		got := <-answer
		require.Equal(t, "t2", got.Next.Task.ID)
		require.Equal(t, 1, got.Next.Delivery)
		quiet(t, s)
		complete(t, h, *got.Next, "2")
		require.Equal(t, done("2"), <-second)
	})
}

func TestATaskThatWaitsAlreadyComesWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		execute(t.Context(), h, task("t2", &run{}))
		synctest.Wait()
		require.Equal(t, "t2", (<-receipts(t.Context(), h, a, true)).Next.Task.ID)
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
				s := open(t, h, hello("w1", 1))
				execute(t.Context(), h, task("t1", &run{}))
				a := next(t, s)
				began := time.Now()
				answer := receipts(t.Context(), h, a, c.next)
				if c.act != nil {
					c.act(s)
				}
				require.Equal(t, worker.Receipt{}, <-answer)
				require.Equal(t, c.want, time.Since(began))
				if c.act != nil {
					return
				}
				execute(t.Context(), h, task("t2", &run{}))
				require.Equal(t, "t2", next(t, s).Task.ID, "later tasks come on the stream")
			})
		})
	}
}

// The answer may be lost, and so may its connection; the call is repeated.
func TestARepeatedCallGetsTheSameNextTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		answer := receipts(t.Context(), h, a, true)
		second := execute(t.Context(), h, task("t2", &run{}))
		lost := (<-answer).Next

		again := <-receipts(t.Context(), h, a, true)
		require.True(t, again.Duplicate)
		require.Equal(t, lost.Token, again.Next.Token)
		s.Alive(again.Next.Token)
		require.Nil(t, (<-receipts(t.Context(), h, a, true)).Next, "it has been begun: nobody gets it twice")
		complete(t, h, *again.Next, "2")
		require.Equal(t, done("2"), <-second)
	})
}

func TestATaskWhoseAnswerWasLostWithItsWorkerGoesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		answer := receipts(ctx, h, a, true)
		second := execute(t.Context(), h, task("t2", &run{}))
		cancel()
		given := (<-answer).Next
		s.Close()
		pass(20 * time.Second) // the answer may have arrived: the lease has to end
		other := next(t, open(t, h, hello("w2", 1)))
		require.Equal(t, "t2", other.Task.ID)
		complete(t, h, other, "2")
		require.Equal(t, done("2"), <-second)
		if given != nil {
			_, err := h.Complete(t.Context(), worker.Completion{Token: given.Token, Result: done("3")})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		}
		require.Nil(t, (<-receipts(t.Context(), h, a, true)).Next)
	})
}

func TestTheNextTaskOfAThreadStaysWithTheWorkerThatWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		open(t, h, hello("w2", 9))
		answer := receipts(t.Context(), h, a, true)
		execute(t.Context(), h, task("t2", &run{}))
		require.Equal(t, "t2", (<-answer).Next.Task.ID, "though another one has more room")
	})
}

func TestNoNextTaskIsGivenBeyondTheCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		s.Credit(worker.Credit{Total: 0, Revision: 1})
		answer := receipts(t.Context(), h, a, true)
		execute(t.Context(), h, task("t2", &run{}))
		require.Nil(t, (<-answer).Next)
	})
}

// reply waits for the answer to a result that was sent on the stream.
func reply(t *testing.T, s *worker.Session) worker.Reply {
	t.Helper()
	m, err := s.Next(t.Context())
	require.NoError(t, err)
	r, ok := m.(worker.Reply)
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
				s := open(t, h, hello("w1", 1))
				first := execute(t.Context(), h, task("t1", &run{}))
				a := next(t, s)
				began := time.Now()
				s.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1"), Next: c.next})
				require.Equal(t, done("1"), <-first)
				if c.follow {
					execute(t.Context(), h, task("t2", &run{}))
				}
				r := reply(t, s)
				require.Equal(t, a.Token, r.Token)
				require.NoError(t, r.Err)
				require.Equal(t, c.follow, r.Receipt.Next != nil)
				require.Equal(t, c.want, time.Since(began))
				pass(time.Second)
				quiet(t, s)

				s.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("7"), Next: true})
				again := reply(t, s)
				require.True(t, again.Receipt.Duplicate)
				if c.follow {
					require.Equal(t, r.Receipt.Next.Token, again.Receipt.Next.Token)
				}
			})
		})
	}
}

func TestAResultOnTheStreamWaitsForItsEventsBesideTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		e := &run{}
		first := execute(t.Context(), h, task("t1", e))
		a := next(t, s)
		s.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("1"), Emitted: 1})
		s.Emit(a.Token, []runtime.Emission{{Value: `"x"`}}, 0)
		require.Equal(t, done("1"), <-first)
		require.Equal(t, worker.Reply{Token: a.Token}, reply(t, s))
		require.Equal(t, []string{`"x"`}, e.emitted)

		s.Complete(t.Context(), worker.Completion{Token: "forged", Result: done("1")})
		require.ErrorIs(t, reply(t, s).Err, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
	})
}

// The lease may be lost while a result waits for its events.
func TestAResultThatWaitedForTooLongIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		first := execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		refused := make(chan error, 1)
		go func() {
			_, err := h.Complete(t.Context(), worker.Completion{Token: a.Token, Result: done("late"), Emitted: 1})
			refused <- err
		}()
		synctest.Wait()
		s.Nack(a.Token, "not mine", 0)
		b := next(t, open(t, h, hello("w2", 1)))
		require.ErrorIs(t, <-refused, &runtime.Error{Reason: runtime.ReasonTaskLeaseLost})
		complete(t, h, b, "2")
		require.Equal(t, done("2"), <-first)
	})
}

// A repeated call gets back what its own answer had, and nothing else.
func TestARepeatedCallGetsNoTaskThatWentAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 1))
		execute(t.Context(), h, task("t1", &run{}))
		a := next(t, s)
		require.Nil(t, (<-receipts(t.Context(), h, a, true)).Next)
		execute(t.Context(), h, task("t2", &run{}))
		synctest.Wait()
		require.Nil(t, (<-receipts(t.Context(), h, a, true)).Next, "it is on the stream")
		require.Equal(t, "t2", next(t, s).Task.ID)
		require.Nil(t, (<-receipts(t.Context(), h, a, true)).Next, "it has left on the stream")
	})
}

func TestCreditThatWasOvertakenIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		s := open(t, h, hello("w1", 0))
		s.Credit(worker.Credit{Total: 1, Revision: 2})
		s.Credit(worker.Credit{Total: 9, Revision: 1})
		execute(t.Context(), h, task("t1", &run{}))
		require.Equal(t, "t1", next(t, s).Task.ID)
		execute(t.Context(), h, task("t2", &run{}))
		synctest.Wait()
		quiet(t, s)
	})
}
