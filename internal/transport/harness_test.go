package transport_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/trail"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// fakeEngine is a runtime that returns what the test has set, and records requests.
type fakeEngine struct {
	mu         sync.Mutex
	requests   []any // every request, in order
	err        error // answers every call, when set
	panics     bool
	head       checkpoint.Head
	heads      []checkpoint.Head
	run        checkpoint.Run
	runs       []checkpoint.Run
	started    *runtime.Started
	state      runtime.Snapshot
	states     []runtime.Snapshot
	trail      []trail.Entry
	values     payload.JSON
	interrupts []checkpoint.Interrupt
	// hasLargeInterrupts says that they can't be read together.
	hasLargeInterrupts bool
	ahead              time.Duration // of the store's clock
	log                []checkpoint.Event
	logGrown           chan struct{} // closed when the log grows
	isShared           bool          // others follow the thread too
	questions          runtime.QuestionStatistics
	answers            runtime.AnswerStatistics
	stateReads         int // number of states that were read for events
}

func newFakeEngine() *fakeEngine {
	run := checkpoint.Run{
		ID: "run-1", Thread: "t1", Graph: "g", Version: "v1", State: checkpoint.RunRunning, FirstEvent: 1, Revision: 4,
	}
	head := checkpoint.Head{
		Thread: "t1", LogID: "log-1", Graph: "g", Version: "v1", Run: "run-1", State: checkpoint.ThreadBusy,
		Revision: 7, FirstEvent: 1,
	}
	return &fakeEngine{
		head: head, run: run, logGrown: make(chan struct{}),
		started: &runtime.Started{Run: run, Head: head},
	}
}

func (e *fakeEngine) recordRequest(req any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, req)
	if e.panics {
		panic("the runtime is broken")
	}
	return e.err
}

// lastRequest returns the newest request.
func (e *fakeEngine) lastRequest(t *testing.T) any {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.NotEmpty(t, e.requests)
	return e.requests[len(e.requests)-1]
}

// appendEvents appends events to the log and shows them to followers.
func (e *fakeEngine) appendEvents(events ...checkpoint.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range events {
		if !ev.Ephemeral {
			e.head.LastEvent++
		}
		ev.Seq = e.head.LastEvent
		if ev.Run == "" {
			ev.Run = e.run.ID
		}
		if ev.Run == e.run.ID {
			e.run.LastEvent = ev.Seq
			if ev.Kind == checkpoint.EventRunState {
				e.run.State = ev.State
			}
		}
		e.log = append(e.log, ev)
	}
	close(e.logGrown)
	e.logGrown = make(chan struct{})
}

func (e *fakeEngine) Start(_ context.Context, req runtime.StartRequest) (*runtime.Started, error) {
	return e.started, e.recordRequest(req)
}

func (e *fakeEngine) Resume(_ context.Context, req runtime.ResumeRequest) (*runtime.Started, error) {
	if req.OnQuestion != nil { // it belongs to the call
		req.OnQuestion("", nil)
		for i := range req.Responses {
			req.OnQuestion(req.Responses[i].Interrupt, nil)
		}
		req.OnQuestion = nil
	}
	return e.started, e.recordRequest(req)
}

func (e *fakeEngine) Cancel(_ context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	req.Memory = nil // it belongs to the call
	return e.run, e.recordRequest(req)
}

func (e *fakeEngine) Run(context.Context, *runtime.CallMemory, string, string) (checkpoint.Run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.run, e.err
}

type runsQuery struct {
	Thread string
	Before uint64
	Limit  int
}

func (e *fakeEngine) Runs(_ context.Context, _ *runtime.CallMemory, thread string, before uint64, limit, _ int) ([]checkpoint.Run, bool, error) {
	err := e.recordRequest(runsQuery{thread, before, limit})
	return e.runs[:min(limit, len(e.runs))], len(e.runs) > limit, err
}

func (e *fakeEngine) WaitRun(ctx context.Context, _, _ string) (checkpoint.Run, error) {
	for {
		e.mu.Lock()
		run, grown := e.run, e.logGrown
		e.mu.Unlock()
		if runtime.IsStopped(run.State) {
			return run, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return run, context.Cause(ctx)
		}
	}
}

func (e *fakeEngine) Thread(context.Context, string) (checkpoint.Head, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head, e.err
}

func (e *fakeEngine) Threads(_ context.Context, _ *runtime.CallMemory, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	err := e.recordRequest(q)
	return e.heads[:min(q.Limit, len(e.heads))], err
}

func (e *fakeEngine) SkipThreads(_ context.Context, q checkpoint.ThreadQuery, n int) (at checkpoint.ThreadPosition, err error) {
	if err := e.recordRequest(q); err != nil || n > len(e.heads) {
		return at, err
	}
	return q.PositionOf(&e.heads[n-1]), nil
}

func (e *fakeEngine) CountThreads(_ context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	return min(atMost, len(e.heads)), e.recordRequest(q)
}

func (e *fakeEngine) CreateThread(_ context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	return e.head, e.recordRequest(req)
}

func (e *fakeEngine) UpdateThread(_ context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error) {
	return e.head, e.recordRequest(req)
}

func (e *fakeEngine) PruneThread(_ context.Context, req runtime.PruneRequest) (checkpoint.Head, error) {
	return e.head, e.recordRequest(req)
}

func (e *fakeEngine) CopyThread(_ context.Context, req runtime.CopyRequest) (checkpoint.Head, error) {
	return e.head, e.recordRequest(req)
}

func (e *fakeEngine) ForkThread(_ context.Context, req runtime.ForkRequest) (checkpoint.Head, error) {
	return e.head, e.recordRequest(req)
}

type deleteCall struct {
	Thread string
	Etag   uint64
	Force  bool
}

func (e *fakeEngine) DeleteThread(_ context.Context, thread string, etag uint64, force bool) error {
	return e.recordRequest(deleteCall{thread, etag, force})
}

func (e *fakeEngine) State(_ context.Context, req runtime.StateRequest) (runtime.Snapshot, error) {
	req.Memory = nil // it belongs to the call
	return e.state, e.recordRequest(req)
}

func (e *fakeEngine) States(_ context.Context, q runtime.HistoryQuery) ([]runtime.Snapshot, bool, error) {
	q.Memory = nil // it belongs to the call
	err := e.recordRequest(q)
	return e.states[:min(q.Limit, len(e.states))], len(e.states) > q.Limit, err
}

func (e *fakeEngine) UpdateState(_ context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error) {
	req.Memory = nil // it belongs to the call
	return e.state, e.recordRequest(req)
}

func (e *fakeEngine) BulkUpdateState(_ context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error) {
	req.Memory = nil // it belongs to the call
	return e.state, e.recordRequest(req)
}

func (e *fakeEngine) ValuesAt(context.Context, *runtime.CallMemory, string, string, string) (payload.JSON, error) {
	e.mu.Lock()
	e.stateReads++
	e.mu.Unlock()
	return e.values, e.err
}

func (e *fakeEngine) InputAt(context.Context, *runtime.CallMemory, string, string, string, string) (payload.JSON, error) {
	return e.values, e.err
}

// OutputOfWaiting returns e.values.
func (e *fakeEngine) OutputOfWaiting(context.Context, *runtime.CallMemory, *checkpoint.Run) (payload.JSON, error) {
	return e.values, e.err
}

// OpenInterrupts returns the open interrupts among e.interrupts.
func (e *fakeEngine) OpenInterrupts(
	ctx context.Context, memory *runtime.CallMemory, thread string, most int,
) ([]checkpoint.Interrupt, bool, error) {
	open, err := e.Interrupts(ctx, memory, checkpoint.InterruptQuery{
		Thread: thread, Limit: most, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	return open, !e.hasLargeInterrupts, err
}

// OpenInterruptIDs returns the ids of open interrupts in the order of e.asks.
func (e *fakeEngine) OpenInterruptIDs(ctx context.Context, thread string, most int) ([]string, error) {
	open, err := e.Interrupts(ctx, nil, checkpoint.InterruptQuery{
		Thread: thread, Limit: most, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	var ids []string
	for i := range open {
		ids = append(ids, open[i].ID)
	}
	return ids, err
}

// CurrentTime is ahead of the clock of the process.
func (e *fakeEngine) CurrentTime() time.Time { return time.Now().Add(e.ahead) }

// LatestInterruptChange returns the greatest change of e.interrupts.
func (e *fakeEngine) LatestInterruptChange(context.Context) (latest uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.interrupts {
		latest = max(latest, e.interrupts[i].Change)
	}
	return latest, e.err
}

// ReadQuestionStatistics returns e.questions.
func (e *fakeEngine) ReadQuestionStatistics(q runtime.StatisticsQuery) runtime.QuestionStatistics {
	_ = e.recordRequest(q)
	return e.questions
}

// ReadAnswerStatistics returns e.answers.
func (e *fakeEngine) ReadAnswerStatistics(owner, graph, node string) runtime.AnswerStatistics {
	_ = e.recordRequest([3]string{owner, graph, node})
	return e.answers
}

// CountInterrupts counts e.interrupts.
func (e *fakeEngine) CountInterrupts(_ context.Context, _ string, tags []string) ([]int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := make([]int, len(tags))
	for i := range e.interrupts {
		own := e.interrupts[i].Tags()
		for k, tag := range tags {
			if slices.Contains(own, tag) || tag == checkpoint.OpenTag && len(own) > 0 {
				counts[k]++
			}
		}
	}
	return counts, e.err
}

func (e *fakeEngine) Interrupts(_ context.Context, _ *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	if err := e.recordRequest(q); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []checkpoint.Interrupt
	past := q.After.ID == ""
	for _, i := range e.interrupts {
		switch {
		case q.ByChange && i.Change <= q.After.Change:
		case !past:
			past = i.ID == q.After.ID
		case len(q.States) > 0 && q.States[0] != i.State:
		case len(found) < q.Limit:
			found = append(found, i)
		}
	}
	return found, nil
}

func (e *fakeEngine) Interrupt(_ context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if err := e.recordRequest([2]string{thread, id}); err != nil {
		return checkpoint.Interrupt{}, err
	}
	return e.interrupts[0], nil
}

func (e *fakeEngine) UpdateInterrupt(_ context.Context, c runtime.UpdateInterruptRequest) (checkpoint.Interrupt, error) {
	return e.changeInterrupt(c)
}

// AllowedActions lets a caller named ana answer what is open.
func (e *fakeEngine) AllowedActions(q *checkpoint.Interrupt, by runtime.Actor, _ bool) runtime.QuestionActions {
	if by.Name == "ana" && q.State == checkpoint.InterruptOpen {
		return runtime.ActionAnswer | runtime.ActionComment
	}
	return 0
}

func (e *fakeEngine) ClaimInterrupt(_ context.Context, c runtime.ClaimRequest) (checkpoint.Interrupt, error) {
	return e.changeInterrupt(c)
}

func (e *fakeEngine) CheckResponses(_ context.Context, c runtime.ResumeRequest) ([]runtime.CheckedResponse, error) {
	return []runtime.CheckedResponse{{Interrupt: "i1", MissingVotes: 2, Undo: time.Minute}}, e.recordRequest(c)
}

func (e *fakeEngine) DelegateInterrupt(_ context.Context, c runtime.DelegateRequest) (checkpoint.Interrupt, error) {
	return e.changeInterrupt(c)
}

func (e *fakeEngine) RevealInterrupt(_ context.Context, c runtime.RevealRequest) (runtime.Revealed, error) {
	_, err := e.changeInterrupt(c)
	return runtime.Revealed{Value: `"4111"`}, err
}

func (e *fakeEngine) RetractResponse(_ context.Context, c runtime.RetractRequest) (checkpoint.Interrupt, error) {
	return e.changeInterrupt(c)
}

func (e *fakeEngine) ReleaseInterrupt(_ context.Context, c runtime.ReleaseRequest) (checkpoint.Interrupt, error) {
	return e.changeInterrupt(c)
}

func (e *fakeEngine) changeInterrupt(request any) (checkpoint.Interrupt, error) {
	if err := e.recordRequest(request); err != nil {
		return checkpoint.Interrupt{}, err
	}
	return e.interrupts[0], nil
}

func (e *fakeEngine) CommentInterrupt(_ context.Context, c runtime.CommentRequest) (trail.Entry, error) {
	return trail.Entry{Number: 2, Kind: trail.Commented, Note: c.Text}, e.recordRequest(c)
}

func (e *fakeEngine) ListTrail(_ context.Context, question runtime.Question) ([]trail.Entry, error) {
	return e.trail, e.recordRequest(question)
}

// fakeFollower reads the log of an engine.
type fakeFollower struct {
	engine   *fakeEngine
	position int // entries of the log that were handed out
}

func (e *fakeEngine) followThread(req runtime.FollowRequest) stream.Follower {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &fakeFollower{engine: e}
	for f.position < len(e.log) && e.log[f.position].Seq <= req.After {
		f.position++
	}
	return f
}

func (f *fakeFollower) CheckCursor(context.Context) error { return nil }

func (f *fakeFollower) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		f.engine.mu.Lock()
		events, grown := f.engine.log[f.position:], f.engine.logGrown
		f.engine.mu.Unlock()
		f.position += len(events)
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *fakeFollower) Rewind(after uint64, _ uint32) {
	f.engine.mu.Lock()
	defer f.engine.mu.Unlock()
	for f.position > 0 && f.engine.log[f.position-1].Seq > after {
		f.position--
	}
}

func (*fakeFollower) RecentEphemeral() []checkpoint.Event { return nil }

func (*fakeFollower) Close() {}

func (f *fakeFollower) IsShared() bool { return f.engine.isShared }

// fakeInterruptFollower reads the changed interrupts of an engine.
type fakeInterruptFollower struct {
	engine     *fakeEngine
	tenant     string
	lastChange uint64
}

func (e *fakeEngine) followInterrupts(_ *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
	return &fakeInterruptFollower{engine: e, tenant: q.Tenant, lastChange: after}
}

// pointTo returns pointers to interrupts.
func pointTo(list []checkpoint.Interrupt) (all []*checkpoint.Interrupt) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

func (f *fakeInterruptFollower) Next(ctx context.Context) ([]*checkpoint.Interrupt, error) {
	for {
		f.engine.mu.Lock()
		grown := f.engine.logGrown
		f.engine.mu.Unlock()
		found, err := f.engine.Interrupts(ctx, nil, checkpoint.InterruptQuery{
			Tenant: f.tenant, ByChange: true, After: checkpoint.InterruptPosition{Change: f.lastChange}, Limit: 100,
		})
		if err != nil || len(found) > 0 {
			if len(found) > 0 {
				f.lastChange = found[len(found)-1].Change
			}
			return pointTo(found), err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *fakeInterruptFollower) After() uint64 { return f.lastChange }

func (*fakeInterruptFollower) Close() {}

// fakeRegistry is a registry with fixed content.
type fakeRegistry struct {
	entries []runtime.GraphEntry
	lastPut runtime.PutGraphRequest
	err     error
}

func (r *fakeRegistry) ListGraphs(_ context.Context, _, after string, limit int) (list []runtime.GraphEntry, more bool, err error) {
	for _, e := range r.entries {
		if after != "" && e.Graph.Name <= after {
			continue
		}
		if len(list) == limit {
			return list, true, r.err
		}
		list = append(list, e)
	}
	return list, false, r.err
}

func (r *fakeRegistry) GetGraph(context.Context, string, string) (runtime.GraphEntry, error) {
	if r.err != nil {
		return runtime.GraphEntry{}, r.err
	}
	return r.entries[0], nil
}

func (r *fakeRegistry) DeleteGraph(_ context.Context, d runtime.DeleteGraphRequest) ([]string, error) {
	return []string{d.Name, d.Version, fmt.Sprint(d.Force)}, r.err
}

func (*fakeRegistry) ParseGraph(put runtime.PutGraphRequest) (*graph.Spec, error) {
	return put.Spec, nil
}

func (r *fakeRegistry) PutGraph(_ context.Context, put runtime.PutGraphRequest) (runtime.GraphEntry, error) {
	r.lastPut = put
	if r.err != nil {
		return runtime.GraphEntry{}, r.err
	}
	return r.entries[0], nil
}

// testClient has a client of each service.
type testClient struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient

	conn   *grpc.ClientConn
	server *transport.Server
}

// startServer runs a server around an engine until the test ends.
func startServer(t *testing.T, e *fakeEngine, change ...func(*transport.Options)) testClient {
	t.Helper()
	o := transport.Options{
		Engine: e, Follow: e.followThread, FollowInterrupts: e.followInterrupts, Registry: &fakeRegistry{}, Assistants: &fakeAssistants{}, Items: &fakeItems{}, RunWebhooks: &fakeRunWebhooks{}, Crons: &fakeCrons{},
		Info: transport.Info{Version: "v1.2.3", Store: "memory"},
	}
	for _, c := range change {
		c(&o)
	}
	s, err := transport.NewServer(o)
	require.NoError(t, err)
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	return testClient{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn),
		graphdv1.NewInterruptServiceClient(conn), graphdv1.NewRegistryServiceClient(conn), conn, s,
	}
}

func newJSONPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
