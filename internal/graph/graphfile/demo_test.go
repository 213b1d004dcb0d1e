package graphfile_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/payload"
)

// stateValues is a graph.Reader over the state of a test.
type stateValues map[string]payload.JSON

func (v stateValues) Lookup(key string) (payload.JSON, bool) {
	value, ok := v[key]
	return value, ok
}

func (v stateValues) Keys() []string {
	var keys []string
	for _, name := range []string{
		"user_id", "user_request", "request_type", "analysis_result",
		"human_review", "final_response", "conversation_history",
	} {
		if _, ok := v[name]; ok {
			keys = append(keys, name)
		}
	}
	return keys
}

func newCompiler(tb testing.TB) *expr.Compiler {
	tb.Helper()
	c, err := expr.New(expr.Options{})
	require.NoError(tb, err)
	return c
}

func demoGraph(t *testing.T) *graph.Graph {
	t.Helper()
	file, err := graphfile.ReadFile("../../../examples/refund-review/graph.yaml")
	require.NoError(t, err)
	require.NoError(t, file.Err)
	g, err := file.Compile(graph.Env{Expressions: newCompiler(t)})
	require.NoError(t, err)
	return g
}

// runAssignments runs the assignments of a node on a state without history.
func runAssignments(t *testing.T, n *graph.Node, programs []graph.Program, list []graph.Assignment, v stateValues, answer payload.JSON) {
	t.Helper()
	next := stateValues{}
	for i, p := range programs {
		value, err := p.Eval(graph.Vars{State: v, Answer: answer})
		require.NoError(t, err, "%s.%s", n.Name, list[i].Channel)
		next[list[i].Channel] = value
	}
	maps.Copy(v, next)
}

func TestDemo(t *testing.T) {
	tests := map[string]struct {
		request  payload.JSON
		answer   payload.JSON // "" = no interrupt
		response string
	}{
		"conditions": {
			`"I want a REFUND"`, `{"decision":"approved_with_conditions","conditions":"10% restocking fee"}`,
			"Your refund has been approved under this condition: 10% restocking fee",
		},
		"approved in Chinese": {
			`"你好，我要退款"`, `{"decision":"approved"}`, "Your refund has been approved. The money is on its way.",
		},
		"rejected with a reason": {
			`"give me my money back"`, `{"decision":"rejected","reason":"too late"}`,
			"We are sorry, your refund was declined. Reason: too late",
		},
		"rejected": {`"refund"`, `{"decision":"rejected"}`, "We are sorry, your refund was declined."},
		"no refund": {
			`"Where is my parcel?"`, "", "Thank you for your message. We are looking into it: Where is my parcel?",
		},
	}
	g := demoGraph(t)
	require.Equal(t, "refund-review", g.Name)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := stateValues{"user_id": `{"id":9007199254740993}`, "user_request": test.request, "conversation_history": "[]"}
			analyze, review, execute := g.Nodes[1], g.Nodes[2], g.Nodes[3]
			runAssignments(t, analyze, analyze.Update, analyze.Spec.Expr.Update, v, "")
			asked, err := review.When.Eval(graph.Vars{State: v})
			require.NoError(t, err)
			require.Equal(t, test.answer != "", asked == "true")
			if test.answer == "" {
				require.Equal(t, payload.JSON(`"other"`), v["request_type"])
				runAssignments(t, review, review.Otherwise, review.Spec.Ask.Otherwise, v, "")
			} else {
				require.Equal(t, payload.JSON(`"refund"`), v["request_type"])
				question, err := review.Value.Eval(graph.Vars{State: v})
				require.NoError(t, err)
				id, _ := payload.Lookup(question, "user_id")
				require.Equal(t, v["user_id"], id)
				runAssignments(t, review, review.Update, review.Spec.Ask.Update, v, test.answer)
			}
			runAssignments(t, execute, execute.Update, execute.Spec.Expr.Update, v, "")
			require.Equal(t, payload.Quote(test.response), v["final_response"])
			require.Equal(t, payload.Object([]payload.Field{
				{Key: "node", Value: `"execute"`}, {Key: "content", Value: v["final_response"]},
			}), v["conversation_history"][1:len(v["conversation_history"])-1])
		})
	}
}
