package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

// peopleServer is a server that knows ana and ben of the group finance, carl of none, and
// eva, who starts runs.
type peopleServer struct {
	conn     *grpc.ClientConn
	tokens   map[string]string
	commands commandRunner
}

const refundGraph = `graph: refund
channels: {order: {}, team: {}, wants: {}, decision: {}}
nodes:
  review:
    ask:
      message: "'Refund order ' + string(state.order) + '?'"
      people:
        groups: state.team
        approvals: 2
        agree: answer != 'no'
        not_requester: true
        requester: state.wants
      update: {decision: answer}
edges:
- {from: __start__, to: review}
- {from: review, to: __end__}
`

func startPeopleServer(t *testing.T, change ...func(*server.Options)) *peopleServer {
	t.Helper()
	keys, tokens := createPeople(t)
	options := server.Options{Store: "memory", CallerOptions: server.CallerOptions{APIKeys: keys}}
	for _, c := range change {
		c(&options)
	}
	s := dialPeopleServer(t, startServerWith(t, options), tokens)
	s.putGraph(t, refundGraph)
	return s
}

// createPeople makes a file with a key for each of the people, and returns its path and their
// tokens.
func createPeople(t *testing.T) (path string, tokens map[string]string) {
	t.Helper()
	path, tokens = filepath.Join(t.TempDir(), "keys.yaml"), map[string]string{}
	for name, groups := range map[string][]string{"ana": {"finance"}, "ben": {"finance", "staff"}, "dora": {"finance"}, "carl": nil, "eva": {"finance"}} {
		_, token, err := apikey.Create(t.Context(), path, apikey.Key{Name: name, Groups: groups, Roles: []string{"admin"}}, time.Now())
		require.NoError(t, err)
		tokens[name] = token
	}
	return path, tokens
}

// dialPeopleServer connects to a server that knows the people.
func dialPeopleServer(t *testing.T, started commandRunner, tokens map[string]string) *peopleServer {
	t.Helper()
	conn, err := grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return &peopleServer{conn: conn, tokens: tokens, commands: started}
}

func (s *peopleServer) putGraph(t *testing.T, document string) {
	t.Helper()
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(s.as(t, "eva"), putRequest(document))
	require.NoError(t, err)
}

func putRequest(document string) *graphdv1.PutGraphRequest {
	return &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: document}, DocumentName: "refund.yaml"}
}

func (s *peopleServer) as(t *testing.T, caller string) context.Context {
	t.Helper()
	return grpcmetadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.tokens[caller])
}

// ask starts a run that asks, and returns the question.
func (s *peopleServer) ask(t *testing.T, thread string) *graphdv1.Interrupt {
	t.Helper()
	runs := graphdv1.NewGraphServiceClient(s.conn)
	run, err := runs.StartRun(s.as(t, "carl"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: "refund",
		Start: &graphdv1.RunSpec_Input{Input: jsonPayload(`{"order": 7, "team": "finance", "wants": "eva"}`)},
	}})
	require.NoError(t, err)
	_, err = runs.WaitRun(s.as(t, "carl"), &graphdv1.WaitRunRequest{ThreadId: thread, RunId: run.GetRunId()})
	require.NoError(t, err)
	return s.question(t, thread)
}

// question is the only question that a thread has asked.
func (s *peopleServer) question(t *testing.T, thread string) *graphdv1.Interrupt {
	t.Helper()
	return s.onlyQuestion(t, thread, `state = "*"`)
}

// onlyQuestion is the only question of a thread that a filter selects.
func (s *peopleServer) onlyQuestion(t *testing.T, thread, filter string) *graphdv1.Interrupt {
	t.Helper()
	list, err := graphdv1.NewInterruptServiceClient(s.conn).ListInterrupts(s.as(t, "ana"), &graphdv1.ListInterruptsRequest{ThreadId: thread, Filter: filter})
	require.NoError(t, err)
	require.Len(t, list.GetInterrupts(), 1)
	return list.GetInterrupts()[0]
}

// listTrail lists what happened to a question.
func (s *peopleServer) listTrail(t *testing.T, thread, interrupt string) []*graphdv1.TrailEntry {
	t.Helper()
	trail, err := graphdv1.NewInterruptServiceClient(s.conn).ListTrail(s.as(t, "ana"), &graphdv1.ListTrailRequest{ThreadId: thread, InterruptId: interrupt})
	require.NoError(t, err)
	return trail.GetEntries()
}

// claim claims the only question of a thread.
func (s *peopleServer) claim(t *testing.T, caller, thread string) {
	t.Helper()
	_, err := graphdv1.NewInterruptServiceClient(s.conn).ClaimInterrupt(s.as(t, caller), &graphdv1.ClaimInterruptRequest{
		ThreadId: thread, InterruptId: s.question(t, thread).GetInterruptId(),
	})
	require.NoError(t, err)
}

// answer answers by one of the two methods that take answers.
func (s *peopleServer) answer(t *testing.T, method, caller, thread, value string) error {
	t.Helper()
	return s.resume(t, method, caller, &graphdv1.ResumeSpec{ThreadId: thread, Single: &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(value)}, Note: "by " + caller,
	}})
}

// resume calls one of the two methods that take answers, and returns its error.
func (s *peopleServer) resume(t *testing.T, method, caller string, spec *graphdv1.ResumeSpec) error {
	t.Helper()
	runs := graphdv1.NewGraphServiceClient(s.conn)
	if method == "ResumeRun" {
		_, err := runs.ResumeRun(s.as(t, caller), &graphdv1.ResumeRunRequest{Resume: spec})
		return err
	}
	stream, err := runs.Resume(s.as(t, caller), &graphdv1.ResumeRequest{Resume: spec})
	require.NoError(t, err)
	for {
		if _, err := stream.Recv(); err != nil {
			if strings.Contains(err.Error(), "EOF") {
				return nil
			}
			return err
		}
	}
}

func refusalRule(t *testing.T, err error) string {
	t.Helper()
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()["rule"]
		}
	}
	return ""
}

func TestTwoOfAGroupDecide(t *testing.T) {
	s := startPeopleServer(t)
	for _, method := range []string{"Resume", "ResumeRun"} {
		t.Run(method, func(t *testing.T) {
			q := s.ask(t, method)
			require.Equal(t, []string{"finance"}, q.GetPeople().GetGroups())
			require.Equal(t, "eva", q.GetPeople().GetRequester())

			require.Equal(t, "not_requester", refusalRule(t, s.answer(t, method, "eva", method, `"yes"`)))
			require.Equal(t, "group", refusalRule(t, s.answer(t, method, "carl", method, `"yes"`)))
			require.Empty(t, s.question(t, method).GetVotes(), "nothing is stored of what is refused")

			require.NoError(t, s.answer(t, method, "ana", method, `"yes"`))
			q = s.question(t, method)
			require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, q.GetState())
			require.Equal(t, "ana", q.GetVotes()[0].GetPrincipal())
			require.True(t, q.GetVotes()[0].GetAgrees())
			require.Equal(t, "by ana", q.GetVotes()[0].GetNote())
			require.NotNil(t, q.GetVotes()[0].GetTime())

			require.NoError(t, s.answer(t, method, "ben", method, `"yes"`))
			require.Eventually(t, func() bool {
				return s.question(t, method).GetState() == graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED
			}, time.Minute, 10*time.Millisecond)
			q = s.question(t, method)
			require.Equal(t, "ben", q.GetResponder())
			require.Len(t, q.GetVotes(), 2)
			require.Equal(t, codes.FailedPrecondition, status.Code(s.answer(t, method, "dora", method, `"no"`)))
		})
	}
}

// A request id of one caller does not take the vote of another for a repetition.
func TestARequestIDIsOfOneCaller(t *testing.T) {
	s := startPeopleServer(t)
	s.ask(t, "ids")
	vote := func(caller string) error {
		_, err := graphdv1.NewGraphServiceClient(s.conn).ResumeRun(s.as(t, caller), &graphdv1.ResumeRunRequest{RequestId: "approve", Resume: &graphdv1.ResumeSpec{
			ThreadId: "ids", Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)}},
		}})
		return err
	}
	require.NoError(t, vote("ana"))
	require.NoError(t, vote("ana"))
	require.ErrorContains(t, vote("ben"), "approve")
	require.Error(t, vote("carl"))
	require.Len(t, s.question(t, "ids").GetVotes(), 1)
}

func TestAVetoDecides(t *testing.T) {
	s := startPeopleServer(t)
	s.ask(t, "veto")
	require.NoError(t, s.answer(t, "ResumeRun", "ana", "veto", `"yes"`))
	require.NoError(t, s.answer(t, "ResumeRun", "ben", "veto", `"no"`))
	require.Eventually(t, func() bool { return s.question(t, "veto").GetResponse() != nil }, time.Minute, 10*time.Millisecond)
	require.Equal(t, `"no"`, s.question(t, "veto").GetResponse().GetJson())
}

// A server that does not know its callers refuses the graph, and says where and why.
func TestPoliciesNeedCallers(t *testing.T) {
	started := startServerWith(t, server.Options{Store: "memory"})
	conn, err := grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	_, err = graphdv1.NewRegistryServiceClient(conn).PutGraph(t.Context(), putRequest(refundGraph))
	require.ErrorContains(t, err, "does not know who calls")
	require.ErrorContains(t, err, "nodes.review.ask.people")
	require.ErrorContains(t, err, "line 7")
	open := strings.Replace(refundGraph, "groups: state.team\n        approvals: 2\n        agree: answer != 'no'\n        not_requester: true\n        ", "", 1)
	require.NotEqual(t, refundGraph, open)
	_, err = graphdv1.NewRegistryServiceClient(conn).PutGraph(t.Context(), putRequest(open))
	require.NoError(t, err, fmt.Sprint(open))
}

// TestPeopleInTheTerminal takes, discusses and answers a question with commands alone, and
// reads what happened.
func TestPeopleInTheTerminal(t *testing.T) {
	s := startPeopleServer(t)
	id := s.ask(t, "order-7").GetInterruptId()
	run := func(caller string, args ...string) commandResult {
		t.Helper()
		return s.commands.runCommand(t, append(args, "--token", s.tokens[caller])...)
	}
	must := func(caller string, args ...string) string {
		t.Helper()
		r := run(caller, args...)
		require.Zero(t, r.code, "%s", r.err)
		return r.out + r.err
	}
	require.Contains(t, must("ana", "inbox", "take", "order-7", "--for", "1h"), "question "+id+" of order-7: yours until ")
	require.Contains(t, must("ben", "inbox", "--thread", "order-7"), "taken by  ana, until ")
	refused := run("ben", "inbox", "take", "order-7")
	require.NotZero(t, refused.code)
	require.Contains(t, refused.err, "is claimed by ana until ")
	require.Contains(t, must("ben", "inbox", "comment", "order-7", "is it\x1b[31m the right order?"), "| is it")
	require.Contains(t, run("ben", "inbox", "comment", "order-7", "which", "class?").err, "; quote the text\n")
	require.Contains(t, must("ana", "inbox", "give", "order-7", "--note", "on leave"), "not claimed")
	require.Contains(t, must("ana", "inbox", "delegate", "order-7", "ben", "--note", "until Monday"),
		"assigned to ben; the question takes no delegates: ben may answer only as one of these (members of finance), and you may still answer\n")
	must("dora", "inbox", "take", "order-7", "--for", "1d")
	require.Contains(t, must("eva", "inbox", "give", "order-7", "--force"), "not claimed")
	require.Contains(t, must("eva", "inbox", "assign", "order-7", "dora", "ben"), "assigned to dora, ben")
	require.Contains(t, must("eva", "inbox", "extend", "order-7", "--to", "2d"), "expires ")
	require.Contains(t, run("eva", "inbox", "extend", "order-7", "--to", "soon").err, "want more than 0, like 2h or 3d")
	require.Contains(t, must("eva", "inbox", "extend", "order-7", "--to", "48h"), "expires ")
	require.Contains(t, run("eva", "inbox", "extend", "order-7").err, "give --to or --never")
	require.Equal(t, exit.CodeWaiting, run("ben", "resume", "order-7", "--value", `"yes"`).code, "it still waits for a person")
	must("dora", "resume", "order-7", "--value", `"yes"`)

	out := must("carl", "inbox", "trail", "order-7", "--verify")
	for _, line := range []string{
		"asked", "for  2 of members of finance", "claimed by ana", "commented by ben", "| is it\\u{1b}[31m the right order?", "released by ana",
		"| on leave", "delegated by ana", "claimed by dora", "what  claimed_by", "changed by eva", "what  assignees\n    assignees  dora, ben", "what  expire_time", `voted by ben  "yes"`, `answered by dora  "yes"`, "used",
		"14 entries, each follows the one before; the digest of the last is ",
	} {
		require.Contains(t, out, line)
	}
	require.NotContains(t, out, "\x1b[31m", "a comment can't color the terminal")
	require.Contains(t, must("carl", "inbox", "trail", "order-7", "-o", "json"), `"kind": "TRAIL_KIND_RELEASED"`)
	for _, args := range [][]string{{"take", "order-7"}, {"comment", "order-7", "hm"}, {"link", "order-7"}} {
		refused := run("ana", append([]string{"inbox"}, args...)...).err
		require.Contains(t, refused, `the question of thread "order-7" is answered already, by dora`)
		require.Contains(t, refused, "hint: graphd inbox show order-7 ")
	}
	refused = run("ana", "resume", "order-7")
	require.Contains(t, refused.err, "THREAD_NOT_INTERRUPTED")
	require.Contains(t, refused.err, "graphd inbox show order-7 ")
	require.Contains(t, run("ana", "inbox", "take", "order-8").err, "order-8")
	require.Contains(t, run("ana", "inbox", "take", "order-7", "--interrupt", id).err, "was answered already by dora")
}
