package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var channelsAB = []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}}

func TestLinear(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"n1": updateNode(`{"a":["n1"]}`), "n2": updateNode(`{"a":["n2"]}`)},
		chainSpec("g", channelsAB, "n1", "n2"))
	r := w.runToStop("t", "g", `{"a":["in"],"b":9007199254740993}`)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	require.JSONEq(t, `{"a":["in","n1","n2"],"b":9007199254740993}`, string(r.Output))
	require.Equal(t, []string{
		"run running", "checkpoint input -1", "values", "checkpoint loop 0", "n1 scheduled",
		`n1 {"a":["n1"]}`, "n1 succeeded", "values", "checkpoint loop 1", "n2 scheduled",
		`n2 {"a":["n2"]}`, "n2 succeeded", "values", "checkpoint loop 2", "run succeeded",
	}, w.describeEvents("t"))
	require.Equal(t, []string{"n1", "n2"}, w.nodes.takeEntered())

	r = w.runToStop("t", "g", `{"a":["again"]}`)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	require.JSONEq(t, `{"a":["in","n1","n2","again","n1","n2"],"b":9007199254740993}`, w.stateValues("t"))
}

func TestAskTwiceInOneNode(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"n": func(_ context.Context, c *nodeCall) pregel.Result {
		name := c.askNext(`"name?"`)
		age := c.askNext(`"age?"`)
		return pregel.Result{Update: payload.JSON(`{"b":[` + name + `,` + age + `]}`)}
	}}, chainSpec("g", channelsAB, "n"))
	r := w.runToStop("t", "g", `{"b":1}`)
	require.Equal(t, checkpoint.RunInterrupted, r.State, "%+v", r.Failure)
	s := w.readState("t")
	require.Equal(t, []string{"n"}, s.Next)
	require.Len(t, s.Interrupts, 1)
	require.Equal(t, payload.JSON(`"name?"`), s.Interrupts[0].Value)

	r = w.answerSingle("t", `"Ann"`)
	require.Equal(t, checkpoint.RunInterrupted, r.State, "%+v", r.Failure)
	s = w.readState("t")
	require.Equal(t, []string{"n"}, s.Next)
	require.Len(t, s.Interrupts, 1)
	require.Equal(t, payload.JSON(`"age?"`), s.Interrupts[0].Value)

	r = w.answerSingle("t", `null`)
	require.Equal(t, checkpoint.RunSucceeded, r.State, "%+v", r.Failure)
	require.JSONEq(t, `{"a":[],"b":["Ann",null]}`, w.stateValues("t"))
	require.Equal(t, []string{"n", "n", "n"}, w.nodes.takeEntered())
}
