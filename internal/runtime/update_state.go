package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Names that UpdateState takes for as_node besides the graph's nodes.
const (
	AsInput = "__input__" // the values are an input
	AsCopy  = "__copy__"  // a sibling with the same content
	AsEnd   = graph.End   // without values: whatever was left to do is dropped
)

// StateWrite is what one node is taken to have written.
type StateWrite struct {
	Values payload.JSON // "" = nothing
	AsNode string       // "" = the node that ran last, if there is no doubt
	Task   string       // the due task it stands for, "" = the node's next
	Goto   []checkpoint.Send
}

// BulkUpdateStateRequest writes several supersteps to a state, each of one or
// more nodes.
type BulkUpdateStateRequest struct {
	Thread     string
	Checkpoint string // "" = newest
	Namespace  string
	Supersteps [][]StateWrite
	Expected   string
	Supersede  bool // open questions may be dropped
	RequestID  string
	Digest     string
	By         string
}

// UpdateState makes a new checkpoint as if a node had written the values: its
// edges fire, what was pending before is given up. Work that siblings have
// finished is kept. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_INTERRUPTED, CHECKPOINT_NOT_FOUND, CHECKPOINT_CONFLICT,
// NODE_NOT_FOUND, AMBIGUOUS_NODE, INVALID_FIELD, REQUEST_ID_CONFLICT, and
// those of the store.
func (e *Engine) UpdateState(ctx context.Context, req UpdateStateRequest) (Snapshot, error) {
	return e.updateState(ctx, &stateUpdate{engine: e, req: BulkUpdateStateRequest{
		Thread: req.Thread, Checkpoint: req.Checkpoint, Namespace: req.Namespace,
		Supersteps: [][]StateWrite{{{Values: req.Values, AsNode: req.AsNode}}},
		Expected:   req.Expected, Supersede: req.Supersede,
		RequestID: req.RequestID, Digest: req.Digest, By: req.By,
	}})
}

// BulkUpdateState makes one checkpoint per superstep, all of them or none. The
// errors are those of UpdateState; their fields say which write they are about.
func (e *Engine) BulkUpdateState(ctx context.Context, req BulkUpdateStateRequest) (Snapshot, error) {
	return e.updateState(ctx, &stateUpdate{engine: e, req: req, bulk: true})
}

func (e *Engine) updateState(ctx context.Context, u *stateUpdate) (Snapshot, error) {
	if err := u.wellFormed(); err != nil {
		return Snapshot{}, err
	}
	return decide(ctx, e, func(seen *checkpoint.Head) (Snapshot, error) { return e.tryUpdateState(ctx, *u, seen) })
}

func (e *Engine) tryUpdateState(ctx context.Context, u stateUpdate, seen *checkpoint.Head) (Snapshot, error) {
	req := &u.req
	head, err := e.Thread(ctx, req.Thread)
	if err != nil {
		return Snapshot{}, err
	}
	*seen = head
	if req.RequestID != "" {
		old, err := e.request(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return Snapshot{}, err
		}
		if old != nil {
			return e.State(ctx, StateRequest{Thread: req.Thread, Namespace: req.Namespace})
		}
	}
	if err := e.updatable(ctx, &head, req); err != nil {
		return Snapshot{}, err
	}
	room := e.newLoad()
	defer room.end()
	state, err := e.stateInRoom(ctx, &room, loadPatience, &head, req.Namespace, req.Checkpoint)
	if err != nil {
		return Snapshot{}, err
	}
	if s := e.session(req.Thread); s != nil {
		return Snapshot{}, e.settling(ctx, req.Thread)
	}
	u.head, u.state = head, state
	if _, err := e.tryChange(ctx, head, func(t *tx) error { return u.build(ctx, t) }); err != nil {
		return Snapshot{}, err
	}
	*seen = checkpoint.Head{} // it is made: never again
	u.state = nil
	room.end()
	return e.stateWithin(ctx, StateRequest{Thread: req.Thread, Namespace: req.Namespace}, forever)
}

// wellFormed refuses a list of writes that means nothing.
func (u *stateUpdate) wellFormed() error {
	if len(u.req.Supersteps) == 0 {
		return Errorf(ReasonInvalidField, "there is nothing to write").InField("supersteps", "must have at least one superstep")
	}
	for i, writes := range u.req.Supersteps {
		if len(writes) == 0 {
			field := fmt.Sprintf("supersteps[%d].updates", i)
			return Errorf(ReasonInvalidField, "a superstep without updates").InField(field, "must have at least one update")
		}
		for at, w := range writes {
			switch {
			case len(writes) == 1:
			case w.AsNode == "":
				return Errorf(ReasonInvalidField, "it must be clear which node each of several updates is of").
					InField(u.field(i, at, "as_node"), "must be set when a superstep has several updates")
			case w.AsNode == AsInput, w.AsNode == AsCopy, w.AsNode == AsEnd:
				return Errorf(ReasonInvalidField, "an update as %s must be alone in its superstep", w.AsNode).
					InField(u.field(i, at, "as_node"), "must be a node when a superstep has several updates")
			}
		}
	}
	return nil
}

// field is where in the request a write, or a part of it, stands.
func (u *stateUpdate) field(superstep, at int, part string) string {
	if !u.bulk {
		return part
	}
	return fmt.Sprintf("supersteps[%d].updates[%d].%s", superstep, at, part)
}

// updatable refuses an update that would lose something.
func (e *Engine) updatable(ctx context.Context, head *checkpoint.Head, req *BulkUpdateStateRequest) error {
	if head.Graph == "" {
		return Errorf(ReasonInvalidField, "thread %q has no graph yet; create it with one, or run it first", head.Thread).
			InField("thread_id", "must name a thread that has a graph")
	}
	if err := atCheckpoint(head, req.Expected); err != nil {
		return err
	}
	if head.State == checkpoint.ThreadBusy {
		return Errorf(ReasonThreadBusy, "run %q of the thread is active", head.Run).With("activeRunId", head.Run)
	}
	if head.Open == 0 || req.Supersede {
		return nil
	}
	open, err := e.openInterrupts(ctx, head.Thread)
	if err != nil {
		return err
	}
	dropped := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !within(q.Namespace, req.Namespace)
	})
	if len(dropped) == 0 {
		return nil
	}
	what := "open questions; answer them"
	if len(dropped) == 1 {
		what = "open question; answer it"
	}
	return Errorf(ReasonThreadInterrupted, "an update would drop %d %s first, or set supersede_interrupts", len(dropped), what).
		With("openInterruptIds", joinIDs(idsOf(dropped))).With("count", itoa(len(dropped)))
}

// within reports whether a namespace is another one or lies below it; outer
// may leave the task ids out.
func within(ns, outer string) bool {
	if !strings.Contains(outer, ":") {
		ns = pregel.NodePath(ns)
	}
	return outer == "" || ns == outer || strings.HasPrefix(ns, outer+"|")
}

// stateUpdate is one update of a state.
type stateUpdate struct {
	engine *Engine
	req    BulkUpdateStateRequest
	bulk   bool // the request has lists of writes, and errors name their place
	head   checkpoint.Head
	state  *pregel.State
	l      *loop
}

func (u *stateUpdate) build(ctx context.Context, t *tx) error {
	state := u.state
	u.l = &loop{
		session: u.engine.bystander(t.Thread),
		run:     &checkpoint.Run{ID: u.head.Run, Graph: state.Graph().Name, Metadata: state.Checkpoint().Metadata},
		state:   state,
		level:   level{root: u.req.Namespace == "", stored: true, parents: state.Checkpoint().Parents},
	}
	for i, writes := range u.req.Supersteps {
		step := &stateStep{update: u, number: i, writes: writes, state: state}
		next, err := step.perform(ctx, t)
		if err != nil {
			return err
		}
		u.l.state, state = next, next
	}
	t.remember(u.req.RequestID, u.req.Digest, t.Head.Run)
	return u.afterwards(ctx, t)
}

// afterwards settles the thread: questions that the update made pointless are
// closed, and a failed thread is well again.
func (u *stateUpdate) afterwards(ctx context.Context, t *tx) error {
	if u.req.Namespace != "" {
		return u.engine.void(ctx, t, u.state.Namespace())
	}
	if t.Head.State == checkpoint.ThreadIdle {
		return nil
	}
	if t.Head.State == checkpoint.ThreadInterrupted {
		if !u.req.Supersede {
			return nil // a breakpoint: Resume goes on from the new checkpoint
		}
		if err := u.engine.supersede(ctx, t); err != nil {
			return fmt.Errorf("close the questions: %w", err)
		}
	}
	t.Head.State = checkpoint.ThreadIdle
	return nil
}

// void closes the questions of a subgraph that has moved on without answers.
func (e *Engine) void(ctx context.Context, t *tx, ns string) error {
	if t.Head.Open == 0 {
		return nil
	}
	open, err := e.openInterrupts(ctx, t.Thread)
	if err != nil {
		return err
	}
	closed := slices.DeleteFunc(open, func(q checkpoint.Interrupt) bool {
		return q.Reason == checkpoint.ReasonBreakpoint || !within(q.Namespace, ns)
	})
	for i := range closed {
		closed[i].State, closed[i].Updated = checkpoint.InterruptSuperseded, t.now
	}
	if len(closed) == 0 {
		return nil
	}
	t.Interrupts = append(t.Interrupts, closed...)
	t.Head.Open -= len(closed)
	t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: closed})
	return nil
}
