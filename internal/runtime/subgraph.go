package runtime

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// subgraph runs the graph of a node: a loop of its own in a namespace of the
// thread, that pauses and fails as the node does. alive is called whenever the
// subgraph shows that it is at work.
func (l *loop) subgraph(ctx context.Context, t *pregel.Task, attempt int, alive func()) pregel.Result {
	child, err := l.descend(visit{
		task: t, graph: t.Node.Sub, mode: persistence(t.Node), space: childNamespace(l.state, t),
		attempt: attempt, alive: alive, before: t.Node.Sub.InterruptBefore, after: t.Node.Sub.InterruptAfter,
	})
	if err != nil {
		return l.subgraphError(err)
	}
	defer child.unload()
	child.level.stops = child.level.stored && (l.level.root || l.level.stops)
	child.level.lone = (l.level.root || l.level.lone) && len(l.tasks) == 1 && !l.graph().HasUntracked()
	if err := child.begin(ctx, l.childInput(t)); err != nil {
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
func (l *loop) descend(v visit) (*loop, error) {
	child := &loop{
		session: l.session, run: l.run, state: pregel.New(v.graph, v.space, l.session.engine.opts.Limits),
		level: level{
			stored: v.mode != disabled && l.level.stored, task: v.task.ID, top: cmp.Or(l.level.top, v.task.ID), parents: l.here(),
			together: l.level.together, journey: l.level.journey, alive: v.alive, again: v.attempt > 1 || l.revisit || l.level.again,
		},
		before: v.before, after: v.after,
	}
	child.level.attached = l.mustStay(v.task.Node)
	if !child.level.stored {
		child.inherited = l.recoveredInside(v.task.ID)
		child.level.together = slices.Concat(child.level.together, needsOf(v.graph))
		return child, nil
	}
	then, err := l.addressed(v)
	if err != nil {
		return nil, err
	}
	if then != nil {
		child.state, child.copied = pregel.Load(v.graph, then, true, l.session.engine.opts.Limits).Move(v.space), true
		child.level.onWay, child.level.then = true, then.Namespace
		return child, nil
	}
	if v.mode == inherit && !l.revisit && v.attempt == 1 && !v.again {
		return child, nil
	}
	cp, err := l.standing(v.space)
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) {
		return child, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	child.state = pregel.Load(v.graph, cp, l.level.journey != nil, l.session.engine.opts.Limits)
	child.revisit = l.stoodHere(cp)
	child.inherited = child.revisit && l.recoveredInside(v.task.ID)
	return child, nil
}

// here notes, for a subgraph, at which checkpoints the graphs around it stand.
func (l *loop) here() map[string]string {
	parents := make(map[string]string, len(l.level.parents)+1)
	maps.Copy(parents, l.level.parents)
	parents[l.state.Namespace()] = l.state.Checkpoint().ID
	return parents
}

// childInput is what the subgraph gets: the Send's input, or the keys of the
// node's view that the subgraph accepts.
func (l *loop) childInput(t *pregel.Task) payload.JSON {
	if t.Input != "" {
		return t.Input
	}
	sub := t.Node.Sub
	if _, whole := sub.ChannelIndex(graph.Root); whole {
		return l.state.View(t.Node).Object()
	}
	keys := make([]int, 0, len(t.Node.Reads))
	for _, i := range t.Node.Reads {
		if at, ok := sub.ChannelIndex(l.graph().Channels[i].Name); ok && slices.Contains(sub.Input, at) {
			keys = append(keys, i)
		}
	}
	return l.state.Object(keys)
}

// begin prepares the subgraph's first superstep: it goes on where it stopped,
// or takes its input.
func (l *loop) begin(ctx context.Context, input payload.JSON) error {
	if l.revisit {
		return l.goOn()
	}
	l.stop = l.state.NextStep() + 1 + l.limit()
	first := l.state
	err := l.commit(func(t *tx) error {
		l.state = first // the change may have to be made again
		l.hold(0)
		if l.copied {
			return l.branch(t)
		}
		if err := l.enter(t, input); err != nil {
			return err
		}
		l.passOn(ctx, t)
		return nil
	})
	if err != nil {
		return err
	}
	if l.copied && l.paused() {
		l.state = l.state.PassBreak()
	}
	p, err := l.recall(l.state)
	l.remember(p)
	l.hold(l.weigh())
	return err
}

// recall returns what is known of a superstep of a subgraph that keeps no
// checkpoints: it comes to the same one whenever its node is run again.
func (l *loop) recall(s *pregel.State) (progress, error) {
	if l.level.stored || !l.level.again {
		return progress{}, nil
	}
	p, err := l.session.engine.store.Pending(l.session.calls, l.session.thread, s.Checkpoint().ID)
	return newProgress(p), storeError(err)
}

func (l *loop) remember(p progress) {
	l.pending, l.revisit = p, len(p.tasks) > 0
}

// goOn takes up the superstep at which the loop stopped.
func (l *loop) goOn() error {
	if err := l.resumeHere(); err != nil {
		return err
	}
	l.back = true
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
	l.hold(l.weigh())
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
	case v.state == checkpoint.RunRunning:
		return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: stoppedHere}}}
	default:
		f := v.failure
		if f == nil {
			f = &checkpoint.Failure{Reason: FailedNode, Message: "the subgraph was stopped"}
		}
		return pregel.Result{Failure: &pregel.Failure{Failure: *f}}
	}
}

// stoppedHere is why the node of a subgraph has not ended that goes on elsewhere.
// It is neither stored nor shown.
const stoppedHere = "STOPPED_HERE"

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
	if errors.Is(err, checkpoint.ErrUnavailable) || errors.Is(err, errLeaseLost) {
		l.session.fault() // the node has not failed: nobody knows
	}
	f := &pregel.Failure{Failure: checkpoint.Failure{Reason: FailedNode, Message: err.Error()}}
	if own, ok := errors.AsType[*Error](err); ok {
		f.Reason, f.Message = own.Reason, own.Message
	}
	if _, bad := errors.AsType[*pregel.ResultError](err); bad {
		f.Reason, f.Permanent = FailedInvalidUpdate, true
	}
	if limit, beyond := errors.AsType[*graph.LimitError](err); beyond {
		f.Reason, f.Details, f.Permanent = FailedLimit, limit.Details(), true
	}
	return pregel.Result{Failure: f}
}
