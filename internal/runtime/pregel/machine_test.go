package pregel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// machine walks a graph superstep by superstep. Each node does what code says.
type machine struct {
	t       *testing.T
	state   *pregel.State
	seq     uint64
	results map[string]pregel.Result
}

func compileGraph(t *testing.T, s *graph.Spec) *graph.Graph {
	t.Helper()
	e, err := expr.New(expr.Options{})
	require.NoError(t, err)
	if s.Name == "" {
		s.Name = "g"
	}
	g, err := graph.Compile(s, graph.Env{Expressions: e})
	require.NoError(t, err)
	return g
}

func newMachine(t *testing.T, s *graph.Spec, code map[string]pregel.Result) *machine {
	t.Helper()
	return &machine{t: t, state: pregel.NewState(compileGraph(t, s), "", pregel.Limits{}), results: code}
}

func (m *machine) newCheckpointInfo(source checkpoint.Source) pregel.CheckpointInfo {
	m.seq++
	return pregel.CheckpointInfo{ID: pregel.CheckpointID("t", "log", m.seq), Seq: m.seq, Source: source, Step: m.state.NextStep()}
}

// applyInput puts an input in; what was left to do is given up.
func (m *machine) applyInput(text string) {
	m.t.Helper()
	writes, err := m.state.InputWrites(payload.JSON(text))
	require.NoError(m.t, err)
	done := []pregel.TaskWrites{{Writes: writes}}
	for _, task := range m.planTasks() {
		done = append(done, pregel.TaskWrites{Task: task})
	}
	m.state, err = m.state.ApplyStep(done, m.newCheckpointInfo(checkpoint.SourceInput))
	require.NoError(m.t, err)
}

func (m *machine) planTasks() []*pregel.Task {
	m.t.Helper()
	tasks, err := m.state.PlanTasks()
	require.NoError(m.t, err)
	return tasks
}

// nextNodes names the nodes that are due, in the order of the plan.
func (m *machine) nextNodes() []string {
	var names []string
	for _, task := range m.planTasks() {
		names = append(names, task.Node.Name)
	}
	return names
}

// completeTasks completes the tasks that are due.
func (m *machine) completeTasks() []pregel.TaskWrites {
	m.t.Helper()
	var done []pregel.TaskWrites
	for _, task := range m.planTasks() {
		r := m.results[task.Node.Name]
		if task.Node.Kind == graph.KindStart {
			r = pregel.Result{Update: m.state.StartInput()}
		}
		writes, err := m.state.CompleteTask(task, r, nil)
		require.NoError(m.t, err)
		done = append(done, pregel.TaskWrites{Task: task, Writes: writes})
	}
	return done
}

// runStep runs one superstep.
func (m *machine) runStep() {
	m.t.Helper()
	s, err := m.state.ApplyStep(m.completeTasks(), m.newCheckpointInfo(checkpoint.SourceLoop))
	require.NoError(m.t, err)
	m.state = s
}

// reloadState makes the state again from what a store would keep of it.
func (m *machine) reloadState() {
	kept := *m.state.Checkpoint()
	m.state = pregel.LoadState(m.state.Graph(), &kept, false, pregel.Limits{})
}

// channelVersions shows the channels that have one.
func (m *machine) channelVersions() map[string]uint64 {
	out := make(map[string]uint64)
	for _, c := range m.state.Checkpoint().Channels {
		if c.Version > 0 {
			out[c.Name] = c.Version
		}
	}
	return out
}

func (m *machine) seenVersions() map[string]map[string]uint64 {
	out := make(map[string]map[string]uint64)
	for _, n := range m.state.Checkpoint().Seen {
		out[n.Node] = make(map[string]uint64)
		for _, v := range n.Versions {
			out[n.Node][v.Channel] = v.Version
		}
	}
	return out
}

func newNodes(names ...string) []graph.NodeSpec {
	var out []graph.NodeSpec
	for _, n := range names {
		out = append(out, graph.NodeSpec{Name: n, Function: &graph.FunctionSpec{}})
	}
	return out
}

func newEdges(pairs ...string) []graph.EdgeSpec {
	var out []graph.EdgeSpec
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, graph.EdgeSpec{From: []string{pairs[i]}, To: pairs[i+1]})
	}
	return out
}

func newResults(texts map[string]string) map[string]pregel.Result {
	out := make(map[string]pregel.Result)
	for n, t := range texts {
		out[n] = pregel.Result{Update: payload.JSON(t)}
	}
	return out
}
