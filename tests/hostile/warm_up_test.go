package hostile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// warmUp uses once, and honestly, what a server keeps for later: compiled graphs
// and schemas, the page caches of all connections to the store, what each stream
// needs. What a server holds after that is where it was before the attack.
func (a *attack) warmUp(t *testing.T) {
	t.Helper()
	const graphs, nodes = 8, 1000
	for g := range graphs {
		name := fmt.Sprint("honest-", g)
		a.requireGraph(t.Context(), name, "input_schema: { type: object, properties: {"+
			joinItems(500, func(i int) string { return fmt.Sprintf(" k%d-%d: { type: string, maxLength: %d }", g, i, i+1) })+" } }\n"+
			"channels: { x: append }\nnodes:\n"+
			joinLines(nodes, func(n int) string {
				return fmt.Sprintf("  n%d: { expr: { update: { x: \"[string(%d + size(state.x))]\" } } }\n", n, n)
			})+
			"edges:\n"+joinLines(nodes, func(n int) string { return fmt.Sprintf("  - START -> n%d\n", n) }))
		a.runHonestly(t, name)
	}
	a.createLargeLog(t.Context(), "honest")
	a.runConcurrently(t.Context(), 64, func(int) {
		_, err := a.client.ListCheckpoints(t.Context(), &graphdv1.ListCheckpointsRequest{ThreadId: "honest", IncludeValues: true, PageSize: 20})
		a.recordAnswer("ListCheckpoints", err)
	})
	a.holdStreams(t.Context(), 3000, a.watchThread("honest"))
	require.Empty(t, a.unforeseenErrors)
}

func (a *attack) runHonestly(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, repeatWhileBusy(t.Context(), func() error {
		stream, err := a.client.Stream(t.Context(), &graphdv1.StreamRequest{RequestId: name, Run: &graphdv1.RunSpec{
			Graph: name, ThreadId: name, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload("{}")},
		}})
		for err == nil {
			var e *graphdv1.Event
			if e, err = stream.Recv(); e.GetEnd() != nil {
				require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, e.GetEnd().GetRun().GetState(), "%v", e)
				return nil
			}
		}
		return err
	}))
}
