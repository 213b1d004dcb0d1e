package pregel_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// FuzzCompletionOrder walks a graph with every kind of trigger. Whatever the
// order in which the tasks of a superstep finish, and whether or not the state
// was loaded in between, the same checkpoint comes out; versions only grow.
func FuzzCompletionOrder(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(7), uint64(11))
	f.Add(uint64(1234), uint64(99))
	f.Fuzz(func(t *testing.T, program, order uint64) {
		straight := runSupersteps(t, program, func([]pregel.TaskWrites) {}, false)
		r := rand.New(rand.NewPCG(order, 1))
		shuffled := runSupersteps(t, program, func(done []pregel.TaskWrites) {
			r.Shuffle(len(done), func(i, j int) { done[i], done[j] = done[j], done[i] })
		}, order%2 == 0)
		require.Equal(t, straight, shuffled)
	})
}

// runSupersteps runs some supersteps that a number decides, and notes the checkpoints.
func runSupersteps(t *testing.T, program uint64, shuffle func([]pregel.TaskWrites), reload bool) []checkpoint.Checkpoint {
	t.Helper()
	names := []string{"a", "b", "c", "d", "late"}
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{
			{Name: "l", Reducer: "append"},
			{Name: "n", Reducer: "add", Default: "0"},
			{Name: "any", Reducer: "any"},
			{Name: "m", Reducer: "messages"},
			{Name: "u", Reducer: "union"},
			{Name: "t", Reducer: "topic"},
		},
		Nodes: append(newNodes("a", "b", "c", "d"), graph.NodeSpec{Name: "late", Defer: true, Function: &graph.FunctionSpec{}}),
		Edges: append(newEdges(graph.Start, "a", graph.Start, "b", "a", "late", "b", "c"),
			graph.EdgeSpec{From: []string{"a", "c"}, To: "d"}),
	}, nil)
	r := rand.New(rand.NewPCG(program, 2))
	m.applyInput(`{"l":["in"]}`)
	var trail []checkpoint.Checkpoint
	before := m.channelVersions()
	for range 8 {
		var done []pregel.TaskWrites
		for i, task := range m.planTasks() {
			writes, err := m.state.CompleteTask(task, randomResult(r, names, i), nil)
			require.NoError(t, err)
			done = append(done, pregel.TaskWrites{Task: task, Writes: writes})
		}
		shuffle(done)
		s, err := m.state.ApplyStep(done, m.newCheckpointInfo(checkpoint.SourceLoop))
		require.NoError(t, err)
		m.state = s
		before = requireGrown(t, before, m.channelVersions())
		cp := *m.state.Checkpoint()
		trail = append(trail, copyCheckpoint(cp))
		if reload {
			m.reloadState()
		}
	}
	return trail
}

// randomResult returns a result for the i-th task of a superstep.
func randomResult(r *rand.Rand, names []string, i int) pregel.Result {
	v := r.IntN(100)
	out := pregel.Result{Update: payload.JSON(fmt.Sprintf(
		`{"l":["%d.%d"],"n":%d,"any":%d,"m":[{"type":"human","content":"%d"}],"u":[%d],"t":%d}`, i, v, v, v, v, v%5, v))}
	for range r.IntN(3) {
		target := checkpoint.Send{Node: names[r.IntN(len(names))]}
		if r.IntN(2) == 0 {
			target.Input = payload.JSON(fmt.Sprint(r.IntN(9)))
		}
		out.Goto = append(out.Goto, target)
	}
	return out
}

// requireGrown checks that no channel has gone back, and that all that changed in a
// superstep has the same new version.
func requireGrown(t *testing.T, before, now map[string]uint64) map[string]uint64 {
	t.Helper()
	top := uint64(0)
	for _, v := range before {
		top = max(top, v)
	}
	for name, v := range now {
		if v != before[name] {
			require.Equal(t, top+1, v, name)
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(before)))
	return now
}

// copyCheckpoint copies a checkpoint without the fields that depend on shared memory.
func copyCheckpoint(cp checkpoint.Checkpoint) checkpoint.Checkpoint {
	channels := make([]checkpoint.Channel, len(cp.Channels))
	copy(channels, cp.Channels)
	for i := range channels {
		if l := channels[i].List; l != nil {
			copied := *l
			copied.Items = append([]payload.JSON(nil), l.Items...)
			copied.Segments = append([]checkpoint.Segment(nil), l.Segments...)
			channels[i].List = &copied
		}
	}
	cp.Channels = channels
	return cp
}
