package workers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/tests/harness"
)

// Results that can't be used are taken, and fail the task with the reason.
func TestUnusableResultsFailTheTask(t *testing.T) {
	big := `"` + strings.Repeat("x", 5<<20) + `"`
	wrap := func(c *graphdv1.TaskCompleted) *graphdv1.TaskResult {
		return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: c}}
	}
	for name, c := range map[string]struct {
		result  *graphdv1.TaskResult
		reason  string
		message string
	}{
		"invalid JSON":  {completedResult(`{"x":`), "INVALID_NODE_UPDATE", "JSON"},
		"not an object": {completedResult(`[1]`), "INVALID_NODE_UPDATE", "object"},
		"repeated key":  {completedResult(`{"x":1,"x":2}`), "INVALID_NODE_UPDATE", "x"},
		"too large":     {completedResult(`{"x":` + big + `}`), "OUTPUT_TOO_LARGE", "bytes"},
		"too deep": {
			completedResult(`{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), "LIMIT_EXCEEDED", "the limit of 128 levels",
		},
		"unknown channel":   {wrap(&graphdv1.TaskCompleted{Writes: []*graphdv1.ChannelWrite{{Channel: "lgo", Value: harness.NewPayload(`1`)}}}), "INVALID_NODE_UPDATE", "lgo"},
		"channel unset":     {wrap(&graphdv1.TaskCompleted{Writes: []*graphdv1.ChannelWrite{{Value: harness.NewPayload(`1`)}}}), "INVALID_NODE_UPDATE", "completed.writes[0].channel"},
		"value unset":       {wrap(&graphdv1.TaskCompleted{Writes: []*graphdv1.ChannelWrite{{Channel: "x"}}}), "INVALID_NODE_UPDATE", "completed.writes[0].value"},
		"unknown goto":      {completedResult(``, "nowhere"), "UNKNOWN_TARGET_NODE", "nowhere"},
		"goto without node": {wrap(&graphdv1.TaskCompleted{GotoTargets: []*graphdv1.Goto{{}}}), "INVALID_NODE_UPDATE", "goto"},
		"no outcome":        {&graphdv1.TaskResult{}, "INVALID_NODE_UPDATE", "outcome"},
		"no parent":         {wrap(&graphdv1.TaskCompleted{ToParent: true}), "INVALID_NODE_UPDATE", "parent"},
		"asks nothing": {
			&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{}}},
			"INVALID_NODE_UPDATE", "ask",
		},
		"waits for nothing": {interruptedResult(nil, "nobody asked"), "INVALID_NODE_UPDATE", `question "nobody asked"`},
		"asks two things in one place": {
			interruptedResult([]*graphdv1.Ask{{Index: 1, Value: harness.NewPayload(`1`)}, {Index: 1, Value: harness.NewPayload(`2`)}}),
			"INVALID_NODE_UPDATE", "question 2",
		},
		"asks for what no answer can be": {
			interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(`1`), ResponseSchema: harness.NewPayload(`{"type":7}`)}}),
			"INVALID_NODE_UPDATE", "response schema of question 1",
		},
		"asks for what is elsewhere": {
			interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(`1`), ResponseSchema: harness.NewPayload(`{"$ref":"http://127.0.0.1:9/x"}`)}}),
			"INVALID_NODE_UPDATE", "response schema of question 1",
		},
		"defaults to what it refuses": {
			interruptedResult([]*graphdv1.Ask{{
				Value: harness.NewPayload(`1`), ResponseSchema: harness.NewPayload(`{"type":"string"}`), DefaultResponse: harness.NewPayload(`1`),
			}}),
			"INVALID_NODE_UPDATE", "does not fit its own schema",
		},
		"hides what has no name": {
			interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(`1`), Secret: []string{"/a", "card"}}}),
			"INVALID_NODE_UPDATE", `interrupted.asks[0].secret[1]: "card" is no JSON pointer`,
		},
		"hides a part twice": {
			interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(`1`), Secret: []string{"/a/b", "/a"}}}),
			"INVALID_NODE_UPDATE", "overlap",
		},
		"binary value": {
			wrap(&graphdv1.TaskCompleted{Update: &graphdv1.Payload{Body: &graphdv1.Payload_Data{Data: []byte("x")}}}),
			"INVALID_NODE_UPDATE", "not supported",
		},
		"changed code": {
			&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{
				Cause: graphdv1.TaskFailed_CAUSE_NON_DETERMINISTIC, Message: "question 1 was memo 1",
			}}},
			"NON_DETERMINISTIC_NODE", "question 1 was memo 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			w := s.connectWorker(newHello("w1", 1))
			run := s.startRun("g", `{"x":0}`)
			_, err := w.completeTask(w.nextTask(), c.result)
			require.NoError(t, err)
			run = s.waitStopped(run)
			require.Equal(t, c.reason, run.GetFailure().GetReason(), run.GetFailure().GetMessage())
			require.Contains(t, run.GetFailure().GetMessage(), c.message)
			require.Empty(t, w.tasks, "it is not tried again")
		})
	}
}

func interruptedResult(asks []*graphdv1.Ask, waiting ...string) *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{
		Asks: asks, WaitingInterruptIds: waiting,
	}}}
}

// An answer of the wrong type leaves the interrupt open. The error says which answer it is, and names
// the field that the client has set.
func TestAnswersOfTheWrongTypeNameTheirField(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":0}`)
	_, err := w.completeTask(w.nextTask(), interruptedResult([]*graphdv1.Ask{{Value: harness.NewPayload(`"q"`), ResponseSchema: harness.NewPayload(`{"type":"string"}`)}}))
	require.NoError(t, err)
	run = s.waitStopped(run)
	wrong := &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`5`)}}
	named := &graphdv1.InterruptResponse{InterruptId: run.GetOpenInterruptIds()[0], Outcome: wrong.GetOutcome()}
	for _, c := range []struct {
		resume       *graphdv1.ResumeSpec
		field, which string
	}{
		{&graphdv1.ResumeSpec{Single: wrong}, "single.value", "the answer"},
		{&graphdv1.ResumeSpec{Responses: []*graphdv1.InterruptResponse{named}}, "responses[0].value", "the answer to question " + named.GetInterruptId()},
	} {
		c.resume.ThreadId = run.GetThreadId()
		_, err := s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: c.resume})
		require.Equal(t, "RESPONSE_SCHEMA_MISMATCH", reasonOf(t, err))
		require.ErrorContains(t, err, c.which+": got number, want string")
		require.Contains(t, fmt.Sprint(status.Convert(err).Details()...), c.field)
	}
	require.Empty(t, w.tasks, "no worker is asked again")
	_, err = s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(),
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)}},
	}})
	require.NoError(t, err)
	_, err = w.completeTask(w.nextTask(), completedResult(`{"x":1}`))
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
}

// A router can't wait, for graphs that it calls either.
func TestARouterThatWaitsFailsItsNode(t *testing.T) {
	s := startServer(t, config{})
	g := newChainGraph("g", "a")
	g.Edges = g.Edges[:1]
	g.Branches = []*graphdv1.BranchSpec{{
		Source: "a", Name: "out", Decision: &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: "leave"}, Targets: []string{"__end__"},
	}}
	s.startWorker("w1", 4, listSpecs(g), map[string]taskFunc{
		"a": returnsUpdate(`{"x":1}`),
		"leave": func(context.Context, *runningTask) *graphdv1.TaskResult {
			return interruptedResult(nil, "some question")
		},
	})
	f := s.runGraph("g", `{"x":0}`).GetFailure()
	require.Equal(t, "INVALID_NODE_UPDATE", f.GetReason(), f.GetMessage())
	require.Contains(t, f.GetMessage(), "cannot ask")
}

// What does not fit a message can't be taken. The worker is told, and says so
// in the result's place.
func TestAHundredMegabytes(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":0}`)
	a := w.nextTask()
	_, err := w.completeTask(a, completedResult(`{"x":"`+strings.Repeat("x", 100<<20)+`"}`))
	require.Equal(t, "ResourceExhausted", reasonOf(t, err))
	_, err = w.completeTask(a, &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{
		Cause: graphdv1.TaskFailed_CAUSE_TOO_LARGE, Message: "the result has 104857608 bytes",
	}}})
	require.NoError(t, err)
	require.Equal(t, "OUTPUT_TOO_LARGE", s.waitStopped(run).GetFailure().GetReason())
}

func TestAStateThatFitsNoMessageFailsTheTask(t *testing.T) {
	s := startServer(t, config{limits: pregel.Limits{MaxValueBytes: 16 << 20, MaxStateBytes: 16 << 20}})
	h := newHello("w1", 1)
	h.Manifest.Graphs = listSpecs(newChainGraph("g", "a", "b", "c", "d"))
	for _, n := range h.Manifest.Graphs[0].Nodes[:3] {
		n.Reads = []string{"x"}
	}
	w := s.connectWorker(h)
	w.keepSendingHeartbeats(func() [][]byte { return nil })
	run := s.startRun("g", `{"x":0}`)
	for range 3 {
		_, err := w.completeTask(w.nextTask(), completedResult(`{"log":["`+strings.Repeat("x", 3<<20)+`"]}`))
		require.NoError(t, err)
	}
	run = s.waitStopped(run)
	require.Equal(t, "OUTPUT_TOO_LARGE", run.GetFailure().GetReason())
	require.Contains(t, run.GetFailure().GetMessage(), "reads")
}

func TestInvalidResultsAreRefused(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	run := s.startRun("g", `{"x":0}`)
	a := w.nextTask()
	forged := append([]byte(nil), a.GetLease().GetToken()...)
	forged[len(forged)-1] ^= 1
	for name, token := range map[string][]byte{"forged": forged, "short": forged[:3], "text": []byte("x")} {
		_, err := w.client.CompleteTask(t.Context(), &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: completedResult("")})
		require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err), name)
		_, err = w.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: harness.NewPayload("1")})
		require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err), name)
		_, err = w.client.CallGraph(t.Context(), &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "g", Input: harness.NewPayload("{}")})
		require.Equal(t, "TASK_LEASE_LOST", reasonOf(t, err), name)
	}
	token := a.GetLease().GetToken()
	for want, call := range map[string]func() error{
		"INVALID_FIELD no token": func() error {
			_, err := w.client.CompleteTask(t.Context(), &graphdv1.CompleteTaskRequest{})
			return err
		},
		"INVALID_FIELD no key": func() error {
			_, err := w.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{LeaseToken: token, Value: harness.NewPayload("1")})
			return err
		},
		"INVALID_PAYLOAD_JSON": func() error {
			_, err := w.client.RecordMemo(t.Context(), &graphdv1.RecordMemoRequest{LeaseToken: token, Key: "k", Value: harness.NewPayload("{")})
			return err
		},
		"GRAPH_NOT_FOUND": func() error {
			_, err := w.client.CallGraph(t.Context(), &graphdv1.CallGraphRequest{LeaseToken: token, Graph: "none", Input: harness.NewPayload("{}")})
			return err
		},
		"GRAPH_VERSION_UNAVAILABLE": func() error {
			_, err := w.client.CallGraph(t.Context(), &graphdv1.CallGraphRequest{
				LeaseToken: token, Graph: "g", GraphVersion: "9", Input: harness.NewPayload("{}"), CallIndex: 1,
			})
			return err
		},
		"INVALID_FIELD input": func() error {
			_, err := w.client.CallGraph(t.Context(), &graphdv1.CallGraphRequest{
				LeaseToken: token, Graph: "g", Input: harness.NewPayload("[1]"), CallIndex: 2,
			})
			return err
		},
	} {
		require.Equal(t, strings.Fields(want)[0], reasonOf(t, call()), want)
	}
	_, err := w.completeTask(a, completedResult(`{"x":1}`))
	require.NoError(t, err, "the task goes on")
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
}

func TestBadSessionsAreEnded(t *testing.T) {
	s := startServer(t, config{})
	for name, c := range map[string]struct {
		send   []*graphdv1.ConnectRequest
		reason string
	}{
		"no hello": {[]*graphdv1.ConnectRequest{{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{}}}}, "INVALID_FIELD"},
		"a batch first": {[]*graphdv1.ConnectRequest{newBatch(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
			WorkerId: "w",
		}}})}, "INVALID_FIELD"},
		"no id": {[]*graphdv1.ConnectRequest{{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{}}}}, "INVALID_FIELD"},
		"protocol": {[]*graphdv1.ConnectRequest{{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
			WorkerId: "w", Manifest: &graphdv1.WorkerManifest{MinProtocol: 7, MaxProtocol: 9},
		}}}}, "PROTOCOL_MISMATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := s.newClient().Connect(t.Context())
			require.NoError(t, err)
			for _, m := range c.send {
				require.NoError(t, stream.Send(m))
			}
			_, err = stream.Recv()
			require.Equal(t, c.reason, reasonOf(t, err))
		})
	}
	for name, m := range map[string]*graphdv1.ConnectRequest{
		"second hello": {Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{WorkerId: "w"}}},
		"result here": {Kind: &graphdv1.ConnectRequest_Update{Update: &graphdv1.TaskUpdate{
			LeaseToken: []byte("x"), Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{}},
		}}},
		"nothing":               {},
		"an empty batch":        newBatch(),
		"a hello in a batch":    newBatch(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{WorkerId: "w"}}}),
		"a batch in a batch":    newBatch(newBatch(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{}}})),
		"a batch with too much": newBatch(make([]*graphdv1.ConnectRequest, 65)...),
	} {
		t.Run(name, func(t *testing.T) {
			w := s.connectWorker(newHello("w", 1))
			w.sendMessage(m)
			require.Equal(t, "INVALID_FIELD", reasonOf(t, receiveOrFail(t, w.end, "the end")))
		})
	}
}

func TestProblemsOfAGraphAreToldToItsWorker(t *testing.T) {
	s := startServer(t, config{})
	h := newHello("w1", 1)
	bad := newChainGraph("bad", "a")
	bad.Edges[0].Target = "b"
	h.Manifest.Graphs = append(h.Manifest.Graphs, bad)
	w := s.connectWorker(h)
	require.Len(t, w.welcome.GetGraphs(), 2)
	require.NotEmpty(t, w.welcome.GetGraphs()[0].GetVersion())
	require.Empty(t, w.welcome.GetGraphs()[1].GetVersion())
	problems := w.welcome.GetGraphs()[1].GetProblems()
	require.NotEmpty(t, problems)
	require.Contains(t, problems[0].GetDescription(), `unknown node "b"`)
}

func TestVersionsCoexist(t *testing.T) {
	s := startServer(t, config{})
	one, two := newChainGraph("g", "a"), newChainGraph("g", "a")
	one.Version, two.Version = "1", "2"
	h := newHello("old", 1)
	h.Manifest.Graphs = listSpecs(one)
	old := s.connectWorker(h)
	first := s.startRun("g", `{"x":1}`)
	a := old.nextTask()
	h = newHello("new", 1)
	h.Manifest.Graphs = listSpecs(two)
	fresh := s.connectWorker(h)
	second := s.startRun("g", `{"x":2}`)
	b := fresh.nextTask()
	require.Equal(t, []string{"1", "2"}, []string{a.GetGraphVersion(), b.GetGraphVersion()})
	for _, done := range []*graphdv1.TaskAssignment{a, b} {
		_, err := fresh.completeTask(done, completedResult(`{"x":"`+done.GetGraphVersion()+`"}`))
		require.NoError(t, err)
	}
	require.Equal(t, "1", s.waitStopped(first).GetGraphVersion())
	require.Equal(t, "2", s.waitStopped(second).GetGraphVersion())
}

// A flood of events takes nothing from the results: all that can be dropped is.
func TestAFloodOfEventsDelaysNothing(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 2))
	noisy, quiet := s.startRun("g", `{"x":1}`), s.startRun("g", `{"x":2}`)
	a, b := w.nextTask(), w.nextTask()
	if a.GetRunId() != noisy.GetRunId() {
		a, b = b, a
	}
	var items []*graphdv1.EmitItem
	for i := range 1500 {
		items = append(items, &graphdv1.EmitItem{
			Channel: graphdv1.Channel_CHANNEL_MESSAGES, Value: harness.NewPayload(fmt.Sprintf(`%d`, i)),
		})
	}
	for range 5 {
		w.sendUpdate(&graphdv1.TaskUpdate{
			LeaseToken: a.GetLease().GetToken(), Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: items}},
		})
	}
	w.sendHeartbeat(1, a.GetLease().GetToken(), b.GetLease().GetToken())
	require.Empty(t, receiveOrFail(t, w.acks, "the ack behind the flood").GetLost())
	require.NotZero(t, receiveOrFail(t, w.throttles, "the throttle").GetDropped())
	_, err := w.completeTask(b, completedResult(`{"x":3}`))
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(quiet).GetState())
	_, err = w.completeTask(a, completedResult(`{"x":4}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":4,"log":[]}`, s.waitStopped(noisy).GetOutput().GetJson())
}

// Events that were sent before the result come before it, and none is lost
// without need.
func TestAResultDoesNotOvertakeItsEvents(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(newHello("w1", 1))
	for round := range 20 {
		run := s.startRun("g", `{"x":1}`)
		a := w.nextTask()
		for i := range 10 {
			w.sendUpdate(&graphdv1.TaskUpdate{
				LeaseToken: a.GetLease().GetToken(), Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{
					Items: []*graphdv1.EmitItem{{Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: harness.NewPayload(fmt.Sprint(i)), Durable: true}},
				}},
			})
		}
		_, err := w.client.CompleteTask(t.Context(), &graphdv1.CompleteTaskRequest{
			LeaseToken: a.GetLease().GetToken(), Result: completedResult(`{"x":2}`), Emitted: 10,
			Emit: &graphdv1.Emit{Items: []*graphdv1.EmitItem{{
				Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: harness.NewPayload(`10`), Durable: true,
			}}},
		})
		require.NoError(t, err)
		s.waitStopped(run)
		var got []string
		for _, e := range s.listEvents(run) {
			switch {
			case e.GetCustom() != nil:
				got = append(got, e.GetCustom().GetValue().GetJson())
			case e.GetUpdate() != nil:
				got = append(got, "update")
			}
		}
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "update"}, got, "round %d", round)
	}
}
