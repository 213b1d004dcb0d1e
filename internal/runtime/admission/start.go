package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// StartRun begins a run, or queues it, or attaches to the run that the same request
// began before. It returns when the run is durable. The errors are *Error:
// THREAD_NOT_FOUND, GRAPH_NOT_FOUND, THREAD_BUSY, THREAD_INTERRUPTED, THREAD_QUEUE_FULL,
// TOO_MANY_RUNS, QUOTA_EXCEEDED, SERVER_DRAINING, CHECKPOINT_CONFLICT, RUN_EXISTS,
// REQUEST_ID_CONFLICT, INVALID_FIELD, INPUT_SCHEMA_MISMATCH and those of the store.
func (a *Admitter) StartRun(ctx context.Context, req runtime.StartRequest) (*runtime.Started, error) {
	call := &startCall{opts: &a.opts, predictor: &a.predictor, req: req}
	if req.Thread == "" {
		call.req.Thread, call.req.CreateThread = threads.NewThreadID(req.Tenant, req.RequestID), true
		call.isNewThread = req.RequestID == "" // no other run has this id
	}
	started, isDone, err := a.opts.tryOnRecentView(ctx, call.req.Thread, req.RequestID, func(recent *checkpoint.ThreadView) (*runtime.Started, error) {
		call.recent = recent
		defer func() { call.recent = nil }()
		return call.tryStart(ctx, new(checkpoint.Head))
	})
	if !isDone {
		started, isDone, err = call.tryOptimisticCreate(ctx)
	}
	if isDone {
		return started, err
	}
	return commit.RetryOnConflict(ctx, a.opts.Committer, func(head *checkpoint.Head) (*runtime.Started, error) { return call.tryStart(ctx, head) })
}

// startCall decides about one request that starts a run.
type startCall struct {
	opts        *Options
	predictor   *createPredictor
	req         runtime.StartRequest
	isNewThread bool // there can't be such a thread yet
	// recent is a view that may be outdated, nil = the store is read.
	recent *checkpoint.ThreadView
}

// tryStart makes one attempt; ErrConflict says that the thread changed meanwhile.
func (s *startCall) tryStart(ctx context.Context, head *checkpoint.Head) (*runtime.Started, error) {
	view, err := s.readHead(ctx, head)
	if err != nil {
		return nil, err
	}
	if err := runtime.CheckOnlyGraph(head, s.req.OnlyGraph); err != nil {
		return nil, err
	}
	reader := s.opts.Reader
	if head.State != checkpoint.ThreadBusy && len(head.Queue) == 0 { // later reads belong to this head
		reader = reader.WithView(view)
	}
	if known, ok, err := s.findEarlierRun(ctx, reader, head); ok || err != nil {
		return known, err
	}
	g, err := s.pinGraph(head)
	if err != nil {
		return nil, err
	}
	if err := s.checkRequest(ctx, g); err != nil {
		return nil, err
	}
	if err := runtime.CheckExpected(head, s.req.Request.Expected); err != nil {
		return nil, err
	}
	done, err := s.addHoldings(ctx, head)
	if err != nil {
		return nil, err
	}
	started, err := s.beginOrEnqueue(ctx, reader, head, g)
	done(err == nil)
	return started, err
}

// addHoldings refuses the run where the tenant holds as much as it may. done is called with
// whether the run was stored.
func (s *startCall) addHoldings(ctx context.Context, head *checkpoint.Head) (done func(isStored bool), err error) {
	if head.Open == 0 || s.req.Open != runtime.DiscardOpen { // else it leaves fewer questions
		if err := s.opts.Holdings.CheckQuestions(ctx, head.Thread); err != nil {
			return nil, err
		}
	}
	if head.Revision > 0 {
		return func(bool) {}, nil
	}
	return s.opts.Holdings.AddThread(ctx, head.Thread)
}

// beginOrEnqueue begins the run or queues it, as the policies of the request say.
func (s *startCall) beginOrEnqueue(ctx context.Context, reader *query.Reader, head *checkpoint.Head, g *graph.Graph) (*runtime.Started, error) {
	waits := head.State == checkpoint.ThreadInterrupted
	switch {
	case s.req.Request.Delay > 0:
		return s.storeLaterRun(ctx, head, g)
	case head.State == checkpoint.ThreadBusy, !waits && len(head.Queue) > 0: // the next run is about to begin
		return s.admitToBusyThread(ctx, head, g)
	case waits && s.req.Open == runtime.EnqueueOpen:
		return s.enqueueRun(ctx, head, g, false)
	case s.dropsInterrupts(head) && s.req.Open != runtime.DiscardOpen:
		return nil, threadInterruptedError(ctx, reader, head)
	}
	return s.beginNow(ctx, reader, head, g)
}

// dropsInterrupts reports whether the run would leave interrupts behind that a
// person may still answer. A run that goes on after a failure keeps them.
func (s *startCall) dropsInterrupts(head *checkpoint.Head) bool {
	if head.State == checkpoint.ThreadInterrupted {
		return true
	}
	return head.Open > 0 && (s.req.Request.Input != "" || s.req.Request.From != "")
}

// readHead reads the head of the thread, with a view of the thread if the store has
// views, or drafts the head of a new thread. It reads nothing when a recent view is tried.
func (s *startCall) readHead(ctx context.Context, head *checkpoint.Head) (*commit.ThreadView, error) {
	if s.recent != nil {
		*head = s.recent.Head
		return s.opts.Views.WithSnapshot(s.recent), nil
	}
	if s.isNewThread && s.req.Graph != "" {
		s.isNewThread = false
		*head = s.opts.Heads.NewHead(s.req.Thread)
		return nil, nil
	}
	view, err := s.opts.Views.ViewThread(ctx, s.req.Thread, s.req.RequestID, head)
	if s.req.CreateThread && (err == nil || errors.Is(err, checkpoint.ErrThreadNotFound)) {
		s.predictor.recordCreate(err != nil)
	}
	switch {
	case err == nil:
		return view, nil
	case !errors.Is(err, checkpoint.ErrThreadNotFound):
		return nil, runtime.TranslateStoreError(err)
	case !s.req.CreateThread:
		return nil, runtime.ThreadNotFoundError(s.req.Thread)
	case s.req.Graph == "":
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "a new thread needs a graph").WithViolation("run.graph", "must be set for a new thread")
	}
	*head = s.opts.Heads.NewHead(s.req.Thread)
	return nil, nil
}

// findEarlierRun finds the run that the same request, or the same run id, began before.
func (s *startCall) findEarlierRun(ctx context.Context, reader *query.Reader, head *checkpoint.Head) (*runtime.Started, bool, error) {
	if head.Revision == 0 {
		return nil, false, nil
	}
	run := s.req.Run
	if s.req.RequestID != "" {
		old, err := reader.FindRequest(ctx, head.Thread, s.req.RequestID, s.req.Digest)
		if err != nil {
			return nil, false, err
		}
		if old != nil {
			started, err := attachRun(ctx, reader, head, old.Run, old.Event)
			return started, true, err
		}
	}
	if run == "" {
		return nil, false, nil
	}
	old, err := reader.StoredRun(ctx, head.Thread, run)
	switch {
	case errors.Is(err, checkpoint.ErrRunNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, runtime.TranslateStoreError(err)
	case !isSameStart(old.Request, s.req.Request):
		return nil, false, runtime.Errorf(runtime.ReasonRunExists, "run %q exists with another input", run).With("runId", run)
	}
	return &runtime.Started{Run: old, Head: *head, After: runtime.CursorBefore(old.FirstEvent), IsAttached: true}, true, nil
}

func isSameStart(a, b checkpoint.RunRequest) bool {
	return a.Input == b.Input && a.From == b.From && a.Update == b.Update && a.Delay == b.Delay && slices.Equal(a.Goto, b.Goto)
}

// attachRun answers a repeated call with the run of the first call. The events of the
// run follow the given event.
func attachRun(ctx context.Context, reader *query.Reader, head *checkpoint.Head, run string, after uint64) (*runtime.Started, error) {
	r, err := reader.StoredRun(ctx, head.Thread, run)
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	return &runtime.Started{Run: r, Head: *head, After: after, IsAttached: true}, nil
}

// pinGraph pins the thread to a graph, or checks that the thread has this graph.
func (s *startCall) pinGraph(head *checkpoint.Head) (*graph.Graph, error) {
	name, version := s.req.Graph, s.req.Version
	if head.Graph != "" {
		if name != "" && name != head.Graph {
			has := tenant.ClientName(head.Graph)
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "thread %q runs graph %q, not %q",
				tenant.ClientName(head.Thread), has, tenant.ClientName(name)).
				WithViolation("run.graph", "must be %q for this thread", has).With("graph", has)
		}
		name = head.Graph
		if version == "" {
			version = head.Version
		}
	}
	g, err := s.findVersion(head, name, version)
	if err != nil {
		return nil, err
	}
	head.Graph, head.Version = g.Name, g.Version
	return g, nil
}

// findVersion finds a version of a graph, or chooses one for a thread that has no graph
// yet.
func (s *startCall) findVersion(head *checkpoint.Head, name, version string) (*graph.Graph, error) {
	if head.Graph == "" && version == "" {
		return s.opts.Versions.ChooseVersion(name)
	}
	return s.opts.Reader.FindGraph(name, version)
}

// checkRequest refuses a request that can't be carried out, before anything is begun.
func (s *startCall) checkRequest(ctx context.Context, g *graph.Graph) error {
	r := &s.req.Request
	for _, list := range [][]string{r.InterruptBefore, r.InterruptAfter} {
		for _, n := range list {
			if _, ok := g.Node(n); !ok && n != graph.AllNodes {
				return runtime.NodeNotFoundError(g, n)
			}
		}
	}
	for _, to := range r.Goto {
		if _, ok := g.Node(to.Node); !ok && to.Node != graph.End {
			return runtime.NodeNotFoundError(g, to.Node)
		}
	}
	if r.StepLimit < 0 {
		return runtime.Errorf(runtime.ReasonInvalidField, "the step limit must be positive").WithViolation("run.step_limit", "must be at least 1")
	}
	if r.Input != "" {
		if err := checkSchema(ctx, s.opts.Schemas, g.Spec.InputSchema, r.Input, runtime.ReasonInputSchemaMismatch, "run.input"); err != nil {
			return err
		}
	}
	if r.Context == "" && r.Input == "" {
		return nil // going on: the context of the run before was checked
	}
	return checkSchema(ctx, s.opts.Schemas, g.Spec.ContextSchema, r.Context, runtime.ReasonInputSchemaMismatch, "run.context")
}

// newRun drafts the record of the new run.
func (s *startCall) newRun(t *commit.Tx, g *graph.Graph, state checkpoint.RunState) *checkpoint.Run {
	id := s.req.Run
	if id == "" {
		id = newRunID(t, s.req.RequestID)
	}
	run := &checkpoint.Run{
		ID: id, Thread: t.Thread, Graph: g.Name, Version: g.Version, State: state,
		Metadata: s.req.Metadata, StartedBy: s.req.By.Name, Created: t.Now, Updated: t.Now, Order: t.Head.LastEvent + 1,
		Request: s.req.Request, Base: t.Head.Checkpoint,
	}
	run.Request.DiscardOpen = s.req.Open == runtime.DiscardOpen
	begins := t.Now
	if delay := s.req.Request.Delay; delay > 0 {
		begins = t.Now.Add(delay)
		run.Begins = begins
	}
	if limit := s.req.Request.Timeout; limit > 0 {
		run.Deadline = begins.Add(limit)
	}
	return run
}

// labelThread gives the thread the labels of the request.
func (s *startCall) labelThread(t *commit.Tx) error {
	if len(s.req.ThreadMetadata) == 0 {
		return nil
	}
	labels, err := runtime.ChangeLabels("run.thread_metadata", t.Head.Metadata, s.req.ThreadMetadata, nil, false)
	if err == nil {
		t.Head.Metadata = labels
	}
	return err
}

// newRunID makes a run id. The same request makes the same id again.
func newRunID(t *commit.Tx, request string) string {
	if request != "" {
		return threads.NewID("run\x00" + t.Thread + "\x00" + request)
	}
	return uuid.Must(uuid.NewV7()).String()
}

func (s *startCall) recordRequest(t *commit.Tx, run string) {
	t.RecordRequest(s.req.RequestID, s.req.Digest, run)
}

// beginNow starts the run now: where there is room here, in the same change that
// admits it.
func (s *startCall) beginNow(ctx context.Context, reader *query.Reader, head *checkpoint.Head, g *graph.Graph) (*runtime.Started, error) {
	var run *checkpoint.Run
	next, err := s.opts.Owner.Take(ctx, head, runtime.ReadWaitTimeout, func(ctx context.Context, c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		state, err := reader.LoadState(ctx, c.Thread().Reservation, head, g)
		if err != nil {
			return nil, err
		}
		if err := s.labelThread(t); err != nil {
			return nil, err
		}
		run = s.newRun(t, g, checkpoint.RunRunning)
		l := superstep.NewRootLoop(s.opts.Env, c.Thread(), run, state)
		if err := superstep.BeginRun(ctx, reader, t, l); err != nil {
			return nil, err
		}
		s.recordRequest(t, run.ID)
		err = c.PutLeaseOrHandOff(t, l)
		if err == nil {
			s.req.OnStart.NotifyStart(head.Thread, runtime.CursorBefore(run.FirstEvent))
		}
		return l, err
	})
	switch {
	case errors.Is(err, capacity.ErrNoCapacity):
		return s.enqueueWithoutCapacity(ctx, head, g, err)
	case errors.Is(err, ownership.ErrDraining):
		return nil, runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
	case errors.Is(err, ownership.ErrThreadHeld):
		return nil, s.opts.Changer.WaitUntilSettled(ctx, head.Thread)
	case err != nil:
		return nil, err
	}
	s.opts.Observer.RunStarted(run.Graph)
	return &runtime.Started{Run: *run, Head: *next, After: runtime.CursorBefore(run.FirstEvent)}, nil
}

// enqueueWithoutCapacity decides about a run that would have to be driven while the server
// drives as many as it may: it waits in the queue of its thread where the caller
// has agreed to that, and is refused otherwise.
func (s *startCall) enqueueWithoutCapacity(ctx context.Context, head *checkpoint.Head, g *graph.Graph, lack error) (*runtime.Started, error) {
	if s.req.Concurrency != runtime.EnqueueBusy || head.State == checkpoint.ThreadInterrupted {
		return nil, s.opts.Capacity.RefusalError(lack)
	}
	st, err := s.enqueueRun(ctx, head, g, false)
	if err == nil {
		s.opts.Capacity.EnqueueThread(head.Thread, commit.NextRun(&st.Head), lack)
	}
	return st, err
}

// threadInterruptedError refuses a call on a thread that waits for people, and
// names the interrupts.
func threadInterruptedError(ctx context.Context, reader *query.Reader, head *checkpoint.Head) error {
	ids, err := reader.ListOpenIDs(ctx, head.Thread)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("the thread waits for %d answers; resume it", len(ids))
	switch {
	case len(ids) == 1:
		text = "the thread waits for 1 answer; resume it"
	case len(ids) == 0 && head.Retractable > 0:
		text = "an answer of the thread takes effect soon, and its run goes on then; wait for it"
	}
	return runtime.Errorf(runtime.ReasonThreadInterrupted, "%s, or choose an open-interrupts policy", text).
		WithIDs("openInterruptIds", ids).With("count", strconv.Itoa(len(ids)))
}
