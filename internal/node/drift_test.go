package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// payFunc asks for an amount and pays it when a person has agreed.
func payFunc(amount int, paid *int, options ...api.AskOption) api.Func {
	return func(ctx context.Context, _ api.State) (any, error) {
		answer, err := api.Interrupt(ctx, map[string]int{"pay": amount}, options...)
		if err != nil {
			return nil, err
		}
		*paid += amount
		return map[string]any{"a": answer}, nil
	}
}

// TestAnswerToAnotherQuestion lets the replay ask another question than was
// answered. The code after the interrupt does not run, unless the program accepts
// the answer.
func TestAnswerToAnotherQuestion(t *testing.T) {
	yes := answerTo(`{"pay":100}`, pregel.Answer{Value: `"yes"`})
	for name, outcome := range map[string]pregel.Answer{
		"answered":  yes,
		"dismissed": answerTo(`{"pay":100}`, pregel.Answer{Dismissed: true}),
		"expired":   answerTo(`{"pay":100}`, pregel.Answer{Expired: true}),
		"unknown":   {Value: `"yes"`}, // a journal that does not record what was shown
	} {
		for drift, options := range map[checkpoint.Drift][]api.AskOption{
			checkpoint.DriftAskAgain: {api.Reason("input")},
			checkpoint.DriftFail:     {api.Reason("approval")},
		} {
			paid := 0
			r := runFunction(t, payFunc(99999, &paid, options...), withAnswers(outcome))
			require.Len(t, r.Asks, 1, "%s: the engine decides what happens to it", name)
			require.Equal(t, payload.JSON(`{"pay":99999}`), r.Asks[0].Value, name)
			require.Equal(t, drift, r.Asks[0].Drift, name)
			require.Zero(t, paid, name)
			require.Empty(t, r.UsedAnswers)
		}
	}

	paid := 0
	r := runFunction(t, payFunc(99999, &paid, api.OnDrift(api.DriftAccept)), withAnswers(yes))
	requireText(t, `{"a":"yes"}`, r.Update)
	require.Equal(t, 99999, paid)
	require.Len(t, r.UsedAnswers, 1)
	require.Equal(t, payload.JSON(`{"pay":99999}`), r.UsedAnswers[0].Asked.Value)

	r = runFunction(t, payFunc(99999, &paid, api.DriftIgnore("/pay")), withAnswers(pregel.Answer{
		Value: `"yes"`, ShownDigest: (&pregel.Ask{Value: `{}`}).ShownDigest(),
	}))
	requireText(t, `{"a":"yes"}`, r.Update)
	require.Empty(t, r.UsedAnswers)
}

// TestOneOfSeveralIsAnother asks again where the interrupt differs, and keeps the
// answer after it.
func TestOneOfSeveralIsAnother(t *testing.T) {
	f := func(ctx context.Context, _ api.State) (any, error) {
		first, err := api.Interrupt(ctx, "B")
		if err != nil {
			return nil, err
		}
		second, err := api.Interrupt(ctx, "second")
		return map[string]any{"a": first, "b": second}, err
	}
	second := answerTo(`"second"`, pregel.Answer{Index: 1, Value: "2"})
	r := runFunction(t, f, withAnswers(answerTo(`"A"`, pregel.Answer{Value: "1"}), second))
	require.Nil(t, r.Failure)
	require.Len(t, r.Asks, 1)
	require.Zero(t, r.Asks[0].Index)
	requireText(t, `{"a":1,"b":2}`, runFunction(t, f, withAnswers(answerTo(`"B"`, pregel.Answer{Value: "1"}), second)).Update)
}

// TestNothingIsRecordedBehindAnotherQuestion has a function that ignores the error
// of its interrupt.
func TestNothingIsRecordedBehindAnotherQuestion(t *testing.T) {
	fx := &effectRecorder{}
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		_, _ = api.Interrupt(ctx, "B")
		_, _ = api.Memo(ctx, "pay", func(context.Context) (int, error) { return 1, nil })
		return map[string]any{"a": "went on"}, nil
	}, func(t *runtime.Task) { t.Effects = fx }, withAnswers(answerTo(`"A"`, pregel.Answer{Value: "1"})))
	require.Len(t, r.Asks, 1)
	require.Empty(t, r.Update)
	require.Empty(t, fx.memos)
}

func TestDriftThatIsNone(t *testing.T) {
	for says, option := range map[string]api.AskOption{
		`unknown drift "ignore"`:             api.OnDrift("ignore"),
		`the part "asked_at"`:                api.DriftIgnore("asked_at"),
		"stands for itself as ~0":            api.DriftIgnore("/a~b"),
		"101 parts of the question may diff": api.DriftIgnore(make([]string, 101)...),
	} {
		paid := 0
		r := runFunction(t, payFunc(1, &paid, option))
		require.Contains(t, r.Failure.Message, says)
		require.True(t, r.Failure.Permanent)
	}
}

// TestAskNodeComparesToo changes the state between interrupt and answer.
func TestAskNodeComparesToo(t *testing.T) {
	for drift, goesOn := range map[string]bool{"": false, "drift: fail, ": false, "drift: accept, ": true} {
		g := oneNodeGraph(t, `ask: {`+drift+`value: '{"pay": state.a, "at": 1}', drift_ignore: [/at], update: {b: answer}}`)
		task := newTask(t, g, `{"a":99999}`)
		shown := pregel.Ask{Value: `{"pay":100}`}
		task.Journal.Answers = []pregel.Answer{{Value: `"yes"`, ShownDigest: shown.ShownDigest()}}
		r := executeTask(t, task)
		if goesOn {
			requireText(t, `{"b":"yes"}`, r.Update)
			require.Len(t, r.UsedAnswers, 1)
			continue
		}
		require.Empty(t, r.Update)
		require.Len(t, r.Asks, 1)
		require.Equal(t, payload.JSON(`{"pay":99999,"at":1}`), r.Asks[0].Value)
		require.Equal(t, []string{"/at"}, r.Asks[0].DriftIgnore)
	}
}
