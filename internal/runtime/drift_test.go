package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// TestUsesAreChecked gives the engine results of code that lies elsewhere: what
// it says of the answers that it has used must be true.
func TestUsesAreChecked(t *testing.T) {
	shown, other := pregel.Ask{Value: `{"pay":100}`}, pregel.Ask{Value: `{"pay":99999}`}
	accepting := other
	accepting.Drift = checkpoint.DriftAccept
	for name, uses := range map[string]struct {
		used   []pregel.Use
		reason string
		says   string
	}{
		"what was shown":         {[]pregel.Use{{Seen: shown.Seen()}}, "", ""},
		"nothing":                {nil, "", ""},
		"something else":         {[]pregel.Use{{Seen: other.Seen()}}, runtime.FailedNonDeterministic, "for something else than was shown"},
		"no digest":              {[]pregel.Use{{}}, runtime.FailedNonDeterministic, "for something else than was shown"},
		"another, not accepted":  {[]pregel.Use{{Seen: other.Seen(), Asked: &other}}, runtime.FailedNonDeterministic, "the node has used the answer all the same"},
		"another, and accepted":  {[]pregel.Use{{Seen: other.Seen(), Asked: &accepting}}, "", ""},
		"the same, told in full": {[]pregel.Use{{Seen: other.Seen(), Asked: &shown}}, "", ""},
		"an answer that is none": {[]pregel.Use{{Key: "k"}}, runtime.FailedInvalidUpdate, `question number 1 of key "k", which has none`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]node{"n": func(_ context.Context, c *call) pregel.Result {
				if len(c.Journal.Answers) == 0 {
					return pregel.Result{Asks: []pregel.Ask{shown}}
				}
				r := wrote(`"went on"`)
				r.Used = uses.used
				return r
			}}, chain("g", channelsLog, "n"))
			w.run("t", "g", `{}`)
			run := w.answer("t", `"yes"`)
			if uses.reason == "" {
				require.Equal(t, checkpoint.RunSucceeded, run.State)
				return
			}
			require.Equal(t, uses.reason, run.Failure.Reason)
			require.Contains(t, run.Failure.Message, uses.says)
			require.NotContains(t, w.values("t"), "went on")
		})
	}
}

// TestAskingAgainWhatWasAnswered is code that does not replay its journal: the
// same question can't be asked for ever.
func TestAskingAgainWhatWasAnswered(t *testing.T) {
	w := newWorld(t, map[string]node{"n": func(context.Context, *call) pregel.Result {
		return pregel.Result{Asks: []pregel.Ask{{Value: `"again"`}}}
	}}, chain("g", channelsLog, "n"))
	w.run("t", "g", `{}`)
	run := w.answer("t", `"yes"`)
	require.Equal(t, runtime.FailedNonDeterministic, run.Failure.Reason)
	require.Contains(t, run.Failure.Message, "asked a question again that was answered")
}

// older is a store as an earlier version has filled it: questions have no digest
// and say nothing about replays.
type older struct{ checkpoint.Store }

func (o older) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	for i := range c.Interrupts {
		c.Interrupts[i].Seen, c.Interrupts[i].Drift = "", ""
	}
	return o.Store.Apply(ctx, c)
}

// TestQuestionsOfAnEarlierVersion are compared as well: their digest follows from
// what is stored.
func TestQuestionsOfAnEarlierVersion(t *testing.T) {
	amount := `{"pay":100}`
	w := newWorldOn(t, older{memory.New(memory.Options{})}, runtime.Options{}, map[string]node{
		"n": func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(amount)) },
	}, chain("g", channelsLog, "n"))
	w.run("t", "g", `{}`)
	amount = `{"pay":99999}`
	run := w.answer("t", `"yes"`)
	require.Equal(t, checkpoint.RunInterrupted, run.State)
	run = w.answer("t", `"yes, that too"`)
	require.Equal(t, checkpoint.RunSucceeded, run.State)
	require.JSONEq(t, `{"log":["yes, that too"],"n":1}`, w.values("t"))
}

// TestALateAnswerIsToldWhatIsAskedNow has a node ask something else twice. An
// answer to a question that was replaced is refused and names the one that stands
// now, however often it was replaced.
func TestALateAnswerIsToldWhatIsAskedNow(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) checkpoint.Store{
		"memory": onMemory,
		"sqlite": onSQLite,
		"redis":  func(t *testing.T) checkpoint.Store { return onRedis(t, redistest.Start(t, "--appendfsync", "no")) },
	} {
		t.Run(name, func(t *testing.T) {
			amount := `{"pay":100}`
			opened := store(t)
			t.Cleanup(func() { require.NoError(t, opened.Close()) })
			w := newWorldOn(t, opened, runtime.Options{}, map[string]node{
				"n": func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(amount)) },
			}, chain("g", channelsLog, "n"))
			w.run("t", "g", `{}`)
			var asked []string
			for _, next := range []string{`{"pay":200}`, `{"pay":300}`} {
				asked = append(asked, w.state("t").Tasks[0].Interrupts[0].ID)
				amount = next
				require.Equal(t, checkpoint.RunInterrupted, w.answer("t", `"yes"`).State)
			}
			now := w.state("t").Tasks[0].Interrupts[0].ID
			for _, id := range asked {
				for _, value := range []string{`"yes"`, `"no"`} {
					err := late(w, id, value)
					require.Equal(t, runtime.ReasonInterruptAlreadyResolved, reason(err))
					require.Equal(t, now, meta(err, "supersededBy"))
				}
			}
			require.Equal(t, checkpoint.RunSucceeded, w.answer("t", `"yes"`).State)
			err := late(w, asked[0], `"no"`)
			require.Equal(t, runtime.ReasonInterruptAlreadyResolved, reason(err))
			require.Empty(t, meta(err, "supersededBy"), "nothing is asked any more")
		})
	}
}

func late(w *world, id, value string) error {
	_, err := w.engine.Resume(w.t.Context(), runtime.ResumeRequest{
		Thread: "t", Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
	})
	return err
}
