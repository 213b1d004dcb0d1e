package upgrade_test

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// The threads of startPeopleServer: a question with one of two votes, and what else can happen to
// it; an answer that can be taken back; a question with a secret part, of sealed stores.
const (
	votedThread    = "voted"
	undoableThread = "undoable"
	secretThread   = "secret"
)

// isForPeople reports whether a frozen store has the threads of createDecisions, and no others.
func isForPeople(name string) bool { return strings.Contains(name, "-people") }

// peopleServer is a server that knows ana and ben, who are of the group finance.
type peopleServer struct {
	*server

	tokens map[string]string
}

// startPeopleServer starts today's graphd on a store, with graphs whose questions are for people.
func startPeopleServer(tb testing.TB, store string, more ...string) *peopleServer {
	tb.Helper()
	keys, tokens := filepath.Join(tb.TempDir(), "keys.yaml"), map[string]string{}
	for _, name := range []string{"ana", "ben"} {
		code, said := runCommand(tb, built.Graphd(tb), "keys", "create", "--file", keys, "--name", name, "--group", "finance", "--role", "admin")
		require.Zero(tb, code, said)
		tokens[name] = regexp.MustCompile(`gk_\S+`).FindString(said)
	}
	return &peopleServer{startServer(tb, built.Graphd(tb), store, append(more, "--api-keys", keys)...), tokens}
}

func (p *peopleServer) as(name string) context.Context {
	return metadata.AppendToOutgoingContext(p.tb.Context(), "authorization", "Bearer "+p.tokens[name])
}

// createDecisions makes threads whose questions are half decided, on the server that it starts and
// kills.
func createDecisions(tb testing.TB, store string, flags ...string) {
	tb.Helper()
	isSealed := len(flags) > 0
	p := startPeopleServer(tb, store, append(flags, "--graphs", "testdata/people")...)
	voted := p.ask(votedThread, "spend")
	_, err := p.ClaimInterrupt(p.as("ben"), &graphdv1.ClaimInterruptRequest{
		ThreadId: votedThread, InterruptId: voted, Duration: durationpb.New(24 * time.Hour),
	})
	require.NoError(tb, err)
	_, err = p.CommentInterrupt(p.as("ana"), &graphdv1.CommentInterruptRequest{ThreadId: votedThread, InterruptId: voted, Text: "why so much?"})
	require.NoError(tb, err)
	p.answer("ana", votedThread, voted)
	_, err = p.DelegateInterrupt(p.as("ben"), &graphdv1.DelegateInterruptRequest{ThreadId: votedThread, InterruptId: voted, To: "cy", Note: "on leave"})
	require.NoError(tb, err)
	p.answer("ana", undoableThread, p.ask(undoableThread, "refund"))
	p.Kill()
	if !isSealed {
		return // graphd refuses secret parts of questions in a store without encryption
	}
	p = startPeopleServer(tb, store, append(flags, "--graphs", "testdata/secret")...)
	p.answer("ana", secretThread, p.ask(secretThread, "card"))
	p.Kill()
}

// ask runs a thread to its question, and returns its id.
func (p *peopleServer) ask(thread, graph string) string {
	p.tb.Helper()
	_, err := p.CreateThread(p.as("ana"), &graphdv1.CreateThreadRequest{
		ThreadId: thread, Thread: &graphdv1.Thread{Graph: graph, Metadata: map[string]string{"team": "finance"}},
	})
	require.NoError(p.tb, err)
	run, err := p.StartRun(p.as("ana"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"amount":9007199254740993}`)},
	}})
	require.NoError(p.tb, err)
	require.Equal(p.tb, graphdv1.RunState_RUN_STATE_INTERRUPTED, p.wait(thread, run).GetState())
	return p.findQuestion(thread).GetInterruptId()
}

func (p *peopleServer) wait(thread string, run *graphdv1.Run) *graphdv1.Run {
	p.tb.Helper()
	run, err := p.WaitRun(p.as("ana"), &graphdv1.WaitRunRequest{ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(waitTimeout)})
	require.NoError(p.tb, err)
	return run
}

func (p *peopleServer) findQuestion(thread string) *graphdv1.Interrupt {
	p.tb.Helper()
	list, err := p.ListInterrupts(p.as("ana"), &graphdv1.ListInterruptsRequest{ThreadId: thread, Filter: `state = "*"`})
	require.NoError(p.tb, err)
	require.Len(p.tb, list.GetInterrupts(), 1)
	return list.GetInterrupts()[0]
}

func (p *peopleServer) answer(who, thread, question string) *graphdv1.Run {
	p.tb.Helper()
	run, err := p.ResumeRun(p.as(who), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: thread, Responses: []*graphdv1.InterruptResponse{{
			InterruptId: question, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`9007199254740993`)},
		}},
	}})
	require.NoError(p.tb, err)
	return run
}

func (p *peopleServer) readTrail(thread string) (kinds []string) {
	p.tb.Helper()
	list, err := p.ListTrail(p.as("ana"), &graphdv1.ListTrailRequest{
		ThreadId: thread, InterruptId: p.findQuestion(thread).GetInterruptId(), PageSize: 500,
	})
	require.NoError(p.tb, err)
	for _, e := range list.GetEntries() {
		kinds = append(kinds, strings.TrimPrefix(e.GetKind().String(), "TRAIL_KIND_")+" "+e.GetPrincipal())
	}
	return kinds
}

// requireDecisionsGoOn decides what was half decided when the store was written.
func requireDecisionsGoOn(tb testing.TB, store string, flags ...string) {
	tb.Helper()
	p := startPeopleServer(tb, store, flags...)
	defer p.Kill()
	q := p.findQuestion(votedThread)
	require.Equal(tb, []string{"cy"}, q.GetAssignees())
	for _, filter := range []string{`group = "finance"`, `assignee = "cy"`, `graph = "spend"`, `priority = "HIGH"`} {
		list, err := p.ListInterrupts(p.as("ana"), &graphdv1.ListInterruptsRequest{Filter: filter})
		require.NoError(tb, err)
		require.Contains(tb, list.String(), votedThread, filter)
	}
	threads, err := p.ListThreads(p.as("ana"), &graphdv1.ListThreadsRequest{Filter: `graph = "spend" AND metadata.team = "finance"`})
	require.NoError(tb, err)
	require.Len(tb, threads.GetThreads(), 1)

	_, err = p.DelegateInterrupt(p.as("ben"), &graphdv1.DelegateInterruptRequest{ThreadId: votedThread, InterruptId: q.GetInterruptId(), To: "ben"})
	require.NoError(tb, err)
	p.decide(votedThread)
	require.Equal(tb, []string{
		"ASKED ", "CLAIMED ben", "COMMENTED ana", "VOTED ana", "DELEGATED ben", "DELEGATED ben", "VOTED ben", "ANSWERED ben", "USED ",
	}, p.readTrail(votedThread))
	require.Equal(tb, []string{"ASKED ", "VOTED ana", "ANSWERED ana"}, p.readTrail(undoableThread)[:3])
	if len(flags) == 0 {
		return
	}
	q = p.findQuestion(secretThread)
	require.JSONEq(tb, `{"amount":9007199254740993,"card":{"__redacted__":true}}`, q.GetValue().GetJson())
	shown, err := p.RevealInterrupt(p.as("ben"), &graphdv1.RevealInterruptRequest{ThreadId: secretThread, InterruptId: q.GetInterruptId()})
	require.NoError(tb, err)
	require.JSONEq(tb, `{"amount":9007199254740993,"card":"4711"}`, shown.GetValue().GetJson())
	p.decide(secretThread)
}

// decide adds the vote that is missing, and sees that the run succeeds.
func (p *peopleServer) decide(thread string) {
	p.tb.Helper()
	run := p.wait(thread, p.answer("ben", thread, p.findQuestion(thread).GetInterruptId()))
	require.Equal(p.tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	require.JSONEq(p.tb, `{"amount":9007199254740993,"decision":9007199254740993}`, run.GetOutput().GetJson())
}
