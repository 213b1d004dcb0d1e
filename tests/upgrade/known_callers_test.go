package upgrade_test

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// createKnown makes the thread "known", whose records say who did something, with a server
// of its own that knows its callers.
func createKnown(tb testing.TB, program, store string, more ...string) {
	tb.Helper()
	keys := filepath.Join(tb.TempDir(), "keys.json")
	tokens := map[string]string{}
	for _, name := range []string{"ana", "ben"} {
		code, said := runCommand(tb, program, "keys", "create", "--file", keys, "--name", name, "--role", "admin")
		require.Zero(tb, code, said)
		tokens[name] = regexp.MustCompile(`gk_\S+`).FindString(said)
	}
	s := startServer(tb, program, store, append(more, "--graphs", "testdata/graphs", "--api-keys", keys)...)
	as := func(name string) context.Context {
		return metadata.AppendToOutgoingContext(tb.Context(), "authorization", "Bearer "+tokens[name])
	}
	wait := func(run *graphdv1.Run, err error) *graphdv1.Run {
		require.NoError(tb, err)
		run, err = s.WaitRun(as("ana"), &graphdv1.WaitRunRequest{ThreadId: "known", RunId: run.GetRunId(), Wait: durationpb.New(waitTimeout)})
		require.NoError(tb, err)
		require.Equal(tb, "ana", run.GetStartedBy())
		return run
	}
	wait(s.StartRun(as("ana"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: "known", CreateThread: true, Graph: "review", Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"subject":"known"}`)},
	}}))
	open, err := s.ListInterrupts(as("ben"), &graphdv1.ListInterruptsRequest{ThreadId: "known"})
	require.NoError(tb, err)
	question := open.GetInterrupts()[0].GetInterruptId()
	run := wait(s.ResumeRun(as("ben"), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "known", Responses: []*graphdv1.InterruptResponse{{
			InterruptId: question, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`{"ok":true}`)},
		}},
	}}))
	require.Equal(tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	answered, err := s.GetInterrupt(as("ben"), &graphdv1.GetInterruptRequest{ThreadId: "known", InterruptId: question})
	require.NoError(tb, err)
	require.Equal(tb, "ben", answered.GetResponder())
	s.Kill()
}
