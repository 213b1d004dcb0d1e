package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Why an attempt was cut off.
var (
	errNodeTimeout = errors.New("the node did not end within its timeout")
	errIdleTimeout = errors.New("the node was silent for longer than its idle timeout")
	errStepTimeout = errors.New("the superstep did not end within its timeout")
)

// effects are what one attempt may do besides returning. After the attempt has
// ended they do nothing, so that a node that was given up cannot speak.
type effects struct {
	loop    *loop
	task    *pregel.Task
	attempt int
	over    atomic.Bool
	lent    atomic.Bool  // a worker may still run the task
	calls   atomic.Int32 // graphs that it waits for
	anew    anew

	mu   sync.Mutex
	idle *time.Timer
	wait time.Duration
}

// limit puts the node's timeouts on an attempt.
func (fx *effects) limit(ctx context.Context, n *graph.Node) (context.Context, context.CancelFunc) {
	if n.Timeout <= 0 && n.IdleTimeout <= 0 {
		return ctx, func() {}
	}
	cancel := context.CancelFunc(func() {})
	if n.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, n.Timeout, errNodeTimeout)
	}
	if n.IdleTimeout <= 0 {
		return ctx, cancel
	}
	ctx, cut := context.WithCancelCause(ctx)
	fx.mu.Lock()
	fx.wait = n.IdleTimeout
	fx.idle = time.AfterFunc(n.IdleTimeout, contain.Func(func() { cut(errIdleTimeout) }, contain.Log(fx.loop.session.log, "a timer panicked")))
	fx.mu.Unlock()
	return ctx, func() {
		fx.end()
		cut(nil)
		cancel()
	}
}

// timedOut is the failure of an attempt that ran into one of its own timeouts.
func timedOut(ctx context.Context, n *graph.Node) *pregel.Failure {
	cause := context.Cause(ctx)
	var limit time.Duration
	switch {
	case errors.Is(cause, errNodeTimeout):
		limit = n.Timeout
	case errors.Is(cause, errIdleTimeout):
		limit = n.IdleTimeout
	default:
		return nil
	}
	return &pregel.Failure{Failure: checkpoint.Failure{
		Reason: FailedNodeTimeout, Message: cause.Error() + " of " + limit.String(),
		Details: map[string]string{"timeout": limit.String()},
	}}
}

func (fx *effects) end() {
	fx.over.Store(true)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.idle != nil {
		fx.idle.Stop()
	}
}

// alive puts the idle timeout off.
func (fx *effects) alive() {
	fx.loop.stir()
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.idle != nil && !fx.over.Load() {
		fx.idle.Reset(fx.wait)
	}
}

// Emit sends an event to whoever watches; a durable one is committed first.
func (fx *effects) Emit(em Emission) {
	if fx.over.Load() {
		return
	}
	fx.alive()
	if !fx.restart(em.Kind) {
		return
	}
	l := fx.loop
	e := checkpoint.Event{
		Kind: em.Kind, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
		Node: fx.task.Node.Name, Task: fx.task.ID, Attempt: fx.attempt, Name: em.Name, Value: em.Value,
	}
	if !em.Durable {
		l.announce(e)
		return
	}
	err := l.commit(func(t *tx) error {
		t.emit(e)
		return nil
	})
	if err != nil {
		l.session.log.Warn("durable event not stored; the run will be taken up again", zap.Error(err), cause(err))
	}
}

// Remember stores a memo before its value is used; the first value stays. It
// does not end with the attempt: whether the memo is stored must be known
// before anybody tries again. Of several that come at the same time, like that
// of a worker which has lost the task and that of the next one, one is stored.
func (fx *effects) Remember(_ context.Context, m checkpoint.Memo) (payload.JSON, bool, error) {
	l := fx.loop
	m.Task = fx.task.ID
	done := l.notes.claim(placeOf(m))
	defer done()
	if fx.over.Load() {
		return "", false, context.Canceled
	}
	fx.alive()
	m.Checkpoint = l.state.Checkpoint().ID
	for _, known := range l.memos(m.Task) {
		if placeOf(known) == placeOf(m) {
			return known.Value, true, nil
		}
	}
	err := l.commit(func(t *tx) error {
		t.Memos = append(t.Memos, m)
		return nil
	})
	if err != nil {
		return "", false, err
	}
	l.notes.add(m)
	return m.Value, false, nil
}

// notes are the memos of the superstep under way that were recorded since it
// was taken up.
type notes struct {
	mu    sync.Mutex
	memos map[string][]checkpoint.Memo // by task
	// claims are closed when a memo that is about to be stored is, or can't be.
	claims map[place]chan struct{}
}

// place is where a memo stands: only one can be stored there.
type place struct {
	task, scope, key string
	index            int
}

func placeOf(m checkpoint.Memo) place { return place{m.Task, m.Scope, m.Key, m.Index} }

// claim waits until nobody else is about to store a memo at a place. The
// caller may then do so, and calls done.
func (n *notes) claim(p place) (done func()) {
	n.mu.Lock()
	for n.claims[p] != nil {
		claim := n.claims[p]
		n.mu.Unlock()
		<-claim
		n.mu.Lock()
	}
	defer n.mu.Unlock()
	if n.claims == nil {
		n.claims = make(map[place]chan struct{}, 1)
	}
	claim := make(chan struct{})
	n.claims[p] = claim
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.claims, p)
		close(claim)
	}
}

func (n *notes) add(m checkpoint.Memo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.memos == nil {
		n.memos = make(map[string][]checkpoint.Memo, 1)
	}
	n.memos[m.Task] = append(n.memos[m.Task], m)
}

func (n *notes) of(task string) []checkpoint.Memo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.memos[task]
}

func (n *notes) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.memos) > 0
}

func (n *notes) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memos = nil
}

// memos are all that a task has recorded.
func (l *loop) memos(task string) []checkpoint.Memo {
	known, fresh := l.pending.memos[task], l.notes.of(task)
	if len(fresh) == 0 {
		return known
	}
	return slices.Concat(known, fresh)
}

// journal is what a task must see again.
func (l *loop) journal(task string) pregel.Journal {
	j := l.pending.journal(task)
	j.Memos = l.memos(task)
	return j
}
