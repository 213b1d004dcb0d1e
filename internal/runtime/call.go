package runtime

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// visit says which graph runs inside a task, and how it is kept: that of a
// subgraph node, or one that the node's code calls.
type visit struct {
	task    *pregel.Task
	graph   *graph.Graph
	mode    string // inherit, persist or disabled
	space   string // the namespace it runs in
	attempt int
	again   bool   // the attempt may have run it before, in another worker
	alive   func() // called whenever the graph shows that it is at work
	before  []string
	after   []string
}

// Alive puts the idle timeout of the attempt off.
func (fx *effects) Alive() { fx.alive() }

// Unassigned says in the log of the thread that the task waits for a worker.
func (fx *effects) Unassigned(why string) {
	if fx.over.Load() {
		return
	}
	name := ""
	if fx.task.Node != nil {
		name = fx.task.Node.Name
	}
	l := fx.loop
	if l.session.errands.knows(fx.task.ID, why) {
		return
	}
	err := l.commit(func(t *tx) error {
		t.emit(checkpoint.Event{
			Kind: checkpoint.EventTask, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
			Node: name, Task: fx.task.ID, Attempt: fx.attempt,
			Phase: checkpoint.PhaseUnassigned, Failure: &checkpoint.Failure{
				Reason: ReasonNoWorkerAvailable, Message: why + "; the task waits", Node: name,
			},
		})
		return nil
	})
	if err != nil {
		l.session.log.Warn("event not stored", zap.Error(err), cause(err))
		return
	}
	l.session.errands.haveTold(fx.task.ID, why)
}

// Strand moves the run when it can go on nowhere but at another server.
func (fx *effects) Strand() {
	if !fx.over.Load() {
		fx.loop.session.consider()
	}
}

// HandOver stops the run here, as soon as nothing else of it goes on; another
// server goes on with it.
func (fx *effects) HandOver() {
	if s := fx.loop.session; s.stop != nil && !fx.over.Load() {
		s.leave()
	}
}

// Call runs a graph inside the task, in the way a subgraph node does.
func (fx *effects) Call(ctx context.Context, c GraphCall) (CallResult, error) {
	if fx.over.Load() {
		return CallResult{}, Errorf(ReasonTaskLeaseLost, "the calling task is over").With("taskId", fx.task.ID)
	}
	fx.alive()
	l := fx.loop
	defer fx.await()()
	v, err := l.visitOf(fx, c)
	if err != nil {
		return CallResult{}, err
	}
	child, err := l.descend(v)
	if err != nil {
		return CallResult{}, err
	}
	if need, remote := needOf(l.graph(), fx.task.Node); remote {
		child.level.together = append(slices.Clip(child.level.together), need)
	}
	child.level.attached = true // code waits for it
	child.adjust(c)
	if c.Index > 0 {
		child.level.task += "|" + strconv.Itoa(c.Index)
	}
	if c.Input == "" && !child.state.Fresh() {
		child.revisit = true
	}
	defer child.unload()
	if err := child.begin(ctx, c.Input); err != nil {
		return fx.refused(err)
	}
	return l.returned(child, child.drive(ctx))
}

// await notes that the task waits for a graph that it has called: the graph is
// under way in its place.
func (fx *effects) await() (done func()) {
	if fx.calls.Add(1) > 1 {
		fx.loop.session.employ(1)
	}
	return func() {
		if fx.calls.Add(-1) > 0 {
			fx.loop.session.employ(-1)
		}
	}
}

// visitOf finds the graph of a call, and where it is to run.
func (l *loop) visitOf(fx *effects, c GraphCall) (visit, error) {
	v := visit{
		task: fx.task, mode: c.Persistence, attempt: fx.attempt, again: true, alive: fx.alive,
		space: callNamespace(l.state, fx.task, c),
	}
	if v.mode == "" {
		v.mode = inherit
	}
	// Weeks may lie between two attempts: what was begun goes on in its version.
	if cp, err := l.standing(v.space); err == nil && c.Version == "" && cp.Graph == c.Graph && l.stoodHere(cp) {
		c.Version = cp.Version
	} else if err != nil && !errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return v, storeError(err)
	}
	g, err := l.session.engine.graphOf(c.Graph, c.Version)
	if err != nil {
		return v, err
	}
	v.graph = g
	v.before, v.after = g.InterruptBefore, g.InterruptAfter
	if len(c.Before) > 0 {
		v.before = c.Before
	}
	if len(c.After) > 0 {
		v.after = c.After
	}
	return v, nil
}

// stoodHere reports whether a subgraph's checkpoint was written while this
// loop stood where it stands.
func (l *loop) stoodHere(cp *checkpoint.Checkpoint) bool {
	return cp.Parents[l.state.Namespace()] == l.state.Checkpoint().ID
}

// callNamespace is where a called graph lives: like the subgraph of the node,
// and from the second call on below its number.
func callNamespace(s *pregel.State, t *pregel.Task, c GraphCall) string {
	var space string
	if c.Persistence == persist {
		space = pregel.JoinNamespace(pregel.NodePath(s.Namespace()), t.Node.Name)
	} else {
		space = pregel.JoinNamespace(s.Namespace(), t.Node.Name+":"+t.ID)
	}
	if c.Index > 0 {
		space = pregel.JoinNamespace(space, strconv.Itoa(c.Index))
	}
	return space
}

// adjust gives a called graph what the call sets for it alone.
func (l *loop) adjust(c GraphCall) {
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

// refused turns an input that the graph does not take into an error of the
// call, and everything else into the end of the run here.
func (fx *effects) refused(err error) (CallResult, error) {
	var bad *pregel.ResultError
	var own *Error
	switch {
	case errors.As(err, &bad):
		return CallResult{}, Errorf(ReasonInvalidField, "%w", err).InField("input", "%s", bad.Problem)
	case errors.As(err, &own) && !errors.Is(err, checkpoint.ErrUnavailable):
		return CallResult{}, own
	}
	fx.loop.session.fault()
	return CallResult{}, storeError(err)
}

// returned turns the end of a called graph into the answer to the call.
func (l *loop) returned(child *loop, v verdict) (CallResult, error) {
	switch {
	case v.err != nil:
		l.session.fault()
		return CallResult{}, storeError(v.err)
	case v.command != nil:
		r := *v.command
		r.Parent = false
		return CallResult{Command: &r}, nil
	case v.state == checkpoint.RunInterrupted:
		return CallResult{Waiting: v.waiting}, nil
	case v.state == checkpoint.RunSucceeded:
		return CallResult{Output: child.state.Output()}, nil
	case v.failure != nil:
		return CallResult{Failure: v.failure}, nil
	}
	return CallResult{Failure: &checkpoint.Failure{Reason: FailedNode, Message: "the called graph was stopped"}}, nil
}

// progressed reports whether one of the questions that a task waits for is
// answered: either all of its own, or one of a graph that it has called.
func (l *loop) progressed(t *pregel.Task, record checkpoint.Task) bool {
	open, answered, foreign := false, false, false
	for _, id := range record.Waiting {
		switch l.askedBefore(t.ID, id) {
		case checkpoint.InterruptOpen:
			open = true
		case "":
			foreign = true
			if l.session == nil { // somebody looks on: the task waits until it is run
				continue
			}
			q, err := l.session.engine.store.Interrupt(l.session.calls, l.session.thread, id)
			if err != nil || q.State != checkpoint.InterruptOpen {
				return true
			}
		default:
			answered = true
		}
	}
	return !open && (answered || !foreign)
}
