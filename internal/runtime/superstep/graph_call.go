package superstep

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// childGraph is a graph that runs inside a task and how it is kept: a subgraph
// node's, or one that the node's code calls.
type childGraph struct {
	parent           *Loop // in whose task it runs
	task             *pregel.Task
	graph            *graph.Graph
	persistence      string // inherit, persist or disabled
	namespace        string // the namespace it runs in
	attempt          int
	maybeRerun       bool   // the attempt may have run it before, in another worker
	resetIdleTimeout func() // called whenever the graph shows that it is at work
	breakBefore      []string
	breakAfter       []string
}

// ResetIdleTimeout puts the idle timeout of the attempt off.
func (fx *effects) ResetIdleTimeout() { fx.resetIdleTimeout() }

// ReportUnassigned says in the log of the thread that the task waits for a worker.
func (fx *effects) ReportUnassigned(why string) {
	if fx.isOver.Load() {
		return
	}
	name := ""
	if fx.task.Node != nil {
		name = fx.task.Node.Name
	}
	l := fx.loop
	if l.thread.Reasons.WasTold(fx.task.ID, why) {
		return
	}
	err := l.commitChange(func(t *commit.Tx) error {
		t.EmitEvent(checkpoint.Event{
			Kind: checkpoint.EventTask, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
			Node: name, Task: fx.task.ID, Attempt: fx.attempt,
			Phase: checkpoint.PhaseUnassigned, Failure: &checkpoint.Failure{
				Reason: runtime.ReasonNoWorkerAvailable, Message: why + "; the task waits", Node: name,
			},
		})
		return nil
	})
	if err != nil {
		l.thread.Log.Warn("event not stored", zap.Error(err), runtime.CauseField(err))
		return
	}
	l.thread.Reasons.SetTold(fx.task.ID, why)
}

// NotifyStranded moves the run when it can go on nowhere but at another server.
func (fx *effects) NotifyStranded() {
	if !fx.isOver.Load() {
		fx.loop.thread.Placement.NotifyStranded()
	}
}

// HandOff stops the run here, as soon as nothing else of it goes on; another
// server goes on with it.
func (fx *effects) HandOff() {
	if !fx.isOver.Load() {
		fx.loop.thread.Placement.LeaveServer()
	}
}

// CallGraph runs a graph inside the task, in the way a subgraph node does.
func (fx *effects) CallGraph(ctx context.Context, c runtime.GraphCall) (runtime.CallResult, error) {
	if fx.isOver.Load() {
		return runtime.CallResult{}, runtime.Errorf(runtime.ReasonTaskLeaseLost, "the calling task is over").With("taskId", fx.task.ID)
	}
	fx.resetIdleTimeout()
	l := fx.loop
	defer fx.trackGraphCall()()
	v, err := fx.resolveCall(c)
	if err != nil {
		return runtime.CallResult{}, err
	}
	child, err := v.newChildLoop()
	if err != nil {
		return runtime.CallResult{}, err
	}
	if need, remote := placement.CapabilityFor(l.Graph(), fx.task.Node); remote {
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
		return fx.refusedCallResult(err)
	}
	return fx.callResult(child, child.RunSupersteps(ctx))
}

// trackGraphCall counts a called graph as active in place of the task that waits
// for it, until done is called.
func (fx *effects) trackGraphCall() (done func()) {
	if fx.runningCalls.Add(1) > 1 {
		fx.loop.thread.Tasks.AddActive(1)
	}
	return func() {
		if fx.runningCalls.Add(-1) > 0 {
			fx.loop.thread.Tasks.AddActive(-1)
		}
	}
}

// resolveCall finds the graph of a call, and where it is to run.
func (fx *effects) resolveCall(c runtime.GraphCall) (childGraph, error) {
	l := fx.loop
	v := childGraph{
		parent: l, task: fx.task, persistence: c.Persistence, attempt: fx.attempt, maybeRerun: true, resetIdleTimeout: fx.resetIdleTimeout,
		namespace: callNamespace(l.state, fx.task, c),
	}
	if v.persistence == "" {
		v.persistence = persistInherit
	}
	// Weeks may lie between two attempts: what was begun goes on in its version.
	if cp, err := l.currentCheckpoint(v.namespace); err == nil && c.Version == "" && cp.Graph == c.Graph && l.isCurrentChild(cp) {
		c.Version = cp.Version
	} else if err != nil && !errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return v, runtime.TranslateStoreError(err)
	}
	g, err := l.env.Reader.FindGraph(c.Graph, c.Version)
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

// isCurrentChild reports whether a subgraph's checkpoint was written while this
// loop stood where it stands.
func (l *Loop) isCurrentChild(cp *checkpoint.Checkpoint) bool {
	return cp.Parents[l.state.Namespace()] == l.state.Checkpoint().ID
}

// callNamespace is where a called graph lives: like the subgraph of the node,
// and from the second call on below its number.
func callNamespace(s *pregel.State, t *pregel.Task, c runtime.GraphCall) string {
	var space string
	if c.Persistence == persistAlways {
		space = pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	} else {
		space = pregel.JoinNamespace(s.Namespace(), t.Node.Name+":"+t.ID)
	}
	if c.Index > 0 {
		space = pregel.JoinNamespace(space, strconv.Itoa(c.Index))
	}
	return space
}

// applyCallSettings applies the settings of the call to the called graph alone.
func (l *Loop) applyCallSettings(c runtime.GraphCall) {
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

// refusedCallResult turns an input that the graph does not take into an error of the
// call, and everything else into the end of the run here.
func (fx *effects) refusedCallResult(err error) (runtime.CallResult, error) {
	var bad *pregel.ResultError
	var own *runtime.Error
	switch {
	case errors.As(err, &bad):
		return runtime.CallResult{}, runtime.Errorf(runtime.ReasonInvalidField, "%w", err).WithViolation("input", "%s", bad.Problem)
	case errors.As(err, &own) && !errors.Is(err, checkpoint.ErrUnavailable):
		return runtime.CallResult{}, own
	}
	fx.loop.thread.Stop.AbandonRun()
	return runtime.CallResult{}, runtime.TranslateStoreError(err)
}

// callResult turns the end of a called graph into the answer to the call.
func (fx *effects) callResult(child *Loop, v End) (runtime.CallResult, error) {
	l := fx.loop
	switch {
	case v.Err != nil:
		l.thread.Stop.AbandonRun()
		return runtime.CallResult{}, runtime.TranslateStoreError(v.Err)
	case v.command != nil:
		r := *v.command
		r.ToParent = false
		return runtime.CallResult{Command: &r}, nil
	case v.State == checkpoint.RunInterrupted:
		return runtime.CallResult{Waiting: v.openInterrupts}, nil
	case v.State == checkpoint.RunSucceeded:
		return runtime.CallResult{Output: child.state.Output()}, nil
	case v.Failure != nil:
		return runtime.CallResult{Failure: v.Failure}, nil
	}
	return runtime.CallResult{Failure: &checkpoint.Failure{Reason: runtime.FailedNode, Message: "the called graph was stopped"}}, nil
}

// hasNewAnswers reports whether an interrupt that a task waits for is answered: all
// of its own, or one of a graph that it called.
func (l *Loop) hasNewAnswers(t *pregel.Task, record checkpoint.Task) bool {
	open, answered, foreign := false, false, false
	for _, id := range record.Waiting {
		switch l.pending.interruptState(t.ID, id) {
		case checkpoint.InterruptOpen:
			open = true
		case "":
			foreign = true
			if l.thread == nil { // a preview: the task waits until it is run
				continue
			}
			q, err := l.env.Store.Interrupt(l.thread.StoreCtx, l.thread.ID, id)
			if err != nil || q.State != checkpoint.InterruptOpen {
				return true
			}
		default:
			answered = true
		}
	}
	return !open && (answered || !foreign)
}
