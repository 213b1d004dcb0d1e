package transport_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// engine is a runtime that answers what the test put into it and remembers what
// it was asked.
type engine struct {
	mu      sync.Mutex
	asked   []any // every request, in order
	err     error // answers every call, when set
	panics  bool
	head    checkpoint.Head
	heads   []checkpoint.Head
	run     checkpoint.Run
	runs    []checkpoint.Run
	started runtime.Started
	state   runtime.Snapshot
	states  []runtime.Snapshot
	values  payload.JSON
	asks    []checkpoint.Interrupt
	log     []checkpoint.Event
	grown   chan struct{} // closed when the log grows
	crowd   bool          // others follow the thread too
	shown   int           // how often a state was looked up for an event
}

func newEngine() *engine {
	run := checkpoint.Run{
		ID: "run-1", Thread: "t1", Graph: "g", Version: "v1", State: checkpoint.RunRunning, FirstEvent: 1, Revision: 4,
	}
	head := checkpoint.Head{
		Thread: "t1", LogID: "log-1", Graph: "g", Version: "v1", Run: "run-1", State: checkpoint.ThreadBusy,
		Revision: 7, FirstEvent: 1,
	}
	return &engine{
		head: head, run: run, grown: make(chan struct{}),
		started: runtime.Started{Run: run, Head: head},
	}
}

func (e *engine) ask(req any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, req)
	if e.panics {
		panic("the runtime is broken")
	}
	return e.err
}

// last returns the newest request.
func (e *engine) last(t *testing.T) any {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.NotEmpty(t, e.asked)
	return e.asked[len(e.asked)-1]
}

// happen appends events to the log and shows them to followers.
func (e *engine) happen(events ...checkpoint.Event) {
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
	close(e.grown)
	e.grown = make(chan struct{})
}

func (e *engine) Start(_ context.Context, req runtime.StartRequest) (runtime.Started, error) {
	return e.started, e.ask(req)
}

func (e *engine) Resume(_ context.Context, req runtime.ResumeRequest) (runtime.Started, error) {
	return e.started, e.ask(req)
}

func (e *engine) Cancel(_ context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	return e.run, e.ask(req)
}

func (e *engine) Run(context.Context, string, string) (checkpoint.Run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.run, e.err
}

type runsQuery struct {
	Thread string
	Before uint64
	Limit  int
}

func (e *engine) Runs(_ context.Context, thread string, before uint64, limit, _ int) ([]checkpoint.Run, bool, error) {
	err := e.ask(runsQuery{thread, before, limit})
	return e.runs[:min(limit, len(e.runs))], len(e.runs) > limit, err
}

func (e *engine) WaitRun(ctx context.Context, _, _ string) (checkpoint.Run, error) {
	for {
		e.mu.Lock()
		run, grown := e.run, e.grown
		e.mu.Unlock()
		if runtime.Stopped(run.State) {
			return run, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return run, context.Cause(ctx)
		}
	}
}

func (e *engine) Thread(context.Context, string) (checkpoint.Head, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head, e.err
}

func (e *engine) Threads(_ context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	err := e.ask(q)
	return e.heads[:min(q.Limit, len(e.heads))], err
}

func (e *engine) CreateThread(_ context.Context, req runtime.NewThread) (checkpoint.Head, error) {
	return e.head, e.ask(req)
}

func (e *engine) UpdateThread(_ context.Context, req runtime.ThreadChange) (checkpoint.Head, error) {
	return e.head, e.ask(req)
}

func (e *engine) PruneThread(_ context.Context, req runtime.PruneRequest) (checkpoint.Head, error) {
	return e.head, e.ask(req)
}

func (e *engine) CopyThread(_ context.Context, req runtime.CopyRequest) (checkpoint.Head, error) {
	return e.head, e.ask(req)
}

func (e *engine) ForkThread(_ context.Context, req runtime.ForkRequest) (checkpoint.Head, error) {
	return e.head, e.ask(req)
}

type removal struct {
	Thread string
	Etag   uint64
	Force  bool
}

func (e *engine) DeleteThread(_ context.Context, thread string, etag uint64, force bool) error {
	return e.ask(removal{thread, etag, force})
}

func (e *engine) State(_ context.Context, req runtime.StateRequest) (runtime.Snapshot, error) {
	return e.state, e.ask(req)
}

func (e *engine) States(_ context.Context, q runtime.HistoryQuery) ([]runtime.Snapshot, bool, error) {
	err := e.ask(q)
	return e.states[:min(q.Limit, len(e.states))], len(e.states) > q.Limit, err
}

func (e *engine) UpdateState(_ context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error) {
	return e.state, e.ask(req)
}

func (e *engine) BulkUpdateState(_ context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error) {
	return e.state, e.ask(req)
}

func (e *engine) StateAt(context.Context, string, string, string) (payload.JSON, error) {
	e.mu.Lock()
	e.shown++
	e.mu.Unlock()
	return e.values, e.err
}

func (e *engine) InputAt(context.Context, string, string, string, string) (payload.JSON, error) {
	return e.values, e.err
}

// Interrupts pages like a store: by creation in the order of e.asks, or by
// change.
func (e *engine) OpenInterruptIDs(ctx context.Context, thread, run string, most int) ([]string, error) {
	open, err := e.Interrupts(ctx, checkpoint.InterruptQuery{
		Thread: thread, Run: run, Limit: most, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	var ids []string
	for i := range open {
		ids = append(ids, open[i].ID)
	}
	return ids, err
}

func (e *engine) Interrupts(_ context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	if err := e.ask(q); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []checkpoint.Interrupt
	past := q.After.ID == ""
	for _, i := range e.asks {
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

func (e *engine) Interrupt(_ context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if err := e.ask([2]string{thread, id}); err != nil {
		return checkpoint.Interrupt{}, err
	}
	return e.asks[0], nil
}

func (e *engine) UpdateInterrupt(_ context.Context, c runtime.InterruptChange) (checkpoint.Interrupt, error) {
	if err := e.ask(c); err != nil {
		return checkpoint.Interrupt{}, err
	}
	return e.asks[0], nil
}

// follower reads the log of an engine.
type follower struct {
	e     *engine
	after int // entries of the log that were handed out
}

func (e *engine) follow(req runtime.FollowRequest) transport.Follower {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &follower{e: e}
	for f.after < len(e.log) && e.log[f.after].Seq <= req.After {
		f.after++
	}
	return f
}

func (f *follower) Check(context.Context) error { return nil }

func (f *follower) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		f.e.mu.Lock()
		events, grown := f.e.log[f.after:], f.e.grown
		f.e.mu.Unlock()
		f.after += len(events)
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

func (f *follower) Unread(after uint64, _ uint32) {
	f.e.mu.Lock()
	defer f.e.mu.Unlock()
	for f.after > 0 && f.e.log[f.after-1].Seq > after {
		f.after--
	}
}

func (*follower) Close() {}

func (f *follower) Crowded() bool { return f.e.crowd }

// inboxFollower reads the changed questions of an engine.
type inboxFollower struct {
	e     *engine
	after uint64
}

func (e *engine) followInbox(_ checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
	return &inboxFollower{e: e, after: after}
}

func (f *inboxFollower) Next(ctx context.Context) ([]checkpoint.Interrupt, error) {
	for {
		f.e.mu.Lock()
		grown := f.e.grown
		f.e.mu.Unlock()
		found, err := f.e.Interrupts(ctx, checkpoint.InterruptQuery{
			ByChange: true, After: checkpoint.InterruptPosition{Change: f.after}, Limit: 100,
		})
		if err != nil || len(found) > 0 {
			if len(found) > 0 {
				f.after = found[len(found)-1].Change
			}
			return found, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (*inboxFollower) Close() {}

// registry is a registry with fixed content.
type registry struct {
	entries []runtime.GraphEntry
	put     runtime.GraphPut
	err     error
}

func (r *registry) ListGraphs(_ context.Context, after string, limit int) (list []runtime.GraphEntry, more bool, err error) {
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

func (r *registry) GetGraph(context.Context, string, string) (runtime.GraphEntry, error) {
	if r.err != nil {
		return runtime.GraphEntry{}, r.err
	}
	return r.entries[0], nil
}

func (r *registry) DeleteGraph(_ context.Context, name, version string, force bool) ([]string, error) {
	return []string{name, version, fmt.Sprint(force)}, r.err
}

func (r *registry) PutGraph(_ context.Context, put runtime.GraphPut) (runtime.GraphEntry, error) {
	r.put = put
	if r.err != nil {
		return runtime.GraphEntry{}, r.err
	}
	return r.entries[0], nil
}

// client is everything a test calls.
type client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient

	conn   *grpc.ClientConn
	server *transport.Server
}

// serve runs a server around an engine until the test ends.
func serve(t *testing.T, e *engine, change ...func(*transport.Options)) client {
	t.Helper()
	o := transport.Options{
		Engine: e, Follow: e.follow, FollowInterrupts: e.followInbox, Registry: &registry{},
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
	return client{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn),
		graphdv1.NewInterruptServiceClient(conn), graphdv1.NewRegistryServiceClient(conn), conn, s,
	}
}

func jsonPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
