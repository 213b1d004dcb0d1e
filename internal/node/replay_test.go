package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// askTwice asks two interrupts one after the other.
func askTwice(ctx context.Context, _ api.State) (any, error) {
	first, err := api.Interrupt(ctx, "first?", api.Reason("input"), api.Message("say it"))
	if err != nil {
		return nil, err
	}
	second, err := api.Interrupt(ctx, map[string]int64{"n": 9007199254740993})
	if err != nil {
		return nil, fmt.Errorf("asking again: %w", err)
	}
	return map[string]any{"a": first, "b": second}, nil
}

func TestQuestionsOneAfterTheOther(t *testing.T) {
	r := runFunction(t, askTwice)
	require.Equal(t, pregel.Result{Asks: []pregel.Ask{{
		Reason: "input", Message: "say it", Value: `"first?"`,
	}}}, r)

	first := pregel.Answer{Value: "1.0", ShownDigest: (&pregel.Ask{Message: "say it", Value: `"first?"`}).ShownDigest()}
	r = runFunction(t, askTwice, withAnswers(first))
	require.Equal(t, pregel.Result{Asks: []pregel.Ask{{Index: 1, Value: `{"n":9007199254740993}`}}}, r)

	r = runFunction(t, askTwice, withAnswers(answerTo(`{"n":9007199254740993}`, pregel.Answer{Index: 1, Value: "9007199254740993"}), first))
	require.Equal(t, pregel.Result{Update: `{"a":1.0,"b":9007199254740993}`}, r)
}

func TestEveryValueIsAnAnswer(t *testing.T) {
	for _, value := range []payload.JSON{`null`, `false`, `0`, `""`, `[]`, `{}`, `1.50`} {
		raw := func(ctx context.Context, _ api.State) (any, error) {
			answer, err := api.Interrupt(ctx, nil)
			return map[string]any{"a": answer}, err
		}
		require.Equal(t, `{"a":`+value+`}`, runFunction(t, raw, withAnswers(answerTo("null", pregel.Answer{Value: value}))).Update)
		decoded := func(ctx context.Context, _ api.State) (any, error) {
			answer, err := api.Ask[any](ctx, nil)
			return map[string]any{"a": answer}, err
		}
		require.Equal(t, `{"a":`+value+`}`, runFunction(t, decoded, withAnswers(answerTo("null", pregel.Answer{Value: value}))).Update)
	}
}

func TestAnswersAreDecoded(t *testing.T) {
	type decision struct{ Decision string }
	f := func(ctx context.Context, _ api.State) (any, error) {
		d, err := api.Ask[decision](ctx, "?")
		return map[string]any{"a": d.Decision}, err
	}
	shown := (&pregel.Ask{Value: `"?"`, Schema: `{"type":"object"}`}).ShownDigest()
	answer := func(value payload.JSON) func(*runtime.Task) {
		return withAnswers(pregel.Answer{Value: value, ShownDigest: shown})
	}
	requireText(t, `{"a":"yes"}`, runFunction(t, f, answer(`{"decision":"yes"}`)).Update)
	requireText(t, `{"a":""}`, runFunction(t, f, answer(`null`)).Update)
	r := runFunction(t, f, answer(`17`))
	require.Equal(t, "AnswerMismatch", r.Failure.Type)
	require.True(t, r.Failure.Permanent)
}

func TestQuestionOptions(t *testing.T) {
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		_, _ = api.Interrupt(ctx, json.RawMessage(`{"q" :1.0}`), api.Key("k"), api.Assignees("ann", "bob"),
			api.Schema(map[string]any{"type": "string"}), api.DefaultAfter(time.Hour, "none"))
		_, err := api.Interrupt(ctx, nil, api.Key("k"), api.ExpiresAfter(time.Minute, api.CancelRun))
		return nil, err
	})
	require.Equal(t, []pregel.Ask{
		{
			Key: "k", Value: `{"q" :1.0}`, Schema: `{"type":"string"}`, TTL: time.Hour,
			Expiry: checkpoint.ExpiryResumeDefault, Default: `"none"`, Assignees: []string{"ann", "bob"},
		},
		{Key: "k", Index: 1, Value: "null", TTL: time.Minute, Expiry: checkpoint.ExpiryCancelRun},
	}, r.Asks)
}

type fakeSchemas struct{}

func (f fakeSchemas) Check(_ context.Context, schema, value payload.JSON) ([]runtime.Violation, error) {
	if err := f.CheckSchema(schema); err != nil {
		return nil, err
	}
	if value == `"bad"` {
		return []runtime.Violation{{Field: "/x", Description: "is bad"}}, nil
	}
	return nil, nil
}

func (fakeSchemas) CheckSchema(schema payload.JSON) error {
	if schema == `"broken"` {
		return errors.New("no schema")
	}
	return nil
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	for says, options := range map[string][]api.AskOption{
		"must not be empty":       {api.Key("")},
		"positive time":           {api.ExpiresAfter(0, api.FailNode)},
		"unknown expiry action":   {api.ExpiresAfter(1, "explode")},
		"expire after a positive": {api.DefaultAfter(-1, nil)},
		"the default answer of":   {api.DefaultAfter(1, func() {})},
		"the schema of a":         {api.Schema(func() {})},
		"no schema":               {api.Schema("broken")},
		"/x is bad":               {api.Schema(true), api.DefaultAfter(1, "bad")},
	} {
		r := runFunctionWith(t, node.Options{Schemas: fakeSchemas{}}, func(ctx context.Context, _ api.State) (any, error) {
			return api.Interrupt(ctx, 1, options...)
		})
		require.NotNil(t, r.Failure, says)
		require.Contains(t, r.Failure.Message, says)
		require.True(t, r.Failure.Permanent)
	}
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) { return api.Interrupt(ctx, func() {}) })
	require.Contains(t, r.Failure.Message, "the payload of a question")
}

// askInScopes asks from several goroutines, each in its own scope, in any order.
func askInScopes(keys ...string) api.Func {
	return func(ctx context.Context, _ api.State) (any, error) {
		var group sync.WaitGroup
		found := make([]json.RawMessage, len(keys))
		errs := make([]error, len(keys))
		for i, key := range keys {
			group.Go(func() {
				found[i], errs[i] = api.Interrupt(api.Scope(ctx, key), key)
			})
		}
		group.Wait()
		return map[string]any{"a": found}, errors.Join(errs...)
	}
}

func TestScopesAskTogether(t *testing.T) {
	r := runFunction(t, askInScopes("one", "two", "three"))
	require.Len(t, r.Asks, 3)
	scopes := map[string]payload.JSON{}
	for _, a := range r.Asks {
		require.Zero(t, a.Index)
		scopes[a.Scope] = a.Value
	}
	require.Equal(t, map[string]payload.JSON{"one": `"one"`, "two": `"two"`, "three": `"three"`}, scopes)

	r = runFunction(t, askInScopes("one", "two"), withAnswers(
		answerTo(`"two"`, pregel.Answer{Scope: "two", Value: "2"}), answerTo(`"one"`, pregel.Answer{Scope: "one", Value: "1"})))
	require.Equal(t, pregel.Result{Update: `{"a":[1,2]}`}, r)

	// One answer is there; the other interrupt stays open.
	r = runFunction(t, askInScopes("one", "two"), withAnswers(answerTo(`"two"`, pregel.Answer{Scope: "two", Value: "2"})))
	require.Equal(t, []pregel.Ask{{Scope: "one", Value: `"one"`}}, r.Asks)
}

func TestScopesNest(t *testing.T) {
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		return api.Interrupt(api.Scope(api.Scope(ctx, "outer"), "inner"), 1)
	})
	require.Equal(t, "outer/inner", r.Asks[0].Scope)
}

func TestKeysMayMove(t *testing.T) {
	f := func(keys ...string) api.Func {
		return func(ctx context.Context, _ api.State) (any, error) {
			var all []json.RawMessage
			for _, k := range keys {
				answer, err := api.Interrupt(ctx, k, api.Key(k))
				if err != nil {
					return nil, err
				}
				all = append(all, answer)
			}
			return map[string]any{"a": all}, nil
		}
	}
	journal := withAnswers(answerTo(`"x"`, pregel.Answer{Key: "x", Value: "1"}), answerTo(`"y"`, pregel.Answer{Key: "y", Value: "2"}))
	requireText(t, `{"a":[1,2]}`, runFunction(t, f("x", "y"), journal).Update)
	requireText(t, `{"a":[2,1]}`, runFunction(t, f("y", "x"), journal).Update)
	require.Equal(t, []pregel.Ask{{Key: "x", Index: 1, Value: `"x"`}}, runFunction(t, f("x", "x"), journal).Asks)
	require.Equal(t, []pregel.Ask{{Key: "z", Value: `"z"`}}, runFunction(t, f("z"), journal).Asks)
}

func TestDismissedAndExpired(t *testing.T) {
	f := func(ctx context.Context, _ api.State) (any, error) { return api.Interrupt(ctx, 1) }
	r := runFunction(t, f, withAnswers(answerTo("1", pregel.Answer{Dismissed: true, Reason: "spam"})))
	require.Equal(t, &pregel.Failure{Failure: checkpoint.Failure{
		Reason: "NODE_FAILED", Type: "Dismissed", Message: "question number 1 was dismissed: spam",
	}, Permanent: true}, r.Failure)
	r = runFunction(t, f, withAnswers(answerTo("1", pregel.Answer{Expired: true})))
	require.Equal(t, &pregel.Failure{Failure: checkpoint.Failure{
		Reason: "INTERRUPT_EXPIRED", Type: "InterruptExpired", Message: "question number 1 expired without an answer",
	}, Permanent: true}, r.Failure)

	caught := func(ctx context.Context, _ api.State) (any, error) {
		_, err := api.Interrupt(ctx, 1)
		if dismissed, ok := errors.AsType[*api.DismissedError](err); ok {
			return map[string]any{"a": dismissed.Note}, nil
		}
		return nil, err
	}
	requireText(t, `{"a":"spam"}`, runFunction(t, caught, withAnswers(answerTo("1", pregel.Answer{Dismissed: true, Reason: "spam"}))).Update)
}

func TestAQuestionStandsWhateverTheFunctionDoes(t *testing.T) {
	for name, f := range map[string]api.Func{
		"swallowed": func(ctx context.Context, _ api.State) (any, error) {
			_, _ = api.Interrupt(ctx, 1)
			return map[string]any{"a": "went on"}, nil
		},
		"a bad result": func(ctx context.Context, _ api.State) (any, error) {
			_, _ = api.Interrupt(ctx, 1)
			return 17, nil
		},
		"an error that hides it": func(ctx context.Context, _ api.State) (any, error) {
			_, err := api.Interrupt(ctx, 1)
			return nil, errors.New("asking: " + err.Error())
		},
		"a panic": func(ctx context.Context, _ api.State) (any, error) {
			answer, _ := api.Interrupt(ctx, 1)
			return answer[0], nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, pregel.Result{Asks: []pregel.Ask{{Value: "1"}}}, runFunction(t, f))
		})
	}
}

func TestReplayThatDiffers(t *testing.T) {
	question := func(options ...api.AskOption) api.Func {
		return func(ctx context.Context, _ api.State) (any, error) {
			_, _ = api.Interrupt(ctx, 1, options...)
			return nil, nil
		}
	}
	memo := func(ctx context.Context, _ api.State) (any, error) {
		_, _ = api.Memo(ctx, "k", func(context.Context) (int, error) { return 1, nil })
		return nil, nil
	}
	for name, c := range map[string]struct {
		f       api.Func
		journal func(*runtime.Task)
		says    []string
	}{
		"a memo was there":  {question(api.Key("k")), withMemos(checkpoint.Memo{Key: "k", Value: "1"}), []string{"before it was memo number 1 of key \"k\"", "now it is question number 1 of key \"k\""}},
		"a question was":    {memo, withAnswers(pregel.Answer{Key: "k", Value: "1"}), []string{"before it was question number 1 of key", "now it is memo"}},
		"it has a key now":  {question(api.Key("k")), withAnswers(pregel.Answer{Value: "1"}), []string{"before it was question number 1, now it is question number 1 of key \"k\""}},
		"it had a key then": {question(), withAnswers(pregel.Answer{Key: "k", Value: "1"}), []string{"before it was question number 1 of key \"k\", now it is question number 1;"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunction(t, c.f, c.journal)
			require.NotNil(t, r.Failure)
			require.Equal(t, "NON_DETERMINISTIC_NODE", r.Failure.Reason)
			require.True(t, r.Failure.Permanent)
			require.Empty(t, r.Asks)
			for _, s := range c.says {
				require.Contains(t, r.Failure.Message, s)
			}
		})
	}
}

func TestWhatIsLeftOfTheJournal(t *testing.T) {
	journal := func(t *runtime.Task) {
		t.Journal.Answers = []pregel.Answer{{Value: "1"}}
		t.Journal.Memos = []checkpoint.Memo{{Key: "k", Value: "1"}}
	}
	require.Nil(t, runFunction(t, returnFunc(nil), journal).Failure)
	r := runFunctionWith(t, node.Options{StrictReplay: true}, returnFunc(nil), journal)
	require.Equal(t, "NON_DETERMINISTIC_NODE", r.Failure.Reason)
	require.Contains(t, r.Failure.Message, "before it was question number 1, now it is the end of the function")
	r = runFunctionWith(t, node.Options{StrictReplay: true}, returnFunc(nil), withMemos(checkpoint.Memo{Key: "k", Value: "1"}))
	require.Contains(t, r.Failure.Message, `before it was memo number 1 of key "k"`)
}

func TestMemoRunsOnce(t *testing.T) {
	ran := 0
	f := func(ctx context.Context, _ api.State) (any, error) {
		id, err := api.Memo(ctx, "order", func(context.Context) (int64, error) {
			ran++
			return 9007199254740993, nil
		})
		if err != nil {
			return nil, err
		}
		_, err = api.Interrupt(ctx, id)
		return map[string]int64{"a": id}, err
	}
	fx := &effectRecorder{}
	with := func(t *runtime.Task) { t.Effects = fx }
	require.Len(t, runFunction(t, f, with).Asks, 1)
	require.Equal(t, []checkpoint.Memo{{Task: "task", Key: "order", Value: "9007199254740993"}}, fx.memos)
	r := runFunction(t, f, with, withMemos(fx.memos...), withAnswers(answerTo("9007199254740993", pregel.Answer{Value: "null"})))
	requireText(t, `{"a":9007199254740993}`, r.Update)
	require.Equal(t, 1, ran)

	// Another attempt was faster: its record counts.
	fx.memos[0].Value = "7"
	require.Equal(t, payload.JSON("7"), runFunction(t, f, with).Asks[0].Value)
}

func TestAMemoIsGivenTheSameKeyOnEveryAttempt(t *testing.T) {
	var keys []string
	f := func(ctx context.Context, _ api.State) (any, error) {
		for _, scope := range []string{"", "s"} {
			for range 2 {
				_, err := api.MemoWithKey(api.Scope(ctx, scope), "order", func(_ context.Context, key string) (any, error) {
					keys = append(keys, key)
					return nil, &rateLimitedError{}
				})
				require.Error(t, err)
			}
		}
		return nil, nil
	}
	runFunction(t, f)
	runFunction(t, f)
	require.Equal(t, keys[:4], keys[4:])
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(keys))), 4)
}

func TestMemoFails(t *testing.T) {
	fx := &effectRecorder{}
	with := func(t *runtime.Task) { t.Effects = fx }
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		return api.Memo(ctx, "k", func(context.Context) (any, error) { return nil, &rateLimitedError{} })
	}, with)
	require.Equal(t, "rateLimitedError", r.Failure.Type)
	r = runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		return api.Memo(ctx, "k", func(context.Context) (any, error) { return func() {}, nil })
	}, with)
	require.Contains(t, r.Failure.Message, `memo "k": json: unsupported type`)
	r = runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		return api.Memo(ctx, "", func(context.Context) (any, error) { return 1, nil })
	}, with)
	require.Contains(t, r.Failure.Message, "needs a key")
	require.Empty(t, fx.memos)
}

func TestNothingIsRecordedBehindAQuestion(t *testing.T) {
	fx := &effectRecorder{}
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		_, _ = api.Interrupt(ctx, 1)
		_, err := api.Memo(ctx, "k", func(context.Context) (int, error) { return 1, nil })
		if _, waits := errors.AsType[*api.Interrupted](err); !waits {
			return nil, errors.New("the memo ran without the answer")
		}
		// Another scope may finish what it does.
		return api.Memo(api.Scope(ctx, "s"), "k", func(context.Context) (int, error) { return 2, nil })
	}, func(t *runtime.Task) { t.Effects = fx })
	require.Len(t, r.Asks, 1)
	require.Equal(t, []checkpoint.Memo{{Task: "task", Scope: "s", Key: "k", Value: "2"}}, fx.memos)
}

func TestEventsAreMutedDuringReplay(t *testing.T) {
	f := func(ctx context.Context, _ api.State) (any, error) {
		if err := api.Emit(ctx, "progress", map[string]string{"at": "<start>"}); err != nil {
			return nil, err
		}
		if _, err := api.Interrupt(ctx, 1); err != nil {
			return nil, err
		}
		if err := api.EmitMessage(ctx, "hel", api.Durable()); err != nil {
			return nil, err
		}
		return nil, api.Emit(ctx, "progress", json.RawMessage(`1.0`))
	}
	first, second := &effectRecorder{}, &effectRecorder{}
	runFunction(t, f, func(t *runtime.Task) { t.Effects = first })
	require.Equal(t, []runtime.Emission{{Kind: "custom", Name: "progress", Value: `{"at":"<start>"}`}}, first.emitted)
	runFunction(t, f, func(t *runtime.Task) { t.Effects = second }, withAnswers(answerTo("1", pregel.Answer{Value: "1"})))
	require.Equal(t, []runtime.Emission{
		{Kind: "message", Value: `"hel"`, Durable: true}, {Kind: "custom", Name: "progress", Value: "1.0"},
	}, second.emitted)

	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) { return nil, api.Emit(ctx, "", 1) })
	require.Contains(t, r.Failure.Message, "an event needs a name")
	r = runFunction(t, func(ctx context.Context, _ api.State) (any, error) { return nil, api.Emit(ctx, "x", func() {}) })
	require.Contains(t, r.Failure.Message, "the value of an event")
}

func TestRouterHasAJournalOfItsOwn(t *testing.T) {
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) { return api.Interrupt(ctx, 1) },
		asRouter, withAnswers(pregel.Answer{Value: `"n"`}))
	require.Len(t, r.Asks, 1, "the node's answer is not the router's; the engine refuses the question")

	fx := &effectRecorder{}
	router := func(ctx context.Context, _ api.State) (any, error) {
		return api.Memo(ctx, "k", func(context.Context) (string, error) { return "other", nil })
	}
	with := func(t *runtime.Task) { t.Effects = fx }
	require.Equal(t, "other", runFunction(t, router, asRouter, with, withMemos(checkpoint.Memo{Key: "k", Value: `"n"`})).Goto[0].Node)
	require.True(t, strings.HasPrefix(fx.memos[0].Scope, "router:router"))
}

func TestOutsideOfAFunction(t *testing.T) {
	ctx := t.Context()
	_, err := api.Ask[int](ctx, 1)
	require.ErrorIs(t, err, api.ErrNoTask)
	_, err = api.Memo(ctx, "k", func(context.Context) (int, error) { return 1, nil })
	require.ErrorIs(t, err, api.ErrNoTask)
	require.ErrorIs(t, api.Emit(ctx, "x", 1), api.ErrNoTask)
	require.Equal(t, api.Info{}, api.TaskInfo(ctx))
	require.Nil(t, api.Failed(ctx))
}
