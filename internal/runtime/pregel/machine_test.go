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
	t    *testing.T
	s    *pregel.State
	seq  uint64
	code map[string]pregel.Result
}

func compile(t *testing.T, s *graph.Spec) *graph.Graph {
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
	return &machine{t: t, s: pregel.New(compile(t, s), "", pregel.Limits{}), code: code}
}

func (m *machine) stamp(source checkpoint.Source) pregel.Stamp {
	m.seq++
	return pregel.Stamp{ID: pregel.CheckpointID("t", "log", m.seq), Seq: m.seq, Source: source, Step: m.s.NextStep()}
}

// input puts an input in; what was left to do is given up.
func (m *machine) input(text string) {
	m.t.Helper()
	writes, err := m.s.Input(payload.JSON(text))
	require.NoError(m.t, err)
	done := []pregel.Done{{Writes: writes}}
	for _, task := range m.plan() {
		done = append(done, pregel.Done{Task: task})
	}
	m.s, err = m.s.Apply(done, m.stamp(checkpoint.SourceInput))
	require.NoError(m.t, err)
}

func (m *machine) plan() []*pregel.Task {
	m.t.Helper()
	tasks, err := m.s.Plan()
	require.NoError(m.t, err)
	return tasks
}

// next names the nodes that are due, in the order of the plan.
func (m *machine) next() []string {
	var names []string
	for _, task := range m.plan() {
		names = append(names, task.Node.Name)
	}
	return names
}

// finish completes the tasks that are due.
func (m *machine) finish() []pregel.Done {
	m.t.Helper()
	var done []pregel.Done
	for _, task := range m.plan() {
		r := m.code[task.Node.Name]
		if task.Node.Kind == graph.KindStart {
			r = pregel.Result{Update: m.s.StartInput()}
		}
		writes, err := m.s.Complete(task, r, nil)
		require.NoError(m.t, err)
		done = append(done, pregel.Done{Task: task, Writes: writes})
	}
	return done
}

// step runs one superstep.
func (m *machine) step() {
	m.t.Helper()
	s, err := m.s.Apply(m.finish(), m.stamp(checkpoint.SourceLoop))
	require.NoError(m.t, err)
	m.s = s
}

// reload makes the state again from what a store would keep of it.
func (m *machine) reload() {
	kept := *m.s.Checkpoint()
	m.s = pregel.Load(m.s.Graph(), &kept, false, pregel.Limits{})
}

// versions shows the channels that have one.
func (m *machine) versions() map[string]uint64 {
	out := make(map[string]uint64)
	for _, c := range m.s.Checkpoint().Channels {
		if c.Version > 0 {
			out[c.Name] = c.Version
		}
	}
	return out
}

func (m *machine) seen() map[string]map[string]uint64 {
	out := make(map[string]map[string]uint64)
	for _, n := range m.s.Checkpoint().Seen {
		out[n.Node] = make(map[string]uint64)
		for _, v := range n.Versions {
			out[n.Node][v.Channel] = v.Version
		}
	}
	return out
}

func nodes(names ...string) []graph.NodeSpec {
	var out []graph.NodeSpec
	for _, n := range names {
		out = append(out, graph.NodeSpec{Name: n, Function: &graph.FunctionSpec{}})
	}
	return out
}

func edges(pairs ...string) []graph.EdgeSpec {
	var out []graph.EdgeSpec
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, graph.EdgeSpec{From: []string{pairs[i]}, To: pairs[i+1]})
	}
	return out
}

func updates(texts map[string]string) map[string]pregel.Result {
	out := make(map[string]pregel.Result)
	for n, t := range texts {
		out[n] = pregel.Result{Update: payload.JSON(t)}
	}
	return out
}
