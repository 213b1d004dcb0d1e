package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/client"
)

// onceGraph counts how often the node after a question has run.
const onceGraph = `graph: once
channels: {decision: {}, runs: {reducer: add, default: 0}}
nodes:
  ask: {ask: {message: "'ok?'", update: {decision: answer}}}
  count: {expr: {update: {runs: "1"}}}
edges: [START -> ask -> count -> END]
`

const (
	killedQuestions = 400
	killedOutcomes  = 100 // after which the server is killed
	// killedQuotas slow the answers down after many, so that the server has not given all when it
	// is killed, on a busy machine too.
	killedQuotas = "caller: {answers: {per_second: 5, burst: 200}}\n"
)

// peopleProcess is a server of its own process that knows the people.
type peopleProcess struct {
	*bulkCase

	process *serverProcess
}

// startPeopleProcess starts a server on a store, with a file of keys of these tokens.
func startPeopleProcess(t *testing.T, store, keys string, tokens map[string]string, flags ...string) *peopleProcess {
	t.Helper()
	p := startServerProcess(t, "", store, append([]string{"--api-keys", keys, "--lease", "2s"}, flags...)...)
	return &peopleProcess{newBulkCase(dialPeopleServer(t, commandRunner{server: p.address}, tokens)), p}
}

// startOnceRuns starts runs that ask, and returns their questions.
func (p *peopleProcess) startOnceRuns(t *testing.T) (targets []*graphdv1.AnswerInterruptsRequest_Target) {
	t.Helper()
	for n := range killedQuestions {
		_, err := p.runs.StartRun(p.as(t, "carl"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			ThreadId: fmt.Sprint("t", n), CreateThread: true, Graph: "once", Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")},
		}})
		require.NoError(t, err)
	}
	for n := range killedQuestions {
		p.waitForRun(t, fmt.Sprint("t", n), graphdv1.RunState_RUN_STATE_INTERRUPTED)
	}
	for _, q := range p.listOpen(t) {
		targets = append(targets, targetOf(q))
	}
	require.Len(t, targets, killedQuestions)
	return targets
}

// waitForRun waits until the run of a thread is in a state. Another server may have to take it
// over before.
func (p *peopleProcess) waitForRun(t *testing.T, thread string, state graphdv1.RunState) *graphdv1.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.as(t, "carl"), 2*time.Minute)
	defer cancel()
	for {
		run, err := p.runs.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread})
		require.NoError(t, err, thread)
		if run.GetState() == state {
			return run
		}
		require.NoError(t, backoff.Sleep(ctx, 10*time.Millisecond), "%s is %s", thread, run.GetState())
	}
}

func (p *peopleProcess) listOpen(t *testing.T) []*graphdv1.Interrupt {
	t.Helper()
	open, err := client.CollectPages(0, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
		page, err := p.interrupts.ListInterrupts(p.as(t, "ana"), &graphdv1.ListInterruptsRequest{PageSize: size, PageToken: token})
		return page.GetInterrupts(), page.GetNextPageToken(), err
	})
	require.NoError(t, err)
	return open
}

// answerUntilKilled begins a bulk answer and kills its server. It returns the threads of the
// outcomes that came.
func (p *peopleProcess) answerUntilKilled(t *testing.T, req *graphdv1.AnswerInterruptsRequest) map[string]bool {
	t.Helper()
	outcomes, err := p.interrupts.AnswerInterrupts(p.as(t, "ana"), req)
	require.NoError(t, err)
	told := map[string]bool{}
	for {
		outcome, err := outcomes.Recv()
		if err != nil {
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			return told
		}
		require.True(t, outcome.GetStored(), outcome.GetReason())
		told[outcome.GetThreadId()] = true
		if len(told) == killedOutcomes {
			p.process.Kill()
		}
	}
}

// requireAnsweredOnce checks that each question has one answer, which was used once.
func (p *peopleProcess) requireAnsweredOnce(t *testing.T, targets []*graphdv1.AnswerInterruptsRequest_Target) {
	t.Helper()
	for _, target := range targets {
		thread := target.GetThreadId()
		run := p.waitForRun(t, thread, graphdv1.RunState_RUN_STATE_SUCCEEDED)
		require.JSONEq(t, `{"decision": "yes", "runs": 1}`, run.GetOutput().GetJson(), thread)
		require.Equal(t, []graphdv1.TrailKind{
			graphdv1.TrailKind_TRAIL_KIND_ASKED, graphdv1.TrailKind_TRAIL_KIND_ANSWERED, graphdv1.TrailKind_TRAIL_KIND_USED,
		}, kindsOfTrail(p.listTrail(t, thread, target.GetInterruptId())), thread)
	}
}

// writeKilledQuotas returns the flags of a server whose answers become slow.
func writeKilledQuotas(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quotas.yaml")
	require.NoError(t, os.WriteFile(path, []byte(killedQuotas), 0o600))
	return []string{"--quotas", path}
}

// A bulk answer whose server dies is repeated under its id at the server that comes after it.
func TestABulkAnswerOutlivesItsServer(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "g.db")
	keys, tokens := createPeople(t)
	first := startPeopleProcess(t, store, keys, tokens, writeKilledQuotas(t)...)
	first.putGraph(t, onceGraph)
	testKilledBulkAnswer(t, first, func() *peopleProcess { return startPeopleProcess(t, store, keys, tokens) })
}

// The same at another server that was there all the time.
func TestABulkAnswerIsRepeatedAtAnotherServer(t *testing.T) {
	store := redistest.Start(t, "--appendfsync", "everysec").URL("")
	keys, tokens := createPeople(t)
	first := startPeopleProcess(t, store, keys, tokens, writeKilledQuotas(t)...)
	first.putGraph(t, onceGraph)
	second := startPeopleProcess(t, store, keys, tokens)
	testKilledBulkAnswer(t, first, func() *peopleProcess { return second })
}

func testKilledBulkAnswer(t *testing.T, first *peopleProcess, next func() *peopleProcess) {
	t.Helper()
	targets := first.startOnceRuns(t)
	req := answerTargets(targets, `"yes"`, "bulk-1")
	told := first.answerUntilKilled(t, req)
	require.Less(t, len(told), killedQuestions)

	second := next()
	left := second.listOpen(t)
	require.NotEmpty(t, left, "the server was killed before the last answer")
	for _, q := range left {
		require.False(t, told[q.GetThreadId()], "an answer is lost whose outcome came: %s", q.GetThreadId())
	}
	t.Logf("%d outcomes came, %d answers were stored", len(told), killedQuestions-len(left))
	counts, err := second.answerMany(second.as(t, "ana"), req)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"stored": killedQuestions}, counts)
	require.Empty(t, second.listOpen(t))
	counts, err = second.answerMany(second.as(t, "ana"), answerTargets(targets, `"no"`, "bulk-1"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"REQUEST_ID_CONFLICT": killedQuestions}, counts, "the id is that of the answers of both servers")
	second.requireAnsweredOnce(t, targets)
}
