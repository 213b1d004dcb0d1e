package superstep

import (
	"context"
	"errors"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// runSubgraph runs the graph of a node: a loop of its own in a namespace of the
// thread, that pauses and fails as the node does.
func (fx *effects) runSubgraph(ctx context.Context) pregel.Result {
	fr, t := fx.frame, fx.task
	v := childGraph{
		parent: fr, task: t, graph: t.Node.Sub, persistence: persistenceOf(t.Node), namespace: ChildNamespace(fr.state, t),
		attempt: fx.attempt, resetIdleTimeout: fx.resetIdleTimeout, breakBefore: t.Node.Sub.InterruptBefore, breakAfter: t.Node.Sub.InterruptAfter,
	}
	child, err := v.newChildLoop()
	if err != nil {
		return v.subgraphError(err)
	}
	defer child.releaseBytes()
	child.level.isStoppable = child.level.keepsCheckpoints && (fr.level.isRoot || fr.level.isStoppable)
	child.level.isOnlyTask = (fr.level.isRoot || fr.level.isOnlyTask) && len(fr.tasks) == 1 && !fr.Graph().HasUntracked()
	if err := child.beginSubgraph(ctx, v.childInput()); err != nil {
		return v.subgraphError(err)
	}
	return v.subgraphResult(child, child.RunSupersteps(ctx))
}

// childInput returns the input of the subgraph: the Send's input, or the keys of the
// node's view that the subgraph accepts.
func (c childGraph) childInput() payload.JSON {
	fr, t := c.parent, c.task
	if t.Input != "" {
		return t.Input
	}
	sub := t.Node.Sub
	if _, whole := sub.ChannelIndex(graph.Root); whole {
		return fr.state.NodeView(t.Node).Object()
	}
	keys := make([]int, 0, len(t.Node.Reads))
	for _, i := range t.Node.Reads {
		if at, ok := sub.ChannelIndex(fr.Graph().Channels[i].Name); ok && slices.Contains(sub.InputKeys, at) {
			keys = append(keys, i)
		}
	}
	return fr.state.Object(keys)
}

// subgraphResult turns the end of a subgraph into the result of its node.
func (c childGraph) subgraphResult(child *graphLoop, end End) pregel.Result {
	fr := c.parent
	switch {
	case end.Err != nil:
		fr.thread.Stop.AbandonRun()
		return c.subgraphError(end.Err)
	case end.command != nil:
		return commandForNode(*end.command)
	case end.State == checkpoint.RunInterrupted:
		return pregel.Result{WaitingInterrupts: end.openInterrupts}
	case end.State == checkpoint.RunSucceeded:
		return pregel.Result{Update: c.outputForParent(child.state)}
	case end.State == checkpoint.RunRunning:
		return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{Reason: reasonStoppedHere}}}
	default:
		f := end.Failure
		if f == nil {
			f = &checkpoint.Failure{Reason: runtime.FailedNode, Message: "the subgraph was stopped"}
		}
		return pregel.Result{Failure: &pregel.Failure{Failure: *f}}
	}
}

// commandForNode returns a command to the enclosing graph as the result of the node that
// has the graph. The answers that its task has used are checked, and are not the node's.
func commandForNode(command pregel.Result) pregel.Result {
	command.ToParent, command.UsedAnswers = false, nil
	return command
}

// outputForParent returns the output of a subgraph without the keys its parent does not
// have.
func (c childGraph) outputForParent(child *pregel.State) payload.JSON {
	fr := c.parent
	var keys []int
	g := child.Graph()
	for _, i := range g.OutputKeys {
		if at, ok := fr.Graph().ChannelIndex(g.Channels[i].Name); ok && fr.Graph().Channels[at].IsStateKey {
			keys = append(keys, i)
		}
	}
	return child.Object(keys)
}

func (c childGraph) subgraphError(err error) pregel.Result {
	fr := c.parent
	if errors.Is(err, checkpoint.ErrUnavailable) || errors.Is(err, ErrLeaseLost) {
		fr.thread.Stop.AbandonRun() // the outcome of the node is unknown
	}
	f := &pregel.Failure{Failure: checkpoint.Failure{Reason: runtime.FailedNode, Message: err.Error()}}
	if own, ok := errors.AsType[*runtime.Error](err); ok {
		f.Reason, f.Message = own.Reason, own.Message
	}
	if _, bad := errors.AsType[*pregel.ResultError](err); bad {
		f.Reason, f.Permanent = runtime.FailedInvalidUpdate, true
	}
	if limit, beyond := errors.AsType[*graph.LimitError](err); beyond {
		f.Reason, f.Details, f.Permanent = runtime.FailedLimit, limit.Details(), true
	}
	return pregel.Result{Failure: f}
}
