package engine_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// An interrupt is answered, the thread goes back to where it was asked, and it
// is answered otherwise: the lists of the two branches share their beginning
// in the store and must not get into each other's way.
func TestBranchesDoNotShareTheEndOfAList(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "g.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w := &fixture{t: t, store: store, graphs: graphCatalog{}, nodes: &nodeExecutor{funcs: map[string]nodeFunc{
		"before": updateNode(`{"a":["before"]}`),
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			return pregel.Result{Update: payload.JSON(`{"a":[` + c.askNext(`"?"`) + `]}`)}
		},
		"after": updateNode(`{"a":["after"]}`),
	}}}
	w.compileGraph(chainSpec("g", channelsAB, "before", "ask", "after"))
	w.startEngine()
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{"a":["in"]}`).State)
	asked := w.readState("t").Checkpoint.ID
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `"yes"`).State)

	for _, other := range []string{`"no"`, `"maybe"`} {
		r := w.beginAndWait(runtime.StartRequest{Thread: "t", Request: checkpoint.RunRequest{From: asked}})
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", other).State)
		require.JSONEq(t, `{"a":["in","before",`+other+`,"after"]}`, w.stateValues("t"))
	}
	history, _, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t", WithValues: true})
	require.NoError(t, err)
	var ends []string
	for _, s := range history {
		if len(s.Next) == 0 {
			ends = append(ends, string(s.Values))
		}
	}
	require.Equal(t, []string{
		`{"a":["in","before","maybe","after"]}`,
		`{"a":["in","before","no","after"]}`,
		`{"a":["in","before","yes","after"]}`,
	}, ends)
}
