package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
)

const dropGraph = `graph: drop
channels: {base: {}, decision: {}}
nodes:
  confirm:
    ask: {message: "'Delete ' + state.base + '?'", undo: 1h, update: {decision: answer}}
edges:
- {from: __start__, to: confirm}
- {from: confirm, to: __end__}
`

// undoServer is a people server with a graph whose answer can be taken back for an hour.
func startUndoServer(t *testing.T) *peopleServer {
	t.Helper()
	s := startPeopleServer(t, func(o *server.Options) { o.Undo = time.Second })
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(s.as(t, "eva"), putRequest(dropGraph))
	require.NoError(t, err)
	return s
}

func (s *peopleServer) start(t *testing.T, graph, thread, input string) {
	t.Helper()
	runs := graphdv1.NewGraphServiceClient(s.conn)
	run, err := runs.StartRun(s.as(t, "eva"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: jsonPayload(input)},
	}})
	require.NoError(t, err)
	_, err = runs.WaitRun(s.as(t, "eva"), &graphdv1.WaitRunRequest{ThreadId: thread, RunId: run.GetRunId()})
	require.NoError(t, err)
}

// TestAnAnswerIsUndone answers by a call and takes the answer back by the command.
func TestAnAnswerIsUndone(t *testing.T) {
	s := startUndoServer(t)
	s.start(t, "drop", "t", `{"base":"prod"}`)
	run := func(caller string, args ...string) commandResult {
		t.Helper()
		return s.commands.runCommand(t, append(args, "--token", s.tokens[caller])...)
	}
	require.Contains(t, run("ana", "resume", "t", "--value", `"yes"`, "--detach").out, "interrupted")
	q := s.question(t, "t")
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED, q.GetState())
	require.Equal(t, time.Hour, q.GetUndo().AsDuration())
	require.Equal(t, q.GetResponseTime().AsTime().Add(time.Hour), q.GetEffectiveTime().AsTime())
	require.NotContains(t, run("ben", "inbox", "--thread", "t").out, "Delete prod?", "nobody has to answer it")

	for _, isTerminal := range []bool{false, true} {
		s.commands.isTerminal = isTerminal
		for _, which := range [][]string{nil, {"--interrupt", q.GetInterruptId()[:8]}} {
			waits := run("ben", append([]string{"resume", "t"}, which...)...)
			require.Zero(t, waits.code, waits.err)
			require.Regexp(t, `^answered by ana, takes effect at 20.*; take it back with graphd inbox undo t `, waits.out)
		}
	}
	s.commands.isTerminal = false
	require.Regexp(t, `  in effect  20.* \(in 1 h\); until then graphd inbox undo t takes the answer back\n`, run("ben", "inbox", "show", "t").out)

	require.Contains(t, run("ben", "inbox", "undo", "t").err, "only who has answered may take the answer back")
	require.Contains(t, run("ana", "inbox", "--thread", "t", "--filter", `state = "*"`).out, "until then graphd inbox undo t takes the answer back")
	undone := run("ana", "inbox", "undo", "t", "--note", "the wrong one")
	require.Contains(t, undone.out, "open again, and the run waits for an answer", undone.err)
	require.Contains(t, run("ben", "inbox", "--thread", "t").out, "Delete prod?")
	trail := run("ben", "inbox", "trail", "t", "--verify").out
	require.Contains(t, trail, "retracted by ana")
	require.Contains(t, trail, "the wrong one")
	require.Contains(t, run("ana", "inbox", "undo", "t").out, "there was no answer of yours to take back")
}

// TestAStreamWaitsForTheEffect follows a run from an answer that takes effect later to its end, and
// ends when the answer is taken back.
func TestAStreamWaitsForTheEffect(t *testing.T) {
	s := startUndoServer(t)
	s.ask(t, "team")
	interrupts := graphdv1.NewInterruptServiceClient(s.conn)
	require.NoError(t, s.answer(t, "ResumeRun", "ana", "team", `"yes"`))
	require.NoError(t, s.answer(t, "Resume", "ben", "team", `"yes"`), "the stream goes on to the end of the run")
	q := s.question(t, "team")
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, q.GetState(), "after the second that the server gives")
	require.Equal(t, time.Second, q.GetEffectiveTime().AsTime().Sub(q.GetResponseTime().AsTime()))

	s.start(t, "drop", "t", `{"base":"prod"}`)
	stream, err := graphdv1.NewGraphServiceClient(s.conn).Resume(s.as(t, "ana"), &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "t", Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)}},
	}})
	require.NoError(t, err)
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		require.Nil(t, e.GetEnd(), "the run goes on by itself")
		if e.GetInterruptResolved() != nil {
			break
		}
	}
	_, err = interrupts.RetractResponse(s.as(t, "ana"), &graphdv1.RetractResponseRequest{ThreadId: "t", InterruptId: s.question(t, "t").GetInterruptId()})
	require.NoError(t, err)
	asked := false
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		asked = asked || e.GetInterrupt() != nil
		if e.GetEnd() != nil {
			require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, e.GetEnd().GetRun().GetState())
			break
		}
	}
	require.True(t, asked, "the question is shown again")
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
}
