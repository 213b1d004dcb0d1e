package superstep

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// CallGraph runs a graph inside the task, as a subgraph node does. Errors:
// *runtime.Error, TASK_LEASE_LOST when the task is over, INVALID_FIELD for a refused
// input, else those of FindGraph and of the store.
func (fx *effects) CallGraph(ctx context.Context, c runtime.GraphCall) (runtime.CallResult, error) {
	if fx.isOver.Load() {
		return runtime.CallResult{}, runtime.Errorf(runtime.ReasonTaskLeaseLost, "the calling task is over").With("taskId", fx.task.ID)
	}
	fx.resetIdleTimeout()
	fr := fx.frame
	defer fx.trackGraphCall()()
	v, err := fx.resolveCall(c)
	if err != nil {
		return runtime.CallResult{}, err
	}
	child, err := v.newChildLoop()
	if err != nil {
		return runtime.CallResult{}, err
	}
	if need, remote := placement.CapabilityFor(fr.Graph(), fx.task.Node); remote {
		child.level.requiredCapabilities = append(slices.Clip(child.level.requiredCapabilities), need)
	}
	child.level.losesWorkOnStop = true // code waits for it
	child.applyCallSettings(c)
	if c.Index > 0 {
		child.level.parentTask += "|" + strconv.Itoa(c.Index)
	}
	if c.Input == "" && !child.state.IsFresh() {
		child.maybeBegun = true
	}
	defer child.releaseBytes()
	if err := child.beginSubgraph(ctx, c.Input); err != nil {
		if own, ok := errors.AsType[*runtime.Error](err); ok && isVersionRefusal(own.Reason) {
			fx.refusedVersion.Store(&checkpoint.Failure{Reason: own.Reason, Message: own.Message})
		}
		return v.refusedCallResult(err)
	}
	end := child.RunSupersteps(within(ctx, fx.span)) // the call of a worker is no span of the run
	if end.Failure != nil && isVersionRefusal(end.Failure.Reason) {
		fx.refusedVersion.Store(end.Failure)
	}
	return v.callResult(child, end)
}

// trackGraphCall counts a called graph as active in place of the task that waits
// for it, until done is called.
func (fx *effects) trackGraphCall() (done func()) {
	if fx.runningCalls.Add(1) > 1 {
		fx.frame.thread.Tasks.AddActive(1)
	}
	return func() {
		if fx.runningCalls.Add(-1) > 0 {
			fx.frame.thread.Tasks.AddActive(-1)
		}
	}
}

// resolveCall finds the graph of a call, and where it is to run.
func (fx *effects) resolveCall(c runtime.GraphCall) (childGraph, error) {
	fr := fx.frame
	v := childGraph{
		parent: fr, task: fx.task, persistence: c.Persistence, attempt: fx.attempt, maybeRerun: true, resetIdleTimeout: fx.resetIdleTimeout,
		namespace: callNamespace(fr.state, fx.task, c),
	}
	if v.persistence == "" {
		v.persistence = persistInherit
	}
	// Weeks may lie between two attempts: a graph that has begun goes on in its version.
	if cp, err := v.currentCheckpoint(); err == nil && c.Version == "" && cp.Graph == c.Graph && v.isCurrent(cp) {
		c.Version = cp.Version
	} else if err != nil && !errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return v, runtime.TranslateStoreError(err)
	}
	g, err := fr.env.Reader.FindGraph(c.Graph, c.Version)
	if err != nil {
		return v, err
	}
	v.graph = g
	v.breakBefore, v.breakAfter = g.InterruptBefore, g.InterruptAfter
	if len(c.InterruptBefore) > 0 {
		v.breakBefore = c.InterruptBefore
	}
	if len(c.InterruptAfter) > 0 {
		v.breakAfter = c.InterruptAfter
	}
	return v, nil
}

// callNamespace returns the namespace of a called graph. A call with persistence has the
// namespace of the node, which is the same in every task. Any other call has that of the
// task. Each call after the first has a namespace below it, named by its index.
func callNamespace(s *pregel.State, t *pregel.Task, c runtime.GraphCall) string {
	var namespace string
	if c.Persistence == persistAlways {
		namespace = pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	} else {
		namespace = pregel.JoinNamespace(s.Namespace(), t.Node.Name+":"+t.ID)
	}
	if c.Index > 0 {
		namespace = pregel.JoinNamespace(namespace, strconv.Itoa(c.Index))
	}
	return namespace
}

// applyCallSettings applies the settings of the call to the called graph alone.
func (l *graphLoop) applyCallSettings(c runtime.GraphCall) {
	if c.Context == "" && c.StepLimit == 0 {
		return
	}
	run := *l.run
	if c.Context != "" {
		run.Request.Context = c.Context
	}
	if c.StepLimit > 0 {
		run.Request.StepLimit = c.StepLimit
	}
	l.run = &run
}

// refusedCallResult turns an input that the graph refuses into an error of the call, and
// other errors into the end of the run here.
func (c childGraph) refusedCallResult(err error) (runtime.CallResult, error) {
	var bad *pregel.ResultError
	var own *runtime.Error
	switch {
	case errors.As(err, &bad):
		return runtime.CallResult{}, runtime.Errorf(runtime.ReasonInvalidField, "%w", err).WithViolation("input", "%s", bad.Problem)
	case errors.As(err, &own) && !errors.Is(err, checkpoint.ErrUnavailable):
		return runtime.CallResult{}, own
	}
	c.parent.thread.Stop.AbandonRun()
	return runtime.CallResult{}, runtime.TranslateStoreError(err)
}

// callResult turns the end of a called graph into the answer to the call.
func (c childGraph) callResult(child *graphLoop, end End) (runtime.CallResult, error) {
	fr := c.parent
	switch {
	case end.Err != nil:
		fr.thread.Stop.AbandonRun()
		return runtime.CallResult{}, runtime.TranslateStoreError(end.Err)
	case end.command != nil:
		r := commandForNode(*end.command)
		return runtime.CallResult{Command: &r}, nil
	case end.State == checkpoint.RunInterrupted:
		return runtime.CallResult{Waiting: end.openInterrupts}, nil
	case end.State == checkpoint.RunSucceeded:
		return runtime.CallResult{Output: child.state.Output()}, nil
	case end.Failure != nil:
		return runtime.CallResult{Failure: end.Failure}, nil
	}
	return runtime.CallResult{Failure: &checkpoint.Failure{Reason: runtime.FailedNode, Message: "the called graph was stopped"}}, nil
}
