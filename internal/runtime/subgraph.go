package runtime

import (
	"context"
	"errors"
	"maps"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// subgraph runs the graph of a node: a loop of its own in a namespace of the
// thread, that pauses and fails as the node does.
func (l *loop) subgraph(ctx context.Context, t *pregel.Task, attempt int) pregel.Result {
	child, err := l.descend(t, attempt)
	if err != nil {
		return l.subgraphError(err)
	}
	if err := child.begin(l.childInput(t)); err != nil {
		return l.subgraphError(err)
	}
	return l.ascend(child, child.drive(ctx))
}

// How a subgraph is kept: fresh for each visit of its node, growing over all
// visits, or not at all.
const (
	inherit  = "inherit"
	persist  = "persist"
	disabled = "disabled"
)

// persistence says how the subgraph of a node is kept.
func persistence(n *graph.Node) string {
	if n.Spec.Graph.Persistence == "" {
		return inherit
	}
	return n.Spec.Graph.Persistence
}

// descend finds the state in which the subgraph goes on, or a fresh one.
func (l *loop) descend(t *pregel.Task, attempt int) (*loop, error) {
	mode := persistence(t.Node)
	ns := childNamespace(l.state, t)
	child := &loop{
		session: l.session, run: l.run, stop: 0,
		level:  level{stored: mode != disabled && l.level.stored, task: t.ID, parents: maps.Clone(l.level.parents)},
		before: t.Node.Sub.InterruptBefore, after: t.Node.Sub.InterruptAfter,
	}
	if child.level.parents == nil {
		child.level.parents = make(map[string]string, 1)
	}
	child.level.parents[l.state.Namespace()] = l.state.Checkpoint().ID
	child.state = pregel.New(t.Node.Sub, ns)
	if !child.level.stored || (mode == inherit && !l.revisit && attempt == 1) {
		return child, nil
	}
	cp, err := l.standing(ns)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return child, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	child.state = pregel.Load(t.Node.Sub, cp, l.session.replay > 0)
	child.revisit = cp.Parents[l.state.Namespace()] == l.state.Checkpoint().ID
	return child, nil
}

// standing returns where a namespace stands: during a replay, where it stood
// before the checkpoint that is replayed, until the replay itself writes there.
func (l *loop) standing(ns string) (*checkpoint.Checkpoint, error) {
	if target := l.session.target; target != nil && pregel.NodePath(target.Namespace) == pregel.NodePath(ns) {
		l.session.target = nil
		moved := *target
		moved.Namespace, moved.Parents = ns, maps.Clone(target.Parents)
		moved.Parents[l.state.Namespace()] = l.state.Checkpoint().ID
		return &moved, nil
	}
	e, thread := l.session.engine, l.session.thread
	cp, err := e.store.Checkpoint(l.session.calls, thread, ns, "")
	if err != nil || l.session.replay == 0 || cp.Run == l.run.ID {
		return cp, err
	}
	older, err := e.store.Checkpoints(l.session.calls, checkpoint.CheckpointQuery{
		Thread: thread, Namespace: ns, Before: l.session.replay, Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(older) == 0 {
		return nil, checkpoint.ErrCheckpointNotFound
	}
	return older[0], nil
}

// childInput is what the subgraph gets: the Send's input, or the keys of the
// node's view that the subgraph accepts.
func (l *loop) childInput(t *pregel.Task) payload.JSON {
	if t.Input != "" {
		return t.Input
	}
	return l.state.View(t.Node).Object()
}

// begin prepares the subgraph's first superstep: it goes on where it stopped,
// or takes its input.
func (l *loop) begin(input payload.JSON) error {
	if l.revisit {
		return l.goOn()
	}
	l.stop = l.state.NextStep() + 1 + l.limit()
	fresh := l.state
	return l.commit(func(t *tx) error {
		l.state = fresh // the change may have to be made again
		return l.enter(t, input)
	})
}

// goOn takes up the superstep at which the loop stopped.
func (l *loop) goOn() error {
	if err := l.resumeHere(); err != nil {
		return err
	}
	s, err := l.inject(l.state)
	if err != nil {
		return err
	}
	l.state = s
	if l.paused() {
		l.state = l.state.PassBreak()
	}
	if l.tasks, err = l.state.Plan(); err != nil {
		return err
	}
	if l.stop == 0 {
		l.stop = l.state.NextStep() + 1 + l.limit()
	}
	return nil
}

// paused reports whether the loop has breakpoints, which going on must pass.
func (l *loop) paused() bool { return len(l.before) > 0 || len(l.after) > 0 }

// ascend turns the end of a subgraph into the result of its node.
func (l *loop) ascend(child *loop, v verdict) pregel.Result {
	switch {
	case v.err != nil:
		l.session.fault()
		return l.subgraphError(v.err)
	case v.command != nil:
		r := *v.command
		r.Parent = false
		return r
	case v.state == checkpoint.RunInterrupted:
		return pregel.Result{Waiting: v.waiting}
	case v.state == checkpoint.RunSucceeded:
		return pregel.Result{Update: l.known(child.state)}
	default:
		f := v.failure
		if f == nil {
			f = &checkpoint.Failure{Reason: FailedNode, Message: "the subgraph was stopped"}
		}
		return pregel.Result{Failure: &pregel.Failure{Failure: *f}}
	}
}

// known is the output of a subgraph without the keys its parent does not have.
func (l *loop) known(child *pregel.State) payload.JSON {
	var keys []int
	g := child.Graph()
	for _, i := range g.Output {
		if at, ok := l.graph().ChannelIndex(g.Channels[i].Name); ok && l.graph().Channels[at].State {
			keys = append(keys, i)
		}
	}
	return child.Object(keys)
}

func (l *loop) subgraphError(err error) pregel.Result {
	f := &pregel.Failure{Failure: checkpoint.Failure{Reason: FailedNode, Message: err.Error()}}
	var own *Error
	if errors.As(err, &own) {
		f.Reason, f.Message = own.Reason, own.Message
	}
	var bad *pregel.ResultError
	if errors.As(err, &bad) {
		f.Reason, f.Permanent = FailedInvalidUpdate, true
	}
	return pregel.Result{Failure: f}
}
