package engine_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// An interrupt that was withdrawn and is asked again keeps its id while it shows the
// same. What shows something else is another interrupt: an answer to what a page still
// shows is refused.
func TestAWithdrawnInterruptIsReopenedAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		amount int64
		drift  checkpoint.Drift
		isSame bool
	}{
		"the same":              {100, "", true},
		"something else":        {99999, "", false},
		"ask again":             {99999, checkpoint.DriftAskAgain, false},
		"fail":                  {99999, checkpoint.DriftFail, false},
		"drift is accepted":     {99999, checkpoint.DriftAccept, true},
		"the same that may not": {100, checkpoint.DriftFail, true},
	} {
		t.Run(name, func(t *testing.T) {
			var amount atomic.Int64
			amount.Store(100)
			w := newFixture(t, map[string]nodeFunc{"pay": func(_ context.Context, call *nodeCall) pregel.Result {
				q := pregel.Ask{Value: payload.JSON(`{"pay":` + strconv.FormatInt(amount.Load(), 10) + `}`), Drift: c.drift}
				if len(call.Journal.Answers) > 0 {
					return logUpdate(string(call.Journal.Answers[0].Value))
				}
				return pregel.Result{Asks: []pregel.Ask{q}}
			}}, chainSpec("g", channelsLog, "pay"))
			require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
			shown := w.readState("t").Interrupts[0]

			for i := range 3 { // whatever was asked in between
				amount.Store(c.amount + int64(i)*(c.amount-100))
				again := w.beginAndWait(runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen})
				require.Equal(t, checkpoint.RunInterrupted, again.State)
				now := w.readState("t").Interrupts[0]
				require.Equal(t, c.isSame, now.ID == shown.ID)
				require.JSONEq(t, `{"pay":`+strconv.FormatInt(amount.Load(), 10)+`}`, string(now.Value))
			}

			_, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{
				Thread: "t", Responses: []runtime.Response{{Interrupt: shown.ID, Value: `"yes"`}},
			})
			if c.isSame {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInterruptAlreadyResolved})
			now := w.readState("t").Interrupts[0]
			require.Equal(t, []string{"/pay"}, now.Differs)
			_, err = w.engine.Resume(t.Context(), runtime.ResumeRequest{
				Thread: "t", Responses: []runtime.Response{{Interrupt: now.ID, Value: `"yes"`}},
			})
			require.NoError(t, err)
		})
	}
}

// A task that asks two things at one place is refused, also where one of them shows what
// was withdrawn there.
func TestTwoAsksAtThePlaceOfAWithdrawnInterrupt(t *testing.T) {
	var asksTwo atomic.Bool
	w := newFixture(t, map[string]nodeFunc{"pay": func(context.Context, *nodeCall) pregel.Result {
		asks := []pregel.Ask{{Value: `"pay 100?"`}}
		if asksTwo.Load() {
			asks = append(asks, pregel.Ask{Value: `"pay 99999?"`})
		}
		return pregel.Result{Asks: asks}
	}}, chainSpec("g", channelsLog, "pay"))
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	asksTwo.Store(true)
	run := w.beginAndWait(runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen})
	require.Equal(t, checkpoint.RunFailed, run.State)
	require.Contains(t, run.Failure.Message, "asks two things as question 1 ")
}

// Answers that were withdrawn do not count as asked anew: a later drift may ask again.
func TestWithdrawnAnswersAreNotAskedAnew(t *testing.T) {
	var amount atomic.Int64
	w := newFixture(t, map[string]nodeFunc{"pay": func(_ context.Context, call *nodeCall) pregel.Result {
		asks := []pregel.Ask{
			{Key: "amount", Value: payload.JSON(strconv.FormatInt(amount.Load(), 10)), Drift: checkpoint.DriftAskAgain},
			{Key: "other", Value: `"other?"`},
		}
		open := slices.DeleteFunc(asks, func(a pregel.Ask) bool {
			a.SetDriftDefaults(call.Graph.Spec)
			return slices.ContainsFunc(call.Journal.Answers, func(given pregel.Answer) bool { return given.Key == a.Key && given.Matches(&a) })
		})
		if len(open) == 0 {
			return logUpdate(`"paid"`)
		}
		return pregel.Result{Asks: open}
	}}, chainSpec("g", channelsLog, "pay"))
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	answer := func(key string) {
		for _, q := range w.readState("t").Interrupts {
			if q.Key == key && q.State == checkpoint.InterruptOpen {
				_, err := w.engine.Resume(t.Context(), runtime.ResumeRequest{
					Thread: "t", Coverage: runtime.CoverCollect, Responses: []runtime.Response{{Interrupt: q.ID, Value: `"yes"`}},
				})
				require.NoError(t, err)
			}
		}
	}
	for range 5 {
		answer("amount")
		amount.Add(1)
		_, err := w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, w.beginAndWait(runtime.StartRequest{Thread: "t"}).State)
	}
	answer("amount")
	amount.Add(1) // the answer is for something else now
	answer("other")
	var head checkpoint.Head
	require.Eventually(t, func() bool {
		var err error
		head, err = w.store.Head(t.Context(), "t")
		return err == nil && head.State != checkpoint.ThreadBusy
	}, time.Minute, time.Millisecond)
	require.Equal(t, checkpoint.ThreadInterrupted, head.State)
}
