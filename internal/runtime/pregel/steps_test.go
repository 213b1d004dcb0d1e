package pregel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var list = []graph.ChannelSpec{{Name: "l", Reducer: "append"}}

// One new version per superstep for all that changed; a trigger is emptied one
// superstep after it was written; what nobody touches does not move.
func TestVersions(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}},
		Nodes:    nodes("n1", "n2", "n3"),
		Edges:    edges(graph.Start, "n1", "n1", "n2", "n2", "n3"),
	}, updates(map[string]string{"n1": `{"a":["x"]}`, "n2": `{"b":1}`, "n3": `{"a":["y"]}`}))
	m.input(`{"c":"keep"}`)
	require.Equal(t, -1, m.s.Checkpoint().Step)
	require.Equal(t, map[string]uint64{"__start__": 1}, m.versions())
	require.Equal(t, []string{graph.Start}, m.next())
	m.step()
	require.Equal(t, map[string]uint64{"__start__": 2, "c": 2, "branch:to:n1": 2}, m.versions())
	m.step()
	m.step()
	m.step()
	require.Equal(t, map[string]uint64{
		"__start__": 2, "a": 5, "b": 4, "c": 2, "branch:to:n1": 3, "branch:to:n2": 4, "branch:to:n3": 5,
	}, m.versions())
	require.Equal(t, map[string]map[string]uint64{
		"__start__": {"__start__": 1}, "n1": {"branch:to:n1": 2}, "n2": {"branch:to:n2": 3}, "n3": {"branch:to:n3": 4},
	}, m.seen())
	require.Equal(t, []string{"a"}, m.s.Checkpoint().Updated)
	require.Equal(t, 3, m.s.Checkpoint().Step)
	require.Empty(t, m.next())
}

// What was never written takes no room in a store, and the state that is read
// from there is the same.
func TestStoredIsWhatWasWritten(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}},
		Nodes:    nodes("n1", "n2", "n3"),
		Edges:    edges(graph.Start, "n1", "n1", "n2", "n2", "n3"),
	}, updates(map[string]string{"n1": `{"a":["x"]}`, "n2": `{"b":1}`, "n3": `{"a":["y"]}`}))
	m.input(`{"c":"keep"}`)
	m.step()
	stored := m.s.Stored()
	var names []string
	for i := range stored.Channels {
		names = append(names, stored.Channels[i].Name)
	}
	require.ElementsMatch(t, []string{"__start__", "c", "branch:to:n1"}, names)
	require.Equal(t, m.s.Checkpoint(), pregel.Load(m.s.Graph(), stored, false, pregel.Limits{}).Checkpoint())
}

// Writing the same value again counts as a change.
func TestSameValueIsAChange(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a"}}, Nodes: nodes("n"), Edges: edges(graph.Start, "n", "n", "n"),
	}, updates(map[string]string{"n": `{"a":1}`}))
	m.input("{}")
	m.step()
	m.step()
	before := m.versions()["a"]
	m.step()
	require.Equal(t, before+1, m.versions()["a"])
}

// The order in which writes are combined: calls first, then triggered tasks by
// name, then Sends by position, an error handler where its task was.
func TestApplyOrder(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: append(nodes("c", "a", "b", "h"), graph.NodeSpec{
			Name: "z", Function: &graph.FunctionSpec{}, Policy: graph.PolicySpec{ErrorHandler: "h"},
		}),
		Edges: edges(graph.Start, "c", graph.Start, "a", graph.Start, "b", graph.Start, "z"),
	}, map[string]pregel.Result{})
	m.input("{}")
	m.step()
	require.Equal(t, []string{"a", "b", "c", "z"}, m.next())
	write := func(v string) []checkpoint.Write {
		return []checkpoint.Write{{Channel: "l", Value: payload.JSON(`["` + v + `"]`)}}
	}
	tasks := m.plan()
	node, _ := m.s.Graph().Node("a")
	handler := tasks[3].Handler(&checkpoint.Failure{Message: "no"})
	done := []pregel.Done{
		{Task: &pregel.Task{ID: "s1", Node: node, Push: true, Index: 1}, Writes: write("send 1")},
		{Task: handler, Writes: write("handler of z")},
		{Task: tasks[3]},
		{Task: tasks[2], Writes: write("c")},
		{Writes: write("call")},
		{Task: &pregel.Task{ID: "s0", Node: node, Push: true, Index: 0}, Writes: write("send 0")},
		{Task: tasks[0], Writes: write("a")},
		{Task: tasks[1], Writes: write("b")},
	}
	s, err := m.s.Apply(done, m.stamp(checkpoint.SourceLoop))
	require.NoError(t, err)
	require.JSONEq(t, `{"l":["call","a","b","c","handler of z","send 0","send 1"]}`, string(s.Values()))
}

func TestJoin(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("x", "y1", "y2", "z"),
		Edges: append(edges(graph.Start, "x", graph.Start, "y1", "y1", "y2"),
			graph.EdgeSpec{From: []string{"x", "y2"}, To: "z"}),
	}, nil)
	m.input("{}")
	m.step()
	require.Equal(t, []string{"x", "y1"}, m.next())
	m.step()
	require.Equal(t, []string{"y2"}, m.next(), "one of two has arrived")
	m.reload()
	m.step()
	require.Equal(t, []string{"z"}, m.next())
	m.step()
	require.Empty(t, m.next(), "the join is empty again")

	m.input("{}")
	m.step()
	m.step()
	require.Equal(t, []string{"y2"}, m.next(), "and waits for both again")
}

func TestJoinRefusesStrangers(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("x", "y", "z"),
		Edges: append(edges(graph.Start, "x", graph.Start, "y"), graph.EdgeSpec{From: []string{"x", "y"}, To: "z"}),
	}, nil)
	m.input("{}")
	m.step()
	_, err := m.s.Inject([]checkpoint.Write{{Channel: "join:x+y:z", Value: `"other"`}})
	require.ErrorContains(t, err, "waits for x, y, not for")
}

func TestDefer(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list,
		Nodes: append(nodes("a", "b", "c"),
			graph.NodeSpec{Name: "late", Defer: true, Function: &graph.FunctionSpec{}},
			graph.NodeSpec{Name: "later", Defer: true, Function: &graph.FunctionSpec{}}),
		Edges: append(edges(graph.Start, "a", graph.Start, "late", "a", "b", "b", "c"),
			graph.EdgeSpec{From: []string{"a", "late"}, To: "later"}),
	}, nil)
	m.input("{}")
	var order [][]string
	for m.step(); len(m.next()) > 0; m.step() {
		order = append(order, m.next())
		m.reload()
	}
	require.Equal(t, [][]string{{"a"}, {"b"}, {"c"}, {"late"}, {"later"}}, order)
}

func TestSends(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("n", "w", "x", "red"), Edges: edges(graph.Start, "n", "n", "x", "w", "red"),
	}, map[string]pregel.Result{
		"n": {Goto: []checkpoint.Send{{Node: "w", Input: "2"}, {Node: graph.End}, {Node: "w", Input: "1"}}},
		"w": {Update: `{"l":["w"]}`},
	})
	m.input("{}")
	m.step()
	m.step()
	m.reload()
	require.Equal(t, []string{"w", "w", "x"}, m.next(), "Sends first, then what is triggered")
	tasks := m.plan()
	require.Equal(t, payload.JSON("2"), tasks[0].Input)
	require.Equal(t, payload.JSON("1"), tasks[1].Input)
	require.NotEqual(t, tasks[0].ID, tasks[1].ID)
	m.step()
	require.Equal(t, []string{"red"}, m.next(), "once, however many Sends there were")
	m.step()
	require.Empty(t, m.next())
}

func TestTargets(t *testing.T) {
	m := newMachine(t, &graph.Spec{Channels: list, Nodes: nodes("n"), Edges: edges(graph.Start, "n")}, nil)
	m.input("{}")
	m.step()
	task := m.plan()[0]
	for target, want := range map[checkpoint.Send]string{
		{Node: "ghost"}:                `no node "ghost" to go to; the graph has n`,
		{Node: "ghost", Input: "{}"}:   `no node "ghost" to go to; the graph has n`,
		{Node: graph.Start}:            `no node "__start__" to go to; the graph has n`,
		{Node: graph.End, Input: "{}"}: "cannot send an input to the end of the graph",
	} {
		_, err := m.s.Complete(task, pregel.Result{Goto: []checkpoint.Send{target}}, nil)
		require.EqualError(t, err, want)
	}
	writes, err := m.s.Complete(task, pregel.Result{Goto: []checkpoint.Send{{Node: graph.End}}}, nil)
	require.NoError(t, err)
	require.Empty(t, writes)
}

// The id of a task depends on where it stands and on nothing else.
func TestTaskIDs(t *testing.T) {
	spec := &graph.Spec{
		Channels: list, Nodes: nodes("a", "b"), Edges: edges(graph.Start, "a", graph.Start, "b", "a", "a"),
	}
	begin := func() *machine {
		m := newMachine(t, spec, nil)
		m.input("{}")
		m.step()
		return m
	}
	m, again := begin(), begin()
	first := m.plan()
	require.Equal(t, first[0].ID, again.plan()[0].ID, "the same place, the same id")
	m.reload()
	require.Equal(t, first[0].ID, m.plan()[0].ID, "also after a restart")
	require.NotEqual(t, first[0].ID, first[1].ID, "another node, another id")

	fork := m.s.Restamp(m.stamp(checkpoint.SourceFork))
	forked, err := fork.Plan()
	require.NoError(t, err)
	require.NotEqual(t, first[0].ID, forked[0].ID, "a copy has ids of its own")

	inside := pregel.New(m.s.Graph(), "sub:1", pregel.Limits{})
	require.True(t, inside.Fresh())
	m.step()
	require.NotEqual(t, first[0].ID, m.plan()[0].ID, "the next visit has another one")

	q := pregel.InterruptID(first[0].ID, "", "", 0, 0)
	require.Equal(t, q, pregel.InterruptID(first[0].ID, "", "", 0, 0))
	for _, other := range []string{
		pregel.InterruptID(first[0].ID, "", "", 1, 0), pregel.InterruptID(first[0].ID, "tool", "", 0, 0),
		pregel.InterruptID(first[0].ID, "", "key", 0, 0), pregel.InterruptID(first[1].ID, "", "", 0, 0),
	} {
		require.NotEqual(t, q, other)
	}
}

func TestCheckpointIDsSort(t *testing.T) {
	last := ""
	for _, seq := range []uint64{1, 2, 9, 10, 255, 256, 1 << 20, 1 << 40} {
		id := pregel.CheckpointID("t", "log", seq)
		require.Greater(t, id, last)
		last = id
	}
	require.NotEqual(t, pregel.CheckpointID("t", "log", 1), pregel.CheckpointID("t", "other", 1))
}

func TestBreakpoints(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("a", "b"), Edges: edges(graph.Start, "a", graph.Start, "b", "a", "a"),
	}, nil)
	m.input("{}")
	require.Empty(t, m.s.Breaks([]string{graph.Every}, m.plan()), "the start node is nobody's")
	m.step()
	require.Equal(t, []string{"a"}, m.s.Breaks([]string{"a"}, m.plan()))
	require.Equal(t, []string{"a", "b"}, m.s.Breaks([]string{graph.Every}, m.plan()))
	require.Empty(t, m.s.Breaks([]string{"c"}, m.plan()))
	m.s = m.s.PassBreak()
	require.Empty(t, m.s.Breaks([]string{graph.Every}, m.plan()), "passed, and nothing has changed since")
	m.reload()
	require.Empty(t, m.s.Breaks([]string{graph.Every}, m.plan()))
	m.step()
	require.Equal(t, []string{"a"}, m.s.Breaks([]string{"a"}, m.plan()), "the next visit stops again")
}

func TestLastNode(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("a", "b", "c"), Edges: edges(graph.Start, "a", "a", "b", "a", "c"),
	}, nil)
	last := func() string {
		name, ok := m.s.LastNode()
		if !ok {
			return "?"
		}
		return name
	}
	require.Equal(t, graph.Start, last())
	m.input("{}")
	m.step()
	require.Equal(t, graph.Start, last())
	m.step()
	require.Equal(t, "a", last())
	m.s = m.s.PassBreak()
	require.Equal(t, "a", last(), "a breakpoint is no node")
	m.step()
	require.Equal(t, "?", last(), "two in one superstep")
}

// Tasks that were left over when an input came do not come back.
func TestInputGivesUpWhatWasLeft(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("a", "b"), Edges: edges(graph.Start, "a", "a", "b"),
	}, nil)
	m.input("{}")
	m.step()
	m.step()
	require.Equal(t, []string{"b"}, m.next())
	m.input("{}")
	require.Equal(t, []string{graph.Start}, m.next())
	m.step()
	require.Equal(t, []string{"a"}, m.next())
}

func TestConditionalEdgesSeeTheirOwnWritesOnly(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "n", Reducer: "add", Default: "0"}},
		Nodes:    nodes("a", "b", "x"), Edges: edges(graph.Start, "a", graph.Start, "b"),
		Branches: []graph.BranchSpec{
			{From: "a", Cases: []graph.CaseSpec{{When: "state.n == 1", To: []string{"x"}}}},
			{From: "b", Cases: []graph.CaseSpec{{When: "state.n > 10", To: []string{"x"}}}},
		},
	}, updates(map[string]string{"a": `{"n":1}`, "b": `{"n":10}`}))
	m.input("{}")
	m.step()
	m.step()
	require.Equal(t, []string{"x"}, m.next())
	require.JSONEq(t, `{"n":11}`, string(m.s.Values()))
}

func TestUpdateOf(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a"}, {Name: "l", Reducer: "append"}}, Nodes: nodes("n"), Edges: edges(graph.Start, "n"),
	}, nil)
	w := func(pairs ...string) (out []checkpoint.Write) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, checkpoint.Write{Channel: pairs[i], Value: payload.JSON(pairs[i+1])})
		}
		return out
	}
	require.Equal(t, payload.Null, m.s.UpdateOf(w("branch:to:n", "null")))
	require.JSONEq(t, `{"a":1,"l":[2]}`, string(m.s.UpdateOf(w("a", "1", "l", "[2]"))))
	require.JSONEq(t, `[{"l":[1]},{"l":[2]},{"a":3}]`, string(m.s.UpdateOf(w("l", "[1]", "l", "[2]", "a", "3"))))
}
