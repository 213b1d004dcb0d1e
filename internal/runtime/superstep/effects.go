package superstep

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Why an attempt was cut off.
var (
	errNodeTimeout = errors.New("the node did not end within its timeout")
	errIdleTimeout = errors.New("the node was silent for longer than its idle timeout")
	errStepTimeout = errors.New("the superstep did not end within its timeout")
)

// effects are the side effects that one attempt may have. After the attempt has
// ended they do nothing, so that a node that was given up cannot speak.
type effects struct {
	frame         *frame
	task          *pregel.Task
	attempt       int
	span          Span // of the attempt, nil = it is not traced
	isOver        atomic.Bool
	isStillRemote atomic.Bool  // a worker may still run the task
	isUnresolved  atomic.Bool  // whether a worker runs the task for the previous server is not known
	runningCalls  atomic.Int32 // graphs that it waits for
	restartMark   restartMark
	// refusedVersion is set when the version of a called graph does not run the nodes that
	// are due in it. The result of the task is void then, even if its code handles the
	// error.
	refusedVersion atomic.Pointer[checkpoint.Failure]

	mu          sync.Mutex
	idleTimer   *time.Timer
	idleTimeout time.Duration
}

// applyTimeouts puts the node's timeouts on an attempt.
func (fx *effects) applyTimeouts(ctx context.Context, n *graph.Node) (context.Context, context.CancelFunc) {
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
	fx.idleTimeout = n.IdleTimeout
	fx.idleTimer = time.AfterFunc(n.IdleTimeout, contain.Func(func() { cut(errIdleTimeout) }, contain.LogPanic(fx.frame.thread.Log, "a timer panicked")))
	fx.mu.Unlock()
	return ctx, func() {
		fx.endAttempt()
		cut(nil)
		cancel()
	}
}

// timeoutFailure returns the failure of an attempt that ran into a timeout of its own,
// else nil.
func timeoutFailure(ctx context.Context, n *graph.Node) *pregel.Failure {
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
		Reason: runtime.FailedNodeTimeout, Message: cause.Error() + " of " + limit.String(),
		Details: map[string]string{"timeout": limit.String()},
	}}
}

func (fx *effects) endAttempt() {
	fx.isOver.Store(true)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.idleTimer != nil {
		fx.idleTimer.Stop()
	}
}

// resetIdleTimeout puts the idle timeout off.
func (fx *effects) resetIdleTimeout() {
	fx.frame.level.touchParent()
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.idleTimer != nil && !fx.isOver.Load() {
		fx.idleTimer.Reset(fx.idleTimeout)
	}
}

// EmitEvent sends an event to the followers; a durable event is committed first.
func (fx *effects) EmitEvent(em runtime.Emission) {
	if fx.isOver.Load() {
		return
	}
	fx.resetIdleTimeout()
	if fx.task.Node == nil { // a reducer: it has no events
		return
	}
	if !fx.checkRestart(em.Kind) {
		return
	}
	fr := fx.frame
	e := checkpoint.Event{
		Kind: em.Kind, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
		Node: fx.task.Node.Name, Task: fx.task.ID, Attempt: fx.attempt, Name: em.Name, Value: em.Value,
	}
	if !em.Durable {
		fr.publishEphemeral(e)
		return
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		t.EmitEvent(e)
		return nil
	})
	if err != nil {
		fr.thread.Log.Warn("durable event not stored; the run will be taken up again", zap.Error(err), runtime.CauseField(err))
	}
}

// ResetIdleTimeout puts the idle timeout of the attempt off.
func (fx *effects) ResetIdleTimeout() { fx.resetIdleTimeout() }

// publishEphemeral sends an event that is not stored to the current followers.
func (fr *frame) publishEphemeral(e checkpoint.Event) {
	e.Ephemeral, e.Time, e.Run = true, fr.env.Now(), fr.run.ID
	e.Namespace, e.Step = fr.state.Namespace(), fr.state.NextStep()
	fr.thread.Followers.PublishEphemeral(e)
}
