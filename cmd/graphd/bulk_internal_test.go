package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
)

const approveGraph = `graph: approve
channels: {kind: {}, decision: {}}
nodes:
  plain:
    ask: {message: "'ok?'", schema: {enum: ["yes", "no"]}, update: {decision: answer}}
  number:
    ask: {message: "'how many?'", schema: {type: integer}, update: {decision: answer}}
  taken:
    ask: {message: "'ok?'", people: {exclusive: true}, update: {decision: answer}}
  own:
    ask: {message: "'ok?'", people: {not_requester: true}, update: {decision: answer}}
conditional_edges:
- {from: __start__, expr: state.kind, then: [plain, number, taken, own]}
edges:
- {from: plain, to: __end__}
- {from: number, to: __end__}
- {from: taken, to: __end__}
- {from: own, to: __end__}
`

// bulkCase is a server with questions of several kinds.
type bulkCase struct {
	*peopleServer

	interrupts graphdv1.InterruptServiceClient
	runs       graphdv1.GraphServiceClient
}

func startBulkCase(t *testing.T, change ...func(*server.Options)) *bulkCase {
	t.Helper()
	s := startPeopleServer(t, change...)
	s.putGraph(t, approveGraph)
	return newBulkCase(s)
}

func newBulkCase(s *peopleServer) *bulkCase {
	return &bulkCase{s, graphdv1.NewInterruptServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn)}
}

// askMany starts runs of carl that ask a question of a kind, in the threads KIND-0, KIND-1 ….
func (b *bulkCase) askMany(t *testing.T, kind string, count int) []*graphdv1.AnswerInterruptsRequest_Target {
	t.Helper()
	return b.askManyAs(t, "carl", kind, count)
}

// askManyAs is askMany for runs of another caller.
func (b *bulkCase) askManyAs(t *testing.T, caller, kind string, count int) []*graphdv1.AnswerInterruptsRequest_Target {
	t.Helper()
	var targets []*graphdv1.AnswerInterruptsRequest_Target
	for n := range count {
		thread := fmt.Sprintf("%s-%d", kind, n)
		run, err := b.runs.StartRun(b.as(t, caller), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: "approve", Start: &graphdv1.RunSpec_Input{Input: jsonPayload(fmt.Sprintf(`{"kind": %q}`, kind))},
		}})
		require.NoError(t, err)
		_, err = b.runs.WaitRun(b.as(t, caller), &graphdv1.WaitRunRequest{ThreadId: thread, RunId: run.GetRunId()})
		require.NoError(t, err)
		targets = append(targets, targetOf(b.question(t, thread)))
	}
	return targets
}

func targetOf(q *graphdv1.Interrupt) *graphdv1.AnswerInterruptsRequest_Target {
	return &graphdv1.AnswerInterruptsRequest_Target{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Seen: q.GetSeen()}
}

func answerTargets(targets []*graphdv1.AnswerInterruptsRequest_Target, value, requestID string) *graphdv1.AnswerInterruptsRequest {
	return &graphdv1.AnswerInterruptsRequest{
		Which:   &graphdv1.AnswerInterruptsRequest_Targets_{Targets: &graphdv1.AnswerInterruptsRequest_Targets{Targets: targets}},
		Outcome: &graphdv1.AnswerInterruptsRequest_Value{Value: jsonPayload(value)}, RequestId: requestID,
	}
}

// answerMany returns how many outcomes there were of each kind: "stored", or the reason.
func (b *bulkCase) answerMany(ctx context.Context, req *graphdv1.AnswerInterruptsRequest) (map[string]int, error) {
	counts := map[string]int{}
	outcomes, err := b.interrupts.AnswerInterrupts(ctx, req)
	for err == nil {
		var o *graphdv1.AnswerOutcome
		if o, err = outcomes.Recv(); err == nil {
			if o.GetStored() {
				counts["stored"]++
			} else {
				counts[o.GetReason()]++
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return counts, err
}

// Those that can't be answered are skipped with their reason, and the rest is answered.
func TestBulkAnswerTellsOfEachQuestion(t *testing.T) {
	b := startBulkCase(t)
	plain, number, taken, own := b.askMany(t, "plain", 20), b.askMany(t, "number", 2), b.askMany(t, "taken", 3), b.askManyAs(t, "ana", "own", 2)
	b.claim(t, "ben", "taken-0")
	b.claim(t, "ana", "taken-1")
	require.NoError(t, b.answer(t, "ResumeRun", "ben", "plain-0", `"no"`))
	plain[1].Seen = "of another question"
	all := slices.Concat(plain, number, taken, own, []*graphdv1.AnswerInterruptsRequest_Target{{ThreadId: "plain-2", InterruptId: "none"}})

	counts, err := b.answerMany(b.as(t, "ana"), answerTargets(all, `"yes"`, ""))
	require.NoError(t, err)
	require.Equal(t, map[string]int{
		"stored": 18 + 1, "INTERRUPT_ALREADY_RESOLVED": 1, "QUESTION_CHANGED": 1, "RESPONSE_SCHEMA_MISMATCH": 2,
		"INTERRUPT_CLAIMED": 1, "ACCESS_DENIED": 1 + len(own), "INTERRUPT_NOT_FOUND": 1,
	}, counts)
	require.Equal(t, "ana", b.question(t, "plain-7").GetResponder())
	require.Equal(t, "graphd.v1.InterruptService/AnswerInterrupts", b.question(t, "plain-7").GetResponseMethod())
	for _, target := range slices.Concat(number, own) {
		b.requireUntouched(t, target)
	}
}

// requireUntouched checks that nothing has happened to a question since it was asked.
func (b *bulkCase) requireUntouched(t *testing.T, target *graphdv1.AnswerInterruptsRequest_Target) {
	t.Helper()
	q := b.question(t, target.GetThreadId())
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, q.GetState())
	require.Nil(t, q.GetResponse())
	require.Empty(t, q.GetVotes())
	require.Equal(t, []graphdv1.TrailKind{graphdv1.TrailKind_TRAIL_KIND_ASKED}, kindsOfTrail(b.listTrail(t, target.GetThreadId(), target.GetInterruptId())))
}

func kindsOfTrail(trail []*graphdv1.TrailEntry) []graphdv1.TrailKind {
	kinds := make([]graphdv1.TrailKind, len(trail))
	for i, e := range trail {
		kinds[i] = e.GetKind()
	}
	return kinds
}

// A call that breaks off is repeated under its id, and answers each question once.
func TestBulkAnswerIsRepeated(t *testing.T) {
	b := startBulkCase(t)
	targets := b.askMany(t, "plain", 60)
	ctx, cancel := context.WithCancel(b.as(t, "ana"))
	outcomes, err := b.interrupts.AnswerInterrupts(ctx, answerTargets(targets, `"yes"`, "bulk-1"))
	require.NoError(t, err)
	for range 5 {
		_, err := outcomes.Recv()
		require.NoError(t, err)
	}
	cancel()
	counts, err := b.answerMany(b.as(t, "ana"), answerTargets(targets, `"yes"`, "bulk-1"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"stored": 60}, counts)
	for _, target := range targets {
		kinds := kindsOfTrail(b.listTrail(t, target.GetThreadId(), target.GetInterruptId()))
		isOther := func(k graphdv1.TrailKind) bool { return k != graphdv1.TrailKind_TRAIL_KIND_ANSWERED }
		require.Len(t, slices.DeleteFunc(kinds, isOther), 1)
	}
	counts, err = b.answerMany(b.as(t, "ana"), answerTargets(targets, `"no"`, "bulk-1"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"REQUEST_ID_CONFLICT": 60}, counts, "the id of another answer")
}

// The call is refused before the first answer when others are selected than were
// shown.
func TestBulkAnswerByFilter(t *testing.T) {
	b := startBulkCase(t)
	b.askMany(t, "plain", 4)
	b.ask(t, "order-7")
	req := &graphdv1.AnswerInterruptsRequest{
		Which:   &graphdv1.AnswerInterruptsRequest_Filter{Filter: `graph = "approve"`},
		Outcome: &graphdv1.AnswerInterruptsRequest_Value{Value: jsonPayload(`"yes"`)}, ExpectedCount: 3, AskedBefore: timestamppb.New(time.Now().Add(time.Minute)),
	}
	_, err := b.answerMany(b.as(t, "ana"), req)
	require.ErrorContains(t, err, "4 questions are selected, and 3 were expected")
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, b.question(t, "plain-0").GetState())
	req.ExpectedCount = 4
	req.AskedBefore = b.question(t, "plain-3").GetCreateTime()
	_, err = b.answerMany(b.as(t, "ana"), req)
	require.ErrorContains(t, err, "3 questions are selected, and 4 were expected", "those that came since the list was shown are left out")
	req.AskedBefore = timestamppb.New(time.Now().Add(time.Minute))
	counts, err := b.answerMany(b.as(t, "ana"), req)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"stored": 4}, counts)
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, b.question(t, "order-7").GetState())
}

func TestBulkAnswerRefusesWhatIsWrong(t *testing.T) {
	b := startBulkCase(t)
	target := func(id string) *graphdv1.AnswerInterruptsRequest_Target {
		return &graphdv1.AnswerInterruptsRequest_Target{ThreadId: "t", InterruptId: id}
	}
	many := make([]*graphdv1.AnswerInterruptsRequest_Target, 10_001)
	for i := range many {
		many[i] = target(fmt.Sprint("q", i))
	}
	byFilter := answerTargets(nil, "1", "")
	byFilter.Which = &graphdv1.AnswerInterruptsRequest_Filter{Filter: `graph = "approve"`}
	noTime := proto.CloneOf(byFilter)
	noTime.ExpectedCount = 1
	withID := proto.CloneOf(noTime)
	withID.AskedBefore, withID.RequestId = timestamppb.Now(), "r"
	closed := answerTargets(nil, "1", "")
	closed.Which, closed.ExpectedCount = &graphdv1.AnswerInterruptsRequest_Filter{Filter: `state = "*"`}, 1
	closed.AskedBefore = timestamppb.Now()
	noAnswer := answerTargets([]*graphdv1.AnswerInterruptsRequest_Target{target("q")}, "1", "")
	noAnswer.Outcome = nil
	for field, req := range map[string]*graphdv1.AnswerInterruptsRequest{
		"targets: is missing":              {Outcome: byFilter.GetOutcome()},
		"10001":                            answerTargets(many, "1", ""),
		"0 questions":                      answerTargets(nil, "1", ""),
		"expected_count":                   byFilter,
		"asked_before":                     noTime,
		"not allowed together with filter": withID,
		"must not name a state":            closed,
		"dismissal":                        noAnswer,
		"twice":                            answerTargets([]*graphdv1.AnswerInterruptsRequest_Target{target("q"), target("q")}, "1", ""),
		"request_id":                       answerTargets([]*graphdv1.AnswerInterruptsRequest_Target{target("q")}, "1", string(make([]byte, 300))),
	} {
		ctx, cancel := context.WithTimeout(b.as(t, "ana"), time.Minute)
		_, err := b.answerMany(ctx, req)
		cancel()
		want := field
		if field == "twice" {
			want = "name each question once"
		}
		require.ErrorContains(t, err, want, "%s", status.Code(err))
	}
}

func TestBulkAnswerInTheTerminal(t *testing.T) {
	b := startBulkCase(t)
	b.askMany(t, "plain", 12)
	b.askMany(t, "number", 1)
	command := func(stdin string, isTerminal bool, args ...string) commandResult {
		t.Helper()
		c := b.commands
		c.stdin, c.isTerminal = stdin, isTerminal
		return c.runCommand(t, append([]string{"inbox", "answer", "--token", b.tokens["ana"], "--filter", `graph = "approve"`}, args...)...)
	}
	require.Contains(t, command("", false, "--value", `"yes"`).err, "13 questions are selected; give --yes")
	require.Contains(t, command("", false).err, "give --value or --dismiss")
	refused := command("n\n", true, "--value", `"yes"`)
	require.Contains(t, refused.out, "and 3 more\n13 questions\nthe answer does not fit 1 of them\n")
	require.NotZero(t, refused.code)
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, b.question(t, "plain-0").GetState())

	done := command("y\n", true, "--value", `"yes"`, "--note", "all of them")
	require.Contains(t, done.out, "give this answer to all of them? [y/N]")
	require.Contains(t, done.out, "number-0  skipped  RESPONSE_SCHEMA_MISMATCH: ")
	require.Contains(t, done.out, "12 answered, 1 skipped")
	require.Equal(t, 1, done.code)
	require.Equal(t, "all of them", b.question(t, "plain-3").GetNote())
	done = command("", false, "--value", "7", "--yes", "-o", "json")
	require.Zero(t, done.code, done.err)
	require.Contains(t, done.out, `"stored": true`)
	require.Contains(t, command("", false, "--value", "7").out, "no open questions")
}

// What the caller may not see is answered like what is not there, and each answer has its
// record in the audit.
func TestBulkAnswerShowsNothingHidden(t *testing.T) {
	s := startAccessServer(t)
	interrupts := graphdv1.NewInterruptServiceClient(s.conn)
	b := &bulkCase{interrupts: interrupts}
	answer := func(thread string) string {
		t.Helper()
		outcomes, err := b.interrupts.AnswerInterrupts(s.as(t.Context(), "answerer"),
			answerTargets([]*graphdv1.AnswerInterruptsRequest_Target{{ThreadId: thread, InterruptId: "none"}}, "1", "r"))
		require.NoError(t, err)
		o, err := outcomes.Recv()
		require.NoError(t, err)
		require.False(t, o.GetStored())
		return o.GetReason() + " " + strings.ReplaceAll(o.GetMessage(), thread, "THREAD")
	}
	hidden := answer("hidden")
	require.Equal(t, answer("nothing"), hidden)
	require.Contains(t, hidden, "THREAD_NOT_FOUND")
	require.Contains(t, answer("asking"), "INTERRUPT_NOT_FOUND")
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(s.audit)
		require.NoError(t, err)
		recorded := 0
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "AnswerInterrupts") && strings.Contains(line, "_NOT_FOUND") {
				recorded++
			}
		}
		return recorded == 3
	}, time.Minute, 10*time.Millisecond)
}

// Each answer counts as a call that answers. Those that wait take nothing from the calls of
// the caller.
func TestBulkAnswerKeepsTheRate(t *testing.T) {
	quotas := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(quotas, []byte("caller: {answers: {per_second: 20, burst: 1}, calls: {per_second: 0.001, burst: 20}}\n"), 0o600))
	b := startBulkCase(t, func(o *server.Options) { o.Quotas = quotas })
	targets := b.askMany(t, "plain", 8)
	began := time.Now()
	counts, err := b.answerMany(b.as(t, "ana"), answerTargets(targets, `"yes"`, "r"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"stored": 8}, counts)
	require.Greater(t, time.Since(began), 300*time.Millisecond, "7 answers wait for 50 ms each")
}
