package node_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/schema"
)

// answerToSecret returns an answer to a question that hid a value at /card.
func answerToSecret(t *testing.T, value, answer payload.JSON) pregel.Answer {
	t.Helper()
	asked := pregel.Ask{Value: value, Secret: []string{"/card"}}
	require.NoError(t, asked.HideSecrets())
	return pregel.Answer{InterruptID: "q1", Value: answer, HasSecrets: true, ShownDigest: asked.ShownDigest(), HiddenDigest: asked.HiddenDigest("q1")}
}

func TestSecretsOfAFunction(t *testing.T) {
	card, given := "4111", ""
	pay := func(ctx context.Context, _ api.State) (any, error) {
		answer, err := api.Interrupt(ctx, map[string]string{"card": card}, api.Secret("/card"))
		given = string(answer)
		return nil, err
	}
	r := runFunction(t, pay)
	require.Len(t, r.Asks, 1)
	require.Equal(t, []payload.JSON{`{"card":{"__redacted__": true}}`}, []payload.JSON{r.Asks[0].Value})
	require.False(t, r.Asks[0].Hidden.Value.IsEmpty())

	known := answerToSecret(t, `{"card":"4111"}`, `{"card":"7777"}`)
	r = runFunction(t, pay, withAnswers(known))
	require.Nil(t, r.Failure)
	require.JSONEq(t, `{"card":"7777"}`, given)

	card, given = "5222", ""
	r = runFunction(t, pay, withAnswers(known))
	require.Len(t, r.Asks, 1, "it asks with another secret")
	require.Empty(t, given)
}

func TestSecretsOfAFunctionThatAreNone(t *testing.T) {
	for name, options := range map[string][]api.AskOption{
		"no pointer": {api.Secret("card")},
		"an overlap": {api.Secret("/card"), api.Secret("/card/number")},
		"a default": {
			api.Secret("/card"), api.Schema(json.RawMessage(`{"properties":{"card":{"maxLength":1}}}`)), api.DefaultAfter(1, map[string]string{"card": "secret-1"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := runFunctionWith(t, node.Options{Schemas: schema.New(schema.Limits{})}, func(ctx context.Context, _ api.State) (any, error) {
				return api.Interrupt(ctx, map[string]string{"card": "4111"}, options...)
			})
			require.NotNil(t, r.Failure)
			require.Equal(t, "InvalidQuestion", r.Failure.Type)
			require.NotContains(t, r.Failure.Message, "secret-1")
		})
	}
}

// An answer that does not decode is not repeated in the failure.
func TestSecretAnswerOfAnotherType(t *testing.T) {
	r := runFunction(t, func(ctx context.Context, _ api.State) (any, error) {
		return api.Ask[[]int](ctx, map[string]string{"card": "4111"}, api.Secret("/card"))
	}, withAnswers(answerToSecret(t, `{"card":"4111"}`, `{"card":"7777"}`)))
	require.NotNil(t, r.Failure)
	require.Equal(t, "AnswerMismatch", r.Failure.Type)
	require.NotContains(t, r.Failure.Message, "7777")
}

func TestSecretsOfAnAskNode(t *testing.T) {
	g := oneNodeGraph(t, `ask: {value: '{"card": state.a}', secret: [/card], update: {b: size(answer.card), c: int(answer.card)}}`)
	task := newTask(t, g, `{"a":"4111"}`)
	r := executeTask(t, task)
	require.Len(t, r.Asks, 1)
	require.Equal(t, []payload.JSON{`{"card":{"__redacted__": true}}`}, []payload.JSON{r.Asks[0].Value})

	task.Journal.Answers = []pregel.Answer{answerToSecret(t, `{"card":"4111"}`, `{"card":"77"}`)}
	requireText(t, `{"b":2,"c":77}`, executeTask(t, task).Update)
	task.Journal.Answers = []pregel.Answer{answerToSecret(t, `{"card":"4111"}`, `{"card":"seventy"}`)}
	r = executeTask(t, task)
	require.NotNil(t, r.Failure)
	require.Contains(t, r.Failure.Message, "c: can't be evaluated")
	require.NotContains(t, r.Failure.Message, "seventy")
	task.Journal.Answers = []pregel.Answer{answerToSecret(t, `{"card":"5222"}`, `{"card":"77"}`)}
	r = executeTask(t, task)
	require.Len(t, r.Asks, 1, "another secret was asked with")
}

// A target out of a secret part is not repeated where it is no node.
func TestSecretTargets(t *testing.T) {
	g := oneNodeGraph(t, `ask: {value: '{"card": state.a}', secret: [/card], goto: answer.card}`)
	task := newTask(t, g, `{"a":"4111"}`)
	for card, isNode := range map[string]bool{"seventy": false, graph.Start: false, graph.End: true, task.Node.Name: true} {
		task.Journal.Answers = []pregel.Answer{answerToSecret(t, `{"card":"4111"}`, payload.Object([]payload.Field{{Key: "card", Value: payload.Quote(card)}}))}
		r := executeTask(t, task)
		require.Equal(t, isNode, r.Failure == nil, card)
		if r.Failure != nil {
			require.Equal(t, runtime.FailedUnknownTarget, r.Failure.Reason)
			require.NotContains(t, r.Failure.Message, card)
		}
	}
}

// A question without secret parts is neither parsed nor copied for them.
func TestQuestionsWithoutSecretsCostNothing(t *testing.T) {
	a := pregel.Ask{Value: "no JSON"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = a.HideSecrets()
		_ = a.HiddenDigest("q")
	}))
	require.Equal(t, redact.Parts{}, a.Hidden.Value)
}
