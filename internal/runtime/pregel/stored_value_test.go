package pregel_test

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// requireStoredValues compares the stored values of a state with the texts that it has.
func requireStoredValues(t *testing.T, s *pregel.State, want map[string]string) {
	t.Helper()
	view := s.FullView()
	got := map[string]string{}
	for key, value := range view.StoredValues() {
		text := value.Text()
		got[key] = string(text)
		require.Equal(t, len(text), value.Size(), key)
		require.Equal(t, sha256.Sum256([]byte(text)), value.Digest(), key)
	}
	require.Equal(t, want, got)
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), view.Keys())
}

func TestStoredValues(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: []graph.ChannelSpec{
			{Name: "last"},
			{Name: "list", Reducer: "append"},
			{Name: "defaulted", Default: `{"a": 1}`},
			{Name: "unset"},
			{Name: "topic", Reducer: "topic_once"},
			{Name: "gone", Reducer: "untracked"},
			{Name: "empty", Reducer: "append", Default: `[]`},
		},
		Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n", "n", "n"),
	}, newResults(map[string]string{"n": `{}`}))
	long := strings.Repeat("x", 20_000)
	m.applyInput(`{"last":{"b": "` + long + `"},"list":["` + long + `",2],"gone":7,"topic":["t"]}`)
	m.runStep() // takes the input
	want := map[string]string{
		"last": `{"b": "` + long + `"}`, "list": `["` + long + `",2]`, "defaulted": `{"a": 1}`, "topic": `["t"]`, "gone": `7`, "empty": `[]`,
	}
	requireStoredValues(t, m.state, want)

	m.runStep() // writes nothing, and a topic lasts for one superstep
	delete(want, "topic")
	requireStoredValues(t, m.state, want)

	m.results["n"] = pregel.Result{Update: payload.JSON(`{"last":"y","list":[3]}`)}
	m.runStep()
	want["last"], want["list"] = `"y"`, `["`+long+`",2,3]`
	requireStoredValues(t, m.state, want)

	m.reloadState()
	delete(want, "gone")
	requireStoredValues(t, m.state, want)
}
