package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

const gatedGraph = `graph: %s
channels: {x: {}}
nodes:
  draft: {expr: {update: {x: "'drafted'"}}}
  pay: {expr: {update: {x: "'paid'"}}}
edges: [{from: __start__, to: draft}, {from: draft, to: pay}]
`

const aroundGatedGraph = `graph: around-%s
channels: {x: {}}
nodes:
  inner: {graph: %s}
edges: [{from: __start__, to: inner}]
`

const askingNodeGraph = `graph: nowhere
channels: {x: {}}
nodes:
  ask: {ask: {message: "'pay?'"}}
  pay: {expr: {update: {x: "'paid'"}}}
edges: [{from: __start__, to: ask}, {from: ask, to: pay}]
`

// A starter reaches a breakpoint of a graph, cancels the run there and goes on with the
// thread. No caller has passed the breakpoint: the thread stops at it again, as at a question.
func TestACancelPassesNoBreakpoint(t *testing.T) {
	s := startAccessServer(t)
	registry, runs := graphdv1.NewRegistryServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn)
	root, starter := s.as(t.Context(), "root"), s.as(t.Context(), "starter")
	for name, breakpoint := range map[string]string{"open": "interrupt_before: [pay]", "elsewhere": "interrupt_after: [draft]"} {
		for _, document := range []string{fmt.Sprintf(gatedGraph, name) + breakpoint + "\n", fmt.Sprintf(aroundGatedGraph, name, name)} {
			_, err := registry.PutGraph(root, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: document}})
			require.NoError(t, err)
		}
	}
	_, err := registry.PutGraph(root, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: askingNodeGraph}})
	require.NoError(t, err)
	for graph, caller := range map[string]context.Context{"open": starter, "elsewhere": starter, "nowhere": starter, "around-open": root, "around-elsewhere": root} {
		t.Run(graph, func(t *testing.T) {
			thread := "gated-" + graph
			wait := func() graphdv1.RunState {
				run, err := runs.WaitRun(caller, &graphdv1.WaitRunRequest{ThreadId: thread})
				require.NoError(t, err)
				return run.GetState()
			}
			_, err := runs.StartRun(caller, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
				ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")},
			}})
			require.NoError(t, err)
			require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, wait())
			for range 2 {
				_, err = runs.CancelRun(caller, &graphdv1.CancelRunRequest{ThreadId: thread, Wait: true})
				require.NoError(t, err)
				require.Equal(t, graphdv1.RunState_RUN_STATE_CANCELLED, wait())
				_, err = runs.StartRun(caller, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{ThreadId: thread}})
				require.NoError(t, err)
				require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, wait(), "no caller has passed the breakpoint")
			}
			resume := &graphdv1.ResumeSpec{ThreadId: thread}
			if graph == "nowhere" {
				resume.Single = &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload("true")}}
			}
			_, err = runs.ResumeRun(root, &graphdv1.ResumeRunRequest{Resume: resume})
			require.NoError(t, err)
			require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, wait())
		})
	}
}
