package pregel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// reducerStep is what one superstep writes to the channel "x", and what it then
// holds; "" is nothing. A value that begins with ! replaces whatever is there.
type reducerStep struct {
	writes    []string
	want      string
	wantError string // part of the error
}

func TestReducers(t *testing.T) {
	none := []string(nil)
	cases := []struct {
		name    string
		reducer string
		initial string
		steps   []reducerStep
	}{
		{"last keeps the value", "last", "", []reducerStep{{none, "", ""}, {[]string{"1"}, "1", ""}, {none, "1", ""}, {[]string{"null"}, "null", ""}}},
		{"last takes one value", "last", "", []reducerStep{{[]string{"1", "2"}, "", "got 2 values in one superstep"}}},
		{"last with a default", "last", "7", []reducerStep{{none, "7", ""}, {[]string{"null"}, "null", ""}}},
		{"any takes the last of several", "any", "", []reducerStep{{[]string{"1", "2"}, "2", ""}, {none, "", ""}}},
		{"ephemeral lives for one superstep", "ephemeral", "", []reducerStep{{[]string{"1"}, "1", ""}, {none, "", ""}, {[]string{"1", "2"}, "", "got 2 values"}}},
		{"untracked is kept while the run lives", "untracked", "", []reducerStep{{[]string{"1"}, "1", ""}, {none, "1", ""}, {[]string{"1", "2"}, "", "got 2 values"}}},
		{"append", "append", "", []reducerStep{{none, "[]", ""}, {[]string{"[1]", "[2,3]"}, "[1,2,3]", ""}, {none, "[1,2,3]", ""}, {[]string{"[]"}, "[1,2,3]", ""}}},
		{"append to a default", "append", "[0]", []reducerStep{{[]string{"[1]"}, "[0,1]", ""}}},
		{"append takes lists", "append", "", []reducerStep{{[]string{"1"}, "", "combines arrays, but was given number"}}},
		{"append, replaced", "append", "", []reducerStep{{[]string{"[1]"}, "[1]", ""}, {[]string{"[2]", "![3]", "[4]"}, "[3]", ""}, {[]string{"[5]"}, "[3,5]", ""}}},
		{"append, replaced in JSON", "append", "", []reducerStep{{[]string{"[1]"}, "[1]", ""}, {[]string{`{"__overwrite__":[9]}`}, "[9]", ""}, {[]string{`{"type":"__overwrite__","value":[]}`}, "[]", ""}}},
		{"two replacements", "append", "", []reducerStep{{[]string{"![1]", "![2]"}, "", "two overwrites"}}},
		{"add numbers", "add", "0", []reducerStep{{none, "0", ""}, {[]string{"1", "2"}, "3", ""}, {[]string{"-1.5"}, "1.5", ""}}},
		{"add without a default begins with the first", "add", "", []reducerStep{{none, "", ""}, {[]string{"5"}, "5", ""}, {[]string{"1"}, "6", ""}}},
		{"add keeps big numbers", "add", "0", []reducerStep{{[]string{"9007199254740993"}, "9007199254740993", ""}, {[]string{"1"}, "9007199254740994", ""}}},
		{"add texts", "add", `""`, []reducerStep{{[]string{`"a"`, `"b"`}, `"ab"`, ""}}},
		{"add takes one kind", "add", "0", []reducerStep{{[]string{`"a"`}, "", "channel x"}}},
		{"add, replaced", "add", "0", []reducerStep{{[]string{"5"}, "5", ""}, {[]string{"1", "!2"}, "2", ""}}},
		{"merge", "merge", "", []reducerStep{{[]string{`{"a":1}`, `{"b":{"c":1}}`}, `{"a":1,"b":{"c":1}}`, ""}, {[]string{`{"b":{"d":2}}`}, `{"a":1,"b":{"d":2}}`, ""}}},
		{"deep merge", "deep_merge", "", []reducerStep{{[]string{`{"b":{"c":1}}`}, `{"b":{"c":1}}`, ""}, {[]string{`{"b":{"d":2}}`}, `{"b":{"c":1,"d":2}}`, ""}}},
		{"union", "union", "", []reducerStep{{[]string{"[1,2]", "[2,3]"}, "[1,2,3]", ""}, {[]string{"[3,1]"}, "[1,2,3]", ""}}},
		{"min", "min", "", []reducerStep{{[]string{"3", "1", "2"}, "1", ""}, {[]string{"5"}, "1", ""}, {[]string{"0"}, "0", ""}}},
		{"max", "max", "", []reducerStep{{[]string{"3", "1"}, "3", ""}, {[]string{"5"}, "5", ""}}},
		{"topic collects, single or in lists", "topic", "", []reducerStep{{[]string{"1", "[2,[3]]"}, "[1,2,[3]]", ""}, {none, "[1,2,[3]]", ""}, {[]string{"4"}, "[1,2,[3],4]", ""}}},
		{"topic_once keeps those of one superstep", "topic_once", "", []reducerStep{{[]string{"1", "[2,[3]]"}, "[1,2,[3]]", ""}, {[]string{"4"}, "[4]", ""}, {none, "", ""}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := stateWithInput(t, &graph.Spec{
				Channels: []graph.ChannelSpec{{Name: "x", Reducer: c.reducer, Default: payload.JSON(c.initial)}},
				Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
			})
			for i, step := range c.steps {
				next, err := s.ApplyStep(writesToX(s, step.writes), pregel.CheckpointInfo{ID: "c", Seq: uint64(i) + 2, Step: i})
				if step.wantError != "" {
					var update *pregel.UpdateError
					require.ErrorAs(t, err, &update)
					require.Equal(t, "x", update.Channel)
					require.ErrorContains(t, err, step.wantError)
					continue // nothing has changed
				}
				require.NoError(t, err)
				s = next
				v, ok := s.Value("x")
				require.Equal(t, step.want, string(v), "superstep %d", i)
				require.Equal(t, step.want != "", ok)
			}
		})
	}
}

// stateWithInput returns a state that has seen an input.
func stateWithInput(t *testing.T, spec *graph.Spec) *pregel.State {
	t.Helper()
	m := newMachine(t, spec, nil)
	m.applyInput("{}")
	return m.state
}

// writesToX returns a finished task with a write to x.
func writesToX(s *pregel.State, values []string) []pregel.TaskWrites {
	n, _ := s.Graph().Node("a")
	d := pregel.TaskWrites{Task: &pregel.Task{ID: "t", Node: n, IsPush: true}}
	for _, v := range values {
		w := checkpoint.Write{Channel: "x", Value: payload.JSON(v)}
		if v[0] == '!' {
			w.Value, w.Overwrite = w.Value[1:], true
		}
		d.Writes = append(d.Writes, w)
	}
	return []pregel.TaskWrites{d}
}

func TestUntrackedIsNeverStored(t *testing.T) {
	s := stateWithInput(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "x", Reducer: "untracked"}},
		Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
	})
	s, err := s.ApplyStep(writesToX(s, []string{`"secret"`}), pregel.CheckpointInfo{ID: "c", Seq: 2})
	require.NoError(t, err)
	require.True(t, s.HasOutputChanged())
	for _, c := range s.Checkpoint().Channels {
		require.NotContains(t, string(c.Value), "secret")
	}
	_, ok := pregel.LoadState(s.Graph(), s.Checkpoint(), false, pregel.Limits{}).Value("x")
	require.False(t, ok)
}

// The state of a superstep that is not over has lost what lasts for one superstep, unless
// a finished task has written it again. Without a finished task it is the state before.
func TestPartialStateClearsShortLivedChannels(t *testing.T) {
	for _, reducer := range []string{"any", "ephemeral", "topic_once"} {
		s := stateWithInput(t, &graph.Spec{
			Channels: []graph.ChannelSpec{{Name: "x", Reducer: reducer}, {Name: "y"}},
			Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
		})
		s, err := s.ApplyStep(writesToX(s, []string{"1"}), pregel.CheckpointInfo{ID: "c", Seq: 2})
		require.NoError(t, err)
		before, _ := s.Value("x")
		done := writesToX(s, nil)

		same, err := s.PartialState(nil)
		require.NoError(t, err)
		require.Equal(t, s.Values(), same.Values())

		cleared, err := s.PartialState(done)
		require.NoError(t, err)
		_, ok := cleared.Value("x")
		require.False(t, ok, reducer)

		written, err := s.PartialState(writesToX(s, []string{"1"}))
		require.NoError(t, err)
		again, _ := written.Value("x")
		require.Equal(t, before, again, reducer)
		require.True(t, written.HasOutputChanged())
	}
}

func TestMessageIDsAreTheSameWhenTheWriteIsRepeated(t *testing.T) {
	s := stateWithInput(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "x", Reducer: "messages"}},
		Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
	})
	write := []string{`[{"role":"user","content":"hi"}]`, `"hello"`}
	first, err := s.ApplyStep(writesToX(s, write), pregel.CheckpointInfo{ID: "c", Seq: 2})
	require.NoError(t, err)
	again, err := s.ApplyStep(writesToX(s, write), pregel.CheckpointInfo{ID: "c", Seq: 2})
	require.NoError(t, err)
	require.Equal(t, first.Values(), again.Values())
	list, _ := first.Value("x")
	items, err := payload.Elements(list)
	require.NoError(t, err)
	a, _ := payload.Lookup(items[0], "id")
	b, _ := payload.Lookup(items[1], "id")
	require.NotEmpty(t, a)
	require.NotEqual(t, a, b)
}

// A key that was taken out of the graph does not get in the way; one whose
// reducer was changed keeps its value.
func TestLoadAfterTheGraphHasChanged(t *testing.T) {
	old := stateWithInput(t, &graph.Spec{
		Channels: []graph.ChannelSpec{{Name: "x", Reducer: "append"}, {Name: "gone"}},
		Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
	})
	old, err := old.ApplyStep(writesToX(old, []string{"[1]"}), pregel.CheckpointInfo{ID: "c", Seq: 2})
	require.NoError(t, err)
	for reducer, want := range map[string]string{"last": "[1]", "union": "[1]", "append": "[1]"} {
		g := compileGraph(t, &graph.Spec{
			Channels: []graph.ChannelSpec{{Name: "new"}, {Name: "x", Reducer: reducer}},
			Nodes:    newNodes("a"), Edges: newEdges(graph.Start, "a"),
		})
		s := pregel.LoadState(g, old.Checkpoint(), false, pregel.Limits{})
		require.Equal(t, `{"x":`+want+`}`, string(s.Values()), reducer)
	}
}
