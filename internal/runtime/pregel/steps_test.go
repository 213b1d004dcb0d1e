package pregel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var listChannel = []graph.ChannelSpec{{Name: "l", Reducer: "append"}}

// One new version per superstep for all that changed; a trigger is emptied one
// superstep after it was written; what is not written does not move.
func TestVersions(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}},
		Nodes:    newNodes("n1", "n2", "n3"),
		Edges:    newEdges(graph.Start, "n1", "n1", "n2", "n2", "n3"),
	}, newResults(map[string]string{"n1": `{"a":["x"]}`, "n2": `{"b":1}`, "n3": `{"a":["y"]}`}))
	m.applyInput(`{"c":"keep"}`)
	require.Equal(t, -1, m.state.Checkpoint().Step)
	require.Equal(t, map[string]uint64{"__start__": 1}, m.channelVersions())
	require.Equal(t, []string{graph.Start}, m.nextNodes())
	m.runStep()
	require.Equal(t, map[string]uint64{"__start__": 2, "c": 2, "branch:to:n1": 2}, m.channelVersions())
	m.runStep()
	m.runStep()
	m.runStep()
	require.Equal(t, map[string]uint64{
		"__start__": 2, "a": 5, "b": 4, "c": 2, "branch:to:n1": 3, "branch:to:n2": 4, "branch:to:n3": 5,
	}, m.channelVersions())
	require.Equal(t, map[string]map[string]uint64{
		"__start__": {"__start__": 1}, "n1": {"branch:to:n1": 2}, "n2": {"branch:to:n2": 3}, "n3": {"branch:to:n3": 4},
	}, m.seenVersions())
	require.Equal(t, []string{"a"}, m.state.Checkpoint().Updated)
	require.Equal(t, 3, m.state.Checkpoint().Step)
	require.Empty(t, m.nextNodes())
}

// What was never written takes no space in a store, and the state that is read from
// there is the same.
func TestStoredIsWhatWasWritten(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a", Reducer: "append"}, {Name: "b"}, {Name: "c"}},
		Nodes:    newNodes("n1", "n2", "n3"),
		Edges:    newEdges(graph.Start, "n1", "n1", "n2", "n2", "n3"),
	}, newResults(map[string]string{"n1": `{"a":["x"]}`, "n2": `{"b":1}`, "n3": `{"a":["y"]}`}))
	m.applyInput(`{"c":"keep"}`)
	m.runStep()
	stored := m.state.StoredCheckpoint()
	var names []string
	for i := range stored.Channels {
		names = append(names, stored.Channels[i].Name)
	}
	require.ElementsMatch(t, []string{"__start__", "c", "branch:to:n1"}, names)
	require.Equal(t, m.state.Checkpoint(), pregel.LoadState(m.state.Graph(), stored, false, pregel.Limits{}).Checkpoint())
}

// Writing the same value again counts as a change.
func TestSameValueIsAChange(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a"}}, Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n", "n", "n"),
	}, newResults(map[string]string{"n": `{"a":1}`}))
	m.applyInput("{}")
	m.runStep()
	m.runStep()
	before := m.channelVersions()["a"]
	m.runStep()
	require.Equal(t, before+1, m.channelVersions()["a"])
}

// The order in which writes are combined: calls first, then triggered tasks by
// name, then Sends by position, an error handler where its task was.
func TestApplyOrder(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: append(newNodes("c", "a", "b", "h"), graph.NodeSpec{
			Name: "z", Function: &graph.FunctionSpec{}, Policy: graph.PolicySpec{ErrorHandler: "h"},
		}),
		Edges: newEdges(graph.Start, "c", graph.Start, "a", graph.Start, "b", graph.Start, "z"),
	}, map[string]pregel.Result{})
	m.applyInput("{}")
	m.runStep()
	require.Equal(t, []string{"a", "b", "c", "z"}, m.nextNodes())
	write := func(v string) []checkpoint.Write {
		return []checkpoint.Write{{Channel: "l", Value: payload.JSON(`["` + v + `"]`)}}
	}
	tasks := m.planTasks()
	node, _ := m.state.Graph().Node("a")
	handler := tasks[3].HandlerTask(&checkpoint.Failure{Message: "no"})
	done := []pregel.TaskWrites{
		{Task: &pregel.Task{ID: "s1", Node: node, IsPush: true, Index: 1}, Writes: write("send 1")},
		{Task: handler, Writes: write("handler of z")},
		{Task: tasks[3]},
		{Task: tasks[2], Writes: write("c")},
		{Writes: write("call")},
		{Task: &pregel.Task{ID: "s0", Node: node, IsPush: true, Index: 0}, Writes: write("send 0")},
		{Task: tasks[0], Writes: write("a")},
		{Task: tasks[1], Writes: write("b")},
	}
	s, err := m.state.ApplyStep(done, m.newCheckpointInfo(checkpoint.SourceLoop))
	require.NoError(t, err)
	require.JSONEq(t, `{"l":["call","a","b","c","handler of z","send 0","send 1"]}`, string(s.Values()))
}

func TestJoin(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("x", "y1", "y2", "z"),
		Edges: append(newEdges(graph.Start, "x", graph.Start, "y1", "y1", "y2"),
			graph.EdgeSpec{From: []string{"x", "y2"}, To: "z"}),
	}, nil)
	m.applyInput("{}")
	m.runStep()
	require.Equal(t, []string{"x", "y1"}, m.nextNodes())
	m.runStep()
	require.Equal(t, []string{"y2"}, m.nextNodes(), "one of two has arrived")
	m.reloadState()
	m.runStep()
	require.Equal(t, []string{"z"}, m.nextNodes())
	m.runStep()
	require.Empty(t, m.nextNodes(), "the join is empty again")

	m.applyInput("{}")
	m.runStep()
	m.runStep()
	require.Equal(t, []string{"y2"}, m.nextNodes(), "and waits for both again")
}

func TestJoinRefusesStrangers(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("x", "y", "z"),
		Edges: append(newEdges(graph.Start, "x", graph.Start, "y"), graph.EdgeSpec{From: []string{"x", "y"}, To: "z"}),
	}, nil)
	m.applyInput("{}")
	m.runStep()
	_, err := m.state.InjectWrites([]checkpoint.Write{{Channel: "join:x+y:z", Value: `"other"`}})
	require.ErrorContains(t, err, "waits for x, y, not for")
}

func TestDefer(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel,
		Nodes: append(newNodes("a", "b", "c"),
			graph.NodeSpec{Name: "late", Defer: true, Function: &graph.FunctionSpec{}},
			graph.NodeSpec{Name: "later", Defer: true, Function: &graph.FunctionSpec{}}),
		Edges: append(newEdges(graph.Start, "a", graph.Start, "late", "a", "b", "b", "c"),
			graph.EdgeSpec{From: []string{"a", "late"}, To: "later"}),
	}, nil)
	m.applyInput("{}")
	var order [][]string
	for m.runStep(); len(m.nextNodes()) > 0; m.runStep() {
		order = append(order, m.nextNodes())
		m.reloadState()
	}
	require.Equal(t, [][]string{{"a"}, {"b"}, {"c"}, {"late"}, {"later"}}, order)
}

func TestSends(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("n", "w", "x", "red"), Edges: newEdges(graph.Start, "n", "n", "x", "w", "red"),
	}, map[string]pregel.Result{
		"n": {Goto: []checkpoint.Send{{Node: "w", Input: "2"}, {Node: graph.End}, {Node: "w", Input: "1"}}},
		"w": {Update: `{"l":["w"]}`},
	})
	m.applyInput("{}")
	m.runStep()
	m.runStep()
	m.reloadState()
	require.Equal(t, []string{"w", "w", "x"}, m.nextNodes(), "Sends first, then what is triggered")
	tasks := m.planTasks()
	require.Equal(t, payload.JSON("2"), tasks[0].Input)
	require.Equal(t, payload.JSON("1"), tasks[1].Input)
	require.NotEqual(t, tasks[0].ID, tasks[1].ID)
	m.runStep()
	require.Equal(t, []string{"red"}, m.nextNodes(), "once, however many Sends there were")
	m.runStep()
	require.Empty(t, m.nextNodes())
}

func TestTargets(t *testing.T) {
	m := newMachine(t, &graph.Spec{Channels: listChannel, Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n")}, nil)
	m.applyInput("{}")
	m.runStep()
	task := m.planTasks()[0]
	for target, want := range map[checkpoint.Send]string{
		{Node: "ghost"}:                `no node "ghost" to go to; the graph has n`,
		{Node: "ghost", Input: "{}"}:   `no node "ghost" to go to; the graph has n`,
		{Node: graph.Start}:            `no node "__start__" to go to; the graph has n`,
		{Node: graph.End, Input: "{}"}: "cannot send an input to the end of the graph",
	} {
		_, err := m.state.CompleteTask(task, pregel.Result{Goto: []checkpoint.Send{target}}, nil)
		require.EqualError(t, err, want)
	}
	writes, err := m.state.CompleteTask(task, pregel.Result{Goto: []checkpoint.Send{{Node: graph.End}}}, nil)
	require.NoError(t, err)
	require.Empty(t, writes)
}

// The id of a task depends on where it stands and on nothing else.
func TestTaskIDs(t *testing.T) {
	spec := &graph.Spec{
		Channels: listChannel, Nodes: newNodes("a", "b"), Edges: newEdges(graph.Start, "a", graph.Start, "b", "a", "a"),
	}
	begin := func() *machine {
		m := newMachine(t, spec, nil)
		m.applyInput("{}")
		m.runStep()
		return m
	}
	m, again := begin(), begin()
	first := m.planTasks()
	require.Equal(t, first[0].ID, again.planTasks()[0].ID, "the same place, the same id")
	m.reloadState()
	require.Equal(t, first[0].ID, m.planTasks()[0].ID, "also after a restart")
	require.NotEqual(t, first[0].ID, first[1].ID, "another node, another id")

	fork := m.state.CopyToCheckpoint(m.newCheckpointInfo(checkpoint.SourceFork))
	forked, err := fork.PlanTasks()
	require.NoError(t, err)
	require.NotEqual(t, first[0].ID, forked[0].ID, "a copy has ids of its own")

	inside := pregel.NewState(m.state.Graph(), "sub:1", pregel.Limits{})
	require.True(t, inside.IsFresh())
	m.runStep()
	require.NotEqual(t, first[0].ID, m.planTasks()[0].ID, "the next visit has another one")

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
		Channels: listChannel, Nodes: newNodes("a", "b"), Edges: newEdges(graph.Start, "a", graph.Start, "b", "a", "a"),
	}, nil)
	m.applyInput("{}")
	require.Empty(t, m.state.HitBreakpoints([]string{graph.AllNodes}, m.planTasks()), "the start node is in no list")
	m.runStep()
	require.Equal(t, []string{"a"}, m.state.HitBreakpoints([]string{"a"}, m.planTasks()))
	require.Equal(t, []string{"a", "b"}, m.state.HitBreakpoints([]string{graph.AllNodes}, m.planTasks()))
	require.Empty(t, m.state.HitBreakpoints([]string{"c"}, m.planTasks()))
	m.state = m.state.MarkBreakpointsPassed()
	require.Empty(t, m.state.HitBreakpoints([]string{graph.AllNodes}, m.planTasks()), "passed, and nothing has changed since")
	m.reloadState()
	require.Empty(t, m.state.HitBreakpoints([]string{graph.AllNodes}, m.planTasks()))
	m.runStep()
	require.Equal(t, []string{"a"}, m.state.HitBreakpoints([]string{"a"}, m.planTasks()), "the next visit stops again")
}

func TestLastNode(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("a", "b", "c"), Edges: newEdges(graph.Start, "a", "a", "b", "a", "c"),
	}, nil)
	last := func() string {
		name, ok := m.state.LastNode()
		if !ok {
			return "?"
		}
		return name
	}
	require.Equal(t, graph.Start, last())
	m.applyInput("{}")
	m.runStep()
	require.Equal(t, graph.Start, last())
	m.runStep()
	require.Equal(t, "a", last())
	m.state = m.state.MarkBreakpointsPassed()
	require.Equal(t, "a", last(), "a breakpoint is no node")
	m.runStep()
	require.Equal(t, "?", last(), "two in one superstep")
}

// Tasks that were left over when an input came do not come back.
func TestInputGivesUpWhatWasLeft(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("a", "b"), Edges: newEdges(graph.Start, "a", "a", "b"),
	}, nil)
	m.applyInput("{}")
	m.runStep()
	m.runStep()
	require.Equal(t, []string{"b"}, m.nextNodes())
	m.applyInput("{}")
	require.Equal(t, []string{graph.Start}, m.nextNodes())
	m.runStep()
	require.Equal(t, []string{"a"}, m.nextNodes())
}

func TestConditionalEdgesSeeTheirOwnWritesOnly(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "n", Reducer: "add", Default: "0"}},
		Nodes:    newNodes("a", "b", "x"), Edges: newEdges(graph.Start, "a", graph.Start, "b"),
		Branches: []graph.BranchSpec{
			{From: "a", Cases: []graph.CaseSpec{{When: "state.n == 1", To: []string{"x"}}}},
			{From: "b", Cases: []graph.CaseSpec{{When: "state.n > 10", To: []string{"x"}}}},
		},
	}, newResults(map[string]string{"a": `{"n":1}`, "b": `{"n":10}`}))
	m.applyInput("{}")
	m.runStep()
	m.runStep()
	require.Equal(t, []string{"x"}, m.nextNodes())
	require.JSONEq(t, `{"n":11}`, string(m.state.Values()))
}

func TestUpdateOf(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "a"}, {Name: "l", Reducer: "append"}}, Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n"),
	}, nil)
	w := func(pairs ...string) (out []checkpoint.Write) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, checkpoint.Write{Channel: pairs[i], Value: payload.JSON(pairs[i+1])})
		}
		return out
	}
	require.Equal(t, payload.Null, m.state.UpdateOf(w("branch:to:n", "null")))
	require.JSONEq(t, `{"a":1,"l":[2]}`, string(m.state.UpdateOf(w("a", "1", "l", "[2]"))))
	require.JSONEq(t, `[{"l":[1]},{"l":[2]},{"a":3}]`, string(m.state.UpdateOf(w("l", "[1]", "l", "[2]", "a", "3"))))
}
