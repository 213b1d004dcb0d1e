package graph_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/graph"
)

type audited struct {
	By string `json:"by"`
}

type line struct {
	Price int   `json:"price"`
	Next  *line `json:"next"`
}

// decision is an answer with all that fields can be.
type decision struct {
	audited

	Approved bool            `json:"approved"`
	Note     *string         `json:"note,omitempty"`
	Lines    []line          `json:"lines,omitempty"`
	Tags     map[string]uint `json:"tags,omitempty"`
	Until    time.Time       `json:"until"`
	Total    json.Number     `json:"total"`
	Code     int             `json:"code,string"`
	Bytes    []byte          `json:"bytes"`
	Pair     [2]float64      `json:"pair"`
	Any      any             `json:"any"`
	Hidden   string          `json:"-"`
	Plain    string
	private  string //nolint:unused // JSON does not have it
}

// The strict schema of a struct has its fields, as Go writes and reads them.
func TestStrictAnswersHaveTheSchemaOfTheirFields(t *testing.T) {
	nested := `{"type":"object","properties":{"price":{"type":"integer"},"next":{"type":["object","null"]}},"additionalProperties":false}`
	fields := `"approved":{"type":"boolean"},"note":{"type":["string","null"]},"lines":{"type":["array","null"],"items":` + nested + `},
		"tags":{"type":["object","null"],"additionalProperties":{"type":"integer","minimum":0}},"until":{},"total":{"type":"number"},"code":{},
		"bytes":{"type":["string","null"]},"pair":{"type":"array","items":{"type":"number"}},"any":{},"Plain":{"type":"string"},"by":{"type":"string"}`
	ask := graph.Strict(func(ctx context.Context, _ graph.State) (any, error) { return graph.Ask[decision](ctx, "?") })
	_, task, err := call(t, ask, graph.Info{}, `{}`, `{}`)
	require.NoError(t, err)
	schema := string(task.asked[0].Schema)
	require.JSONEq(t, `{"type":"object","properties":{`+fields+`},"additionalProperties":false}`, schema)
	require.Regexp(t, `approved.*note.*lines.*Plain.*by`, schema, "forms have the order of the fields")
}

// call calls a function for an answer.
func call(t *testing.T, f graph.Func, info graph.Info, state, answer string) (any, *fakeTask, error) {
	t.Helper()
	task := &fakeTask{answer: json.RawMessage(answer)}
	result, err := f(graph.WithTask(t.Context(), &info, task), graph.NewState(jsonValues(state)))
	return result, task, err
}

func TestStrictFunctionsRefuseUnknownKeys(t *testing.T) {
	type order struct {
		Lines []line `json:"lines"`
		Owner audited
	}
	f := graph.Strict(graph.Typed(func(_ context.Context, o order) (any, error) { return o.Lines[0].Price, nil }))
	byEdge, bySend := graph.Info{}, graph.Info{Input: "{}"}
	for _, c := range []struct {
		state     string
		info      graph.Info
		unknown   string
		knownKeys []string
	}{
		{`{"lines":[{"price":7}],"owner":{"BY":"a"},"other":{"x":1}}`, byEdge, "", nil}, // a part of the channels
		{`{"lines":[{"price":7}],"Owner":{"by":"a"}}`, bySend, "", nil},
		{`{"lines":[{"price":7}],"other":1}`, bySend, "/other", []string{"lines", "Owner"}},
		{`{"lines":[{"price":7},{"prise":7}]}`, byEdge, "/lines/1/prise", []string{"price", "next"}},
		{`{"lines":[{"price":7,"next":{"a/b~":1}}]}`, byEdge, "/lines/0/next/a~1b~0", []string{"price", "next"}},
		{`{"lines":[{"price":7}],"Owner":{"at":"a"}}`, byEdge, "/Owner/at", []string{"by"}},
	} {
		price, _, err := call(t, f, c.info, c.state, "")
		if c.unknown == "" {
			require.NoError(t, err, c.state)
			require.Equal(t, 7, price)
			continue
		}
		var unknown *graph.UnknownKeyError
		require.ErrorAs(t, err, &unknown, c.state)
		require.Equal(t, graph.UnknownKeyError{Key: c.unknown, Known: c.knownKeys}, *unknown)
		var permanent *graph.PermanentError
		require.ErrorAs(t, err, &permanent)
		var typed *graph.TypedError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, "UnknownKey", typed.Type)
	}
	_, _, err := call(t, f, bySend, `{"lines":[{"a":1},{"b":2}]}`, "")
	require.EqualError(t, err, "state: unknown key \"/lines/0/a\": want price, next\nunknown key \"/lines/1/b\": want price, next")
	require.Nil(t, graph.Strict(nil))

	decode := graph.Strict(func(_ context.Context, s graph.State) (any, error) {
		var lines []line
		err := s.Decode("lines", &lines)
		return lines, err
	})
	_, _, err = call(t, decode, byEdge, `{"lines":[{"prise":7}],"other":1}`, "")
	require.EqualError(t, err, `state key "lines": unknown key "/0/prise": want price, next`)
}

// A strict function asks for answers without further fields, at each level, and takes no others.
func TestStrictFunctionsAskStrictly(t *testing.T) {
	type choice struct {
		Line line `json:"line"`
	}
	ask := graph.Strict(func(ctx context.Context, _ graph.State) (any, error) { return graph.Ask[choice](ctx, "?") })
	_, task, err := call(t, ask, graph.Info{}, `{}`, `{"line":{"price":1}}`)
	require.NoError(t, err)
	nested := `{"type":"object","properties":{"price":{"type":"integer"},"next":{"type":["object","null"]}},"additionalProperties":false}`
	require.JSONEq(t, `{"type":"object","properties":{"line":`+nested+`},"additionalProperties":false}`, string(task.asked[0].Schema))
	_, _, err = call(t, ask, graph.Info{}, `{}`, `{"line":{"prise":1}}`) // of a question that was asked with another schema
	require.ErrorContains(t, err, `unknown key "/line/prise": want price, next`)
	var typed *graph.TypedError
	require.ErrorAs(t, err, &typed)
	require.Equal(t, "AnswerMismatch", typed.Type)

	lines := graph.Strict(func(ctx context.Context, _ graph.State) (any, error) { return graph.Ask[[]audited](ctx, "?") })
	_, task, err = call(t, lines, graph.Info{}, `{}`, `null`)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":["array","null"],"items":{"type":"object","properties":{"by":{"type":"string"}},"additionalProperties":false}}`, string(task.asked[0].Schema))
}
