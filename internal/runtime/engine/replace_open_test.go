package engine_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// replaceFixture has a task that asks what the amount is now, and calls a graph that
// asks as well: an answer to the called graph runs the task again while its own
// interrupt is open.
type replaceFixture struct {
	*fixture

	amount     atomic.Int64
	drift      checkpoint.Drift
	beforeAsk  func() // the task asks, nil = nothing
	innerCount int    // how many interrupts the called graph asks, one after the other; 0 = 1
}

func newReplaceFixture(t *testing.T, drift checkpoint.Drift) *replaceFixture {
	t.Helper()
	r := &replaceFixture{drift: drift}
	r.amount.Store(100)
	r.fixture = newFixture(t, map[string]nodeFunc{
		"outer": r.askAmount,
		"inner": func(_ context.Context, c *nodeCall) pregel.Result {
			for range r.innerCount - 1 {
				c.askNext(`"inner?"`)
			}
			return logUpdate(c.askNext(`"inner?"`))
		},
	}, chainSpec("g", channelsLog, "outer"), chainSpec("called", channelsLog, "inner"))
	require.Equal(t, checkpoint.RunInterrupted, r.runToStop("t", "g", `{}`).State)
	return r
}

func (r *replaceFixture) askAmount(ctx context.Context, c *nodeCall) pregel.Result {
	called, err := c.Host.CallGraph(ctx, runtime.GraphCall{Graph: "called", Input: "{}"})
	if err != nil {
		panic(err)
	}
	if r.beforeAsk != nil {
		r.beforeAsk()
	}
	q := pregel.Ask{Value: payload.JSON(`{"pay":` + strconv.FormatInt(r.amount.Load(), 10) + `}`), Drift: r.drift}
	settled := q
	settled.SetDriftDefaults(c.Graph.Spec)
	for i := range c.Journal.Answers {
		if a := &c.Journal.Answers[i]; !a.Matches(&settled) {
			continue
		}
		if called.Waiting != nil {
			return pregel.Result{WaitingInterrupts: called.Waiting}
		}
		return logUpdate(string(c.Journal.Answers[i].Value))
	}
	return pregel.Result{Asks: []pregel.Ask{q}, WaitingInterrupts: called.Waiting}
}

// listInterrupts returns the interrupts of the task, and that of the graph that it calls.
func (r *replaceFixture) listInterrupts() (own []checkpoint.Interrupt, inner checkpoint.Interrupt) {
	r.t.Helper()
	all, err := r.store.Interrupts(r.t.Context(), checkpoint.InterruptQuery{Thread: "t", Limit: 100})
	require.NoError(r.t, err)
	for _, q := range all {
		if q.Node == "inner" {
			if inner.ID == "" || q.State == checkpoint.InterruptOpen {
				inner = q
			}
		} else {
			own = append(own, q)
		}
	}
	return own, inner
}

func (r *replaceFixture) resumeWith(id, value string) (*runtime.Started, error) {
	return r.engine.Resume(r.t.Context(), runtime.ResumeRequest{
		Thread: "t", Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
	})
}

func (r *replaceFixture) answerAndWait(id, value string) checkpoint.Run {
	r.t.Helper()
	s, err := r.resumeWith(id, value)
	require.NoError(r.t, err)
	return r.waitRun(s)
}

// TestAnOpenQuestionIsNeverShownStale has the task ask something else while its
// interrupt waits: no person reads the old one any more.
func TestAnOpenQuestionIsNeverShownStale(t *testing.T) {
	for _, drift := range []checkpoint.Drift{checkpoint.DriftAskAgain, checkpoint.DriftFail} {
		t.Run(string(drift), func(t *testing.T) {
			r := newReplaceFixture(t, drift)
			r.amount.Store(99_999)
			_, inner := r.listInterrupts()
			require.Equal(t, checkpoint.RunInterrupted, r.answerAndWait(inner.ID, `"yes"`).State)

			own, _ := r.listInterrupts()
			require.Len(t, own, 2)
			old, now := own[0], own[1]
			if old.Round > now.Round {
				old, now = now, old
			}
			require.Equal(t, checkpoint.InterruptSuperseded, old.State)
			require.Empty(t, old.Response)
			require.Equal(t, checkpoint.InterruptOpen, now.State)
			require.Equal(t, payload.JSON(`{"pay":99999}`), now.Value)
			require.Equal(t, []any{old.ID, []string{"/pay"}}, []any{now.Replaces, now.Differs})
			head, err := r.store.Head(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, 1, head.Open)
			require.Equal(t, []string{now.ID}, []string{r.readState("t").Tasks[0].Interrupts[0].ID})
			told := r.listResolved()
			require.Contains(t, told, old.ID, "who follows the thread hears of it")

			_, err = r.resumeWith(old.ID, `"yes to 100"`)
			require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err))
			require.Equal(t, now.ID, errorMeta(err, "supersededBy"))
			run := r.answerAndWait(now.ID, `"yes to 99999"`)
			require.Equal(t, checkpoint.RunSucceeded, run.State)
			require.JSONEq(t, `{"log":["yes to 99999"],"n":1}`, r.stateValues("t"))
		})
	}
}

// TestAnOpenQuestionThatIsAskedAgainStays has the task ask the same, or what the
// program takes for the same.
func TestAnOpenQuestionThatIsAskedAgainStays(t *testing.T) {
	for drift, amount := range map[checkpoint.Drift]int64{checkpoint.DriftAskAgain: 100, checkpoint.DriftAccept: 99_999} {
		t.Run(string(drift), func(t *testing.T) {
			r := newReplaceFixture(t, drift)
			r.amount.Store(amount)
			_, inner := r.listInterrupts()
			require.Equal(t, checkpoint.RunInterrupted, r.answerAndWait(inner.ID, `"yes"`).State)
			own, _ := r.listInterrupts()
			require.Len(t, own, 1)
			require.Equal(t, checkpoint.InterruptOpen, own[0].State)
		})
	}
}

// TestAnAnswerThatComesWhileAnOpenQuestionChanges checks that the answer is kept, and
// not used for the new question.
func TestAnAnswerThatComesWhileAnOpenQuestionChanges(t *testing.T) {
	r := newReplaceFixture(t, checkpoint.DriftAskAgain)
	r.amount.Store(99_999)
	own, inner := r.listInterrupts()
	r.beforeAsk = func() {
		r.beforeAsk = nil
		_, err := r.resumeWith(own[0].ID, `"yes to 100"`)
		require.NoError(t, err)
	}
	require.Equal(t, checkpoint.RunInterrupted, r.answerAndWait(inner.ID, `"yes"`).State)
	all, _ := r.listInterrupts()
	require.Len(t, all, 2)
	for _, q := range all {
		if q.ID == own[0].ID {
			require.Equal(t, checkpoint.InterruptSuperseded, q.State)
			require.Equal(t, payload.JSON(`"yes to 100"`), q.Response)
			continue
		}
		require.Equal(t, checkpoint.InterruptOpen, q.State)
		require.Equal(t, checkpoint.RunSucceeded, r.answerAndWait(q.ID, `"yes to 99999"`).State)
	}
	require.JSONEq(t, `{"log":["yes to 99999"],"n":1}`, r.stateValues("t"))
}

// TestAnOpenQuestionMayChangeOften: it has no answer, so the bound of what
// is asked anew after an answer does not count.
func TestAnOpenQuestionMayChangeOften(t *testing.T) {
	const rounds = 6
	r := newReplaceFixture(t, checkpoint.DriftAskAgain)
	r.innerCount = rounds
	for round := range rounds {
		r.amount.Store(int64(round))
		_, inner := r.listInterrupts()
		require.Equal(t, checkpoint.RunInterrupted, r.answerAndWait(inner.ID, `"yes"`).State)
	}
	own, _ := r.listInterrupts()
	require.Len(t, own, rounds+1)
	r.amount.Store(99_999)
	for _, q := range own {
		if q.State == checkpoint.InterruptOpen {
			require.Equal(t, checkpoint.RunInterrupted, r.answerAndWait(q.ID, `"yes to another"`).State, "and after an answer three times")
		}
	}
	own, _ = r.listInterrupts()
	require.Len(t, own, rounds+2)
}

// listResolved lists the interrupts whose end was told.
func (r *replaceFixture) listResolved() (ids []string) {
	r.t.Helper()
	events, err := r.store.Events(r.t.Context(), "t", 0, 0)
	require.NoError(r.t, err)
	for _, e := range events {
		if e.Kind == checkpoint.EventResolved {
			for _, q := range e.Interrupts {
				ids = append(ids, q.ID)
			}
		}
	}
	return ids
}
