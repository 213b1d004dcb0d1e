package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// TestUsesAreChecked gives the engine results of code that lies elsewhere: what
// it says of the answers that it has used must be true.
func TestUsesAreChecked(t *testing.T) {
	shown, other := pregel.Ask{Value: `{"pay":100}`}, pregel.Ask{Value: `{"pay":99999}`}
	accepting := other
	accepting.Drift = checkpoint.DriftAccept
	for name, uses := range map[string]struct {
		used   []pregel.UsedAnswer
		reason string
		says   string
	}{
		"what was shown":         {[]pregel.UsedAnswer{{AskedDigest: shown.ShownDigest()}}, "", ""},
		"nothing":                {nil, "", ""},
		"something else":         {[]pregel.UsedAnswer{{AskedDigest: other.ShownDigest()}}, runtime.FailedNonDeterministic, "for something else than was shown"},
		"no digest":              {[]pregel.UsedAnswer{{}}, runtime.FailedNonDeterministic, "for something else than was shown"},
		"another, not accepted":  {[]pregel.UsedAnswer{{AskedDigest: other.ShownDigest(), Asked: &other}}, runtime.FailedNonDeterministic, "the node has used the answer all the same"},
		"another, and accepted":  {[]pregel.UsedAnswer{{AskedDigest: other.ShownDigest(), Asked: &accepting}}, "", ""},
		"the same, told in full": {[]pregel.UsedAnswer{{AskedDigest: other.ShownDigest(), Asked: &shown}}, "", ""},
		"an answer that is none": {[]pregel.UsedAnswer{{Key: "k"}}, runtime.FailedInvalidUpdate, `question number 1 of key "k", which has none`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, map[string]nodeFunc{"n": func(_ context.Context, c *nodeCall) pregel.Result {
				if len(c.Journal.Answers) == 0 {
					return pregel.Result{Asks: []pregel.Ask{shown}}
				}
				r := logUpdate(`"went on"`)
				r.UsedAnswers = uses.used
				return r
			}}, chainSpec("g", channelsLog, "n"))
			w.runToStop("t", "g", `{}`)
			run := w.answerSingle("t", `"yes"`)
			if uses.reason == "" {
				require.Equal(t, checkpoint.RunSucceeded, run.State)
				return
			}
			require.Equal(t, uses.reason, run.Failure.Reason)
			require.Contains(t, run.Failure.Message, uses.says)
			require.NotContains(t, w.stateValues("t"), "went on")
		})
	}
}

// TestAskingAgainWhatWasAnswered runs code that does not replay its journal: the same
// interrupt can't be asked for ever.
func TestAskingAgainWhatWasAnswered(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"n": func(context.Context, *nodeCall) pregel.Result {
		return pregel.Result{Asks: []pregel.Ask{{Value: `"again"`}}}
	}}, chainSpec("g", channelsLog, "n"))
	w.runToStop("t", "g", `{}`)
	run := w.answerSingle("t", `"yes"`)
	require.Equal(t, runtime.FailedNonDeterministic, run.Failure.Reason)
	require.Contains(t, run.Failure.Message, "asked a question again that was answered")
}

// oldFormatStore is a store as an earlier version has filled it: interrupts have no digest
// and say nothing about replays.
type oldFormatStore struct{ checkpoint.Store }

func (o oldFormatStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	for i := range c.Interrupts {
		c.Interrupts[i].ShownDigest, c.Interrupts[i].Drift = "", ""
	}
	return o.Store.Apply(ctx, c)
}

// TestQuestionsOfAnEarlierVersion checks that they are compared as well: their digest
// follows from the stored record.
func TestQuestionsOfAnEarlierVersion(t *testing.T) {
	amount := `{"pay":100}`
	w := newFixtureOn(t, oldFormatStore{memory.New(memory.Options{})}, engine.Options{}, map[string]nodeFunc{
		"n": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(amount)) },
	}, chainSpec("g", channelsLog, "n"))
	w.runToStop("t", "g", `{}`)
	amount = `{"pay":99999}`
	run := w.answerSingle("t", `"yes"`)
	require.Equal(t, checkpoint.RunInterrupted, run.State)
	run = w.answerSingle("t", `"yes, that too"`)
	require.Equal(t, checkpoint.RunSucceeded, run.State)
	require.JSONEq(t, `{"log":["yes, that too"],"n":1}`, w.stateValues("t"))
}

// TestALateAnswerIsToldWhatIsAskedNow has a node ask something else twice. An
// answer to an interrupt that was replaced is refused and names the one that stands
// now, however often it was replaced.
func TestALateAnswerIsToldWhatIsAskedNow(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) checkpoint.Store{
		"memory": openMemory,
		"sqlite": openSQLite,
		"redis":  func(t *testing.T) checkpoint.Store { return openRedis(t, redistest.Start(t, "--appendfsync", "no")) },
	} {
		t.Run(name, func(t *testing.T) {
			amount := `{"pay":100}`
			opened := store(t)
			t.Cleanup(func() { require.NoError(t, opened.Close()) })
			w := newFixtureOn(t, opened, engine.Options{}, map[string]nodeFunc{
				"n": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(amount)) },
			}, chainSpec("g", channelsLog, "n"))
			w.runToStop("t", "g", `{}`)
			var asked []string
			for _, next := range []string{`{"pay":200}`, `{"pay":300}`} {
				asked = append(asked, w.readState("t").Tasks[0].Interrupts[0].ID)
				amount = next
				require.Equal(t, checkpoint.RunInterrupted, w.answerSingle("t", `"yes"`).State)
			}
			now := w.readState("t").Tasks[0].Interrupts[0].ID
			for _, id := range asked {
				for _, value := range []string{`"yes"`, `"no"`} {
					err := answerLate(w, id, value)
					require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err))
					require.Equal(t, now, errorMeta(err, "supersededBy"))
				}
			}
			require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `"yes"`).State)
			err := answerLate(w, asked[0], `"no"`)
			require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err))
			require.Empty(t, errorMeta(err, "supersededBy"), "nothing is asked any more")
		})
	}
}

func answerLate(w *fixture, id, value string) error {
	_, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{
		Thread: "t", Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
	})
	return err
}
