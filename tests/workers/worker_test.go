package workers_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
	"github.com/graphd-dev/graphd/tests/harness"
)

// taskFunc is what a scripted worker does with a task.
type taskFunc func(ctx context.Context, t *runningTask) *graphdv1.TaskResult

// workerSession is one stream of a scripted worker, without any behaviour of its
// own: tests say what is sent.
type workerSession struct {
	t       testing.TB
	client  client
	stream  graphdv1.WorkerService_ConnectClient
	welcome *graphdv1.Welcome
	cancel  context.CancelFunc

	tasks     chan *graphdv1.TaskAssignment
	cancels   chan *graphdv1.CancelTask
	acks      chan *graphdv1.BeatAck
	throttles chan *graphdv1.Throttle
	drains    chan *graphdv1.Drain
	answers   chan *graphdv1.Completed
	end       chan error
	batches   atomic.Int64 // that were received
	sending   sync.Mutex
}

// connectWorker opens a session and waits for welcome.
func (s *server) connectWorker(hello *graphdv1.Hello) *workerSession {
	s.t.Helper()
	return openSession(s.t, s.newClient(), hello)
}

func openSession(tb testing.TB, c client, hello *graphdv1.Hello) *workerSession {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	stream, err := c.Connect(ctx)
	require.NoError(tb, err)
	w := &workerSession{
		t: tb, client: c, stream: stream, cancel: cancel,
		tasks: make(chan *graphdv1.TaskAssignment, 1000), cancels: make(chan *graphdv1.CancelTask, 100),
		acks: make(chan *graphdv1.BeatAck, 1000), throttles: make(chan *graphdv1.Throttle, 100),
		drains: make(chan *graphdv1.Drain, 10), answers: make(chan *graphdv1.Completed, 100), end: make(chan error, 1),
	}
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: hello}})
	first, err := stream.Recv()
	require.NoError(tb, err)
	w.welcome = first.GetWelcome()
	require.NotNil(tb, w.welcome)
	go w.receiveMessages()
	tb.Cleanup(cancel)
	return w
}

func (w *workerSession) receiveMessages() {
	for {
		m, err := w.stream.Recv()
		if err != nil {
			w.end <- err
			return
		}
		w.handleMessage(m)
	}
}

func (w *workerSession) handleMessage(m *graphdv1.ConnectResponse) {
	switch k := m.GetKind().(type) {
	case *graphdv1.ConnectResponse_Batch:
		w.batches.Add(1)
		for _, part := range k.Batch.GetResponses() {
			w.handleMessage(part)
		}
	case *graphdv1.ConnectResponse_Task:
		w.tasks <- k.Task
	case *graphdv1.ConnectResponse_Cancel:
		w.cancels <- k.Cancel
	case *graphdv1.ConnectResponse_BeatAck:
		w.acks <- k.BeatAck
	case *graphdv1.ConnectResponse_Throttle:
		w.throttles <- k.Throttle
	case *graphdv1.ConnectResponse_Drain:
		w.drains <- k.Drain
	case *graphdv1.ConnectResponse_Completed:
		w.answers <- k.Completed
	}
}

func (w *workerSession) sendMessage(m *graphdv1.ConnectRequest) {
	w.sending.Lock()
	defer w.sending.Unlock()
	_ = w.stream.Send(m) // a broken stream shows in receive
}

func (w *workerSession) sendHeartbeat(n uint64, tokens ...[]byte) {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: n, Running: tokens}}})
}

func (w *workerSession) sendCredit(c *graphdv1.Credit) {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Credit{Credit: c}})
}

func (w *workerSession) sendUpdate(u *graphdv1.TaskUpdate) {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Update{Update: u}})
}

// nextTask waits for a task.
func (w *workerSession) nextTask() *graphdv1.TaskAssignment {
	return receiveOrFail(w.t, w.tasks, "a task")
}

// completeTask hands over a result and returns what the server says.
func (w *workerSession) completeTask(a *graphdv1.TaskAssignment, r *graphdv1.TaskResult) (*graphdv1.CompleteTaskResponse, error) {
	return w.client.CompleteTask(w.t.Context(), &graphdv1.CompleteTaskRequest{LeaseToken: a.GetLease().GetToken(), Result: r})
}

// keepSendingHeartbeats sends heartbeats until the session ends; running lists what it holds.
func (w *workerSession) keepSendingHeartbeats(running func() [][]byte) {
	go func() {
		tick := time.NewTicker(w.welcome.GetBeatInterval().AsDuration())
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-tick.C:
				w.sendHeartbeat(n, running()...)
			case <-w.stream.Context().Done():
				return
			}
		}
	}()
}

// receiveOrFail receives with a limit, so that a test fails instead of hanging.
func receiveOrFail[T any](tb testing.TB, from <-chan T, what string) T {
	tb.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	var v T
	select {
	case v = <-from:
	case <-timer.C:
		require.FailNow(tb, "waited too long for "+what)
	}
	return v
}

// scriptedWorker is a worker that follows the protocol.
type scriptedWorker struct {
	*workerSession

	mu      sync.Mutex
	running map[string]context.CancelFunc
	taskLog []string // kind and node of every task, in order
}

// startWorker starts a scriptedWorker.
func (s *server) startWorker(id string, slots uint32, graphs []*graphdv1.GraphSpec, does map[string]taskFunc) *scriptedWorker {
	s.t.Helper()
	w := s.connectWorker(&graphdv1.Hello{
		WorkerId: id, Manifest: &graphdv1.WorkerManifest{BuildId: "b1", Graphs: graphs, Features: []string{"drift"}},
		Credit: &graphdv1.Credit{TotalSlots: slots},
	})
	for _, g := range w.welcome.GetGraphs() {
		require.Empty(s.t, g.GetProblems())
	}
	p := &scriptedWorker{workerSession: w, running: make(map[string]context.CancelFunc)}
	w.keepSendingHeartbeats(p.runningTokens)
	go p.serveTasks(does)
	return p
}

func (p *scriptedWorker) runningTokens() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]byte
	for token := range p.running {
		all = append(all, []byte(token))
	}
	return all
}

func (p *scriptedWorker) serveTasks(does map[string]taskFunc) {
	for {
		select {
		case a := <-p.tasks:
			name := a.GetNode()
			if a.GetFunction() != "" {
				name = a.GetFunction()
			}
			ctx, cancel := context.WithCancel(p.stream.Context())
			p.mu.Lock()
			p.running[string(a.GetLease().GetToken())] = cancel
			p.taskLog = append(p.taskLog, name)
			p.mu.Unlock()
			go p.runTask(ctx, a, does[name])
		case c := <-p.cancels:
			p.mu.Lock()
			if stop := p.running[string(c.GetLeaseToken())]; stop != nil {
				stop()
			}
			p.mu.Unlock()
		case <-p.stream.Context().Done():
			return
		}
	}
}

func (p *scriptedWorker) runTask(ctx context.Context, a *graphdv1.TaskAssignment, f taskFunc) {
	p.sendUpdate(&graphdv1.TaskUpdate{LeaseToken: a.GetLease().GetToken(), Kind: &graphdv1.TaskUpdate_Alive{}})
	t := &runningTask{TaskAssignment: a, client: p.client, asked: make(map[string]uint32)}
	r := t.runCode(ctx, f)
	done, err := p.client.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{
		LeaseToken: a.GetLease().GetToken(), Result: r, Emit: &graphdv1.Emit{Items: t.emits}, TakeNext: true,
	})
	if err == nil && done.GetNext() != nil {
		p.tasks <- done.GetNext()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, string(a.GetLease().GetToken()))
}

// listRan lists what the worker was given.
func (p *scriptedWorker) listRan() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.taskLog...)
}

// runningTask is a task with what an SDK offers its node.
type runningTask struct {
	*graphdv1.TaskAssignment

	client client
	asked  map[string]uint32
	calls  uint32
	emits  []*graphdv1.EmitItem
	used   []*graphdv1.UsedAnswer
}

// interruptPanic leaves a node for its interrupts.
type interruptPanic struct{ result *graphdv1.TaskResult }

func (t *runningTask) runCode(ctx context.Context, f taskFunc) (r *graphdv1.TaskResult) {
	defer func() {
		if p := recover(); p != nil {
			u, ok := p.(interruptPanic)
			if !ok {
				panic(p)
			}
			r = u.result
		}
		r.Used = t.used
	}()
	if f == nil {
		return failedResult("Unknown", "no such node in this worker")
	}
	return f(ctx, t)
}

func (t *runningTask) channelValue(key string) string { return t.GetChannels()[key].GetJson() }

// answerOrUnwind returns the answer to the next interrupt, or unwinds. An answer to something
// else is none.
func (t *runningTask) answerOrUnwind(question string) string {
	shown := seen.Digest("", json.RawMessage(question), nil)
	i := t.asked["?"]
	t.asked["?"]++
	for _, e := range t.GetJournal().GetEntries() {
		if e.GetAnswer() != nil && e.GetKey() == "" && e.GetIndex() == i && e.GetAnswer().GetSeen() == shown {
			t.used = append(t.used, &graphdv1.UsedAnswer{Index: i, Seen: shown})
			return e.GetAnswer().GetValue().GetJson()
		}
	}
	panic(interruptPanic{&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{
		Asks: []*graphdv1.Ask{{Index: i, Value: harness.NewPayload(question)}},
	}}}})
}

// recordOnce records a value once.
func (t *runningTask) recordOnce(ctx context.Context, key string, fresh func() string) string {
	i := t.asked[key]
	t.asked[key]++
	for _, e := range t.GetJournal().GetEntries() {
		if e.GetMemo() != nil && e.GetKey() == key && e.GetIndex() == i {
			return e.GetMemo().GetJson()
		}
	}
	resp, err := t.client.RecordMemo(ctx, &graphdv1.RecordMemoRequest{
		LeaseToken: t.GetLease().GetToken(), Key: key, Index: i, Value: harness.NewPayload(fresh()),
	})
	if err != nil {
		panic(interruptPanic{failedResult("Memo", err.Error())})
	}
	return resp.GetValue().GetJson()
}

// callGraph runs a graph inside the task.
func (t *runningTask) callGraph(ctx context.Context, graph, input string) string {
	resp, err := t.client.CallGraph(ctx, &graphdv1.CallGraphRequest{
		LeaseToken: t.GetLease().GetToken(), CallIndex: t.calls, Graph: graph, Input: harness.NewPayload(input),
	})
	t.calls++
	if err != nil {
		panic(interruptPanic{failedResult("Call", err.Error())})
	}
	switch o := resp.GetOutcome().(type) {
	case *graphdv1.CallGraphResponse_Output:
		return o.Output.GetJson()
	case *graphdv1.CallGraphResponse_Waiting:
		panic(interruptPanic{&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{
			Interrupted: &graphdv1.TaskInterrupted{WaitingInterruptIds: o.Waiting.GetInterruptIds()},
		}}})
	case *graphdv1.CallGraphResponse_Command:
		panic(interruptPanic{&graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: o.Command}}})
	}
	panic(interruptPanic{failedResult(resp.GetFailure().GetType(), resp.GetFailure().GetMessage())})
}

func (t *runningTask) addEvent(name, value string, durable bool) {
	t.emits = append(t.emits, &graphdv1.EmitItem{
		Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: name, Value: harness.NewPayload(value), Durable: durable,
	})
}

func completedResult(update string, targets ...string) *graphdv1.TaskResult {
	c := &graphdv1.TaskCompleted{}
	if update != "" {
		c.Update = harness.NewPayload(update)
	}
	for _, to := range targets {
		c.GotoTargets = append(c.GotoTargets, &graphdv1.Goto{Target: &graphdv1.Goto_Node{Node: to}})
	}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: c}}
}

func failedResult(kind, message string) *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{Type: kind, Message: message}}}
}

// newChainGraph is a graph of remote nodes in a row over the keys x and log.
func newChainGraph(name string, nodes ...string) *graphdv1.GraphSpec {
	g := &graphdv1.GraphSpec{
		Name:     name,
		Channels: []*graphdv1.ChannelSpec{{Name: "x"}, {Name: "log", Reducer: "append"}},
	}
	last := "__start__"
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, &graphdv1.NodeSpec{Name: n, Kind: &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{}}})
		g.Edges = append(g.Edges, &graphdv1.EdgeSpec{Sources: []string{last}, Target: n})
		last = n
	}
	g.Edges = append(g.Edges, &graphdv1.EdgeSpec{Sources: []string{last}, Target: "__end__"})
	return g
}

func listSpecs(list ...*graphdv1.GraphSpec) []*graphdv1.GraphSpec { return list }

// returnsUpdate returns code that writes one update.
func returnsUpdate(update string) taskFunc {
	return func(context.Context, *runningTask) *graphdv1.TaskResult { return completedResult(update) }
}
