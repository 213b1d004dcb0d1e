package pregel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ResultError refuses a node's result that is no update.
type ResultError struct {
	Problem string
}

func (e *ResultError) Error() string { return e.Problem }

// CompleteTask turns the result of a finished task into writes: its updates, its
// gotos, and those of its edges and conditional edges. routes holds the
// decisions of conditional edges that are made by code, by branch name. The
// errors are *TargetError, *ResultError, *UpdateError, or a failed expression.
func (s *State) CompleteTask(t *Task, r Result, routes map[string][]checkpoint.Send) ([]checkpoint.Write, error) {
	w := writeCollector{graph: s.graph, task: t, writes: make([]checkpoint.Write, 0, 4+len(r.Writes)+len(t.Node.Edges))}
	if err := w.addUpdates(r); err != nil {
		return nil, err
	}
	own := len(w.writes)
	for _, target := range r.Goto {
		if err := w.addTarget(target); err != nil {
			return nil, err
		}
	}
	w.addEdges()
	if err := s.limits.checkTaskWrites(s.graph, w.writes); err != nil { // before the edges see it
		return nil, err
	}
	if err := w.addBranches(s, own, r, routes); err != nil {
		return nil, err
	}
	if err := s.limits.checkTaskWrites(s.graph, w.writes); err != nil {
		return nil, err
	}
	return w.writes, nil
}

// CommandWrites turns an update and gotos that come with a call, not from a task, into
// writes. Errors: *ResultError, *TargetError.
func (s *State) CommandWrites(r Result) ([]checkpoint.Write, error) {
	w := writeCollector{graph: s.graph}
	if err := w.addUpdates(r); err != nil {
		return nil, err
	}
	for _, target := range r.Goto {
		if err := w.addTarget(target); err != nil {
			return nil, err
		}
	}
	return w.writes, nil
}

// OwnWrites returns the writes of a task itself to state keys, without those of its
// edges. The error is a *ResultError.
func (s *State) OwnWrites(t *Task, r Result) ([]checkpoint.Write, error) {
	w := writeCollector{graph: s.graph, task: t}
	err := w.addUpdates(r)
	return w.writes, err
}

// writeCollector collects the writes of one task.
type writeCollector struct {
	graph  *graph.Graph
	task   *Task // nil for a command
	writes []checkpoint.Write
}

func (w *writeCollector) isStart() bool { return w.task != nil && w.task.Node.Kind == graph.KindStart }

func (w *writeCollector) addUpdates(r Result) error {
	if err := w.addObject(r.Update); err != nil {
		return err
	}
	for _, x := range r.Writes {
		i, ok := w.graph.ChannelIndex(x.Channel)
		if !ok || !w.graph.Channels[i].IsStateKey {
			return &ResultError{Problem: fmt.Sprintf("unknown channel %q; the graph has %s",
				x.Channel, strings.Join(channelNames(w.graph, w.graph.StateKeys), ", "))}
		}
		w.writes = append(w.writes, x)
	}
	return nil
}

func (w *writeCollector) addObject(update payload.JSON) error {
	if update == "" || update == payload.Null {
		return nil
	}
	g := w.graph
	if _, root := g.ChannelIndex(rootChannel); root {
		w.writes = append(w.writes, checkpoint.Write{Channel: rootChannel, Value: update})
		return nil
	}
	if k := payload.KindOf(update); k != payload.ObjectKind {
		return &ResultError{Problem: fmt.Sprintf("the result must be an object with a key per channel, not %s %s", k, shortenValue(update))}
	}
	var problem error
	err := payload.EachField(update, func(key string, value payload.JSON) bool {
		i, ok := g.ChannelIndex(key)
		switch {
		case ok && g.Channels[i].IsStateKey && (!w.isStart() || slices.Contains(g.InputKeys, i)):
			w.writes = append(w.writes, checkpoint.Write{Channel: key, Value: value})
		case g.Spec.Strict:
			problem = &ResultError{Problem: fmt.Sprintf("unknown channel %q; the graph has %s",
				key, strings.Join(channelNames(g, g.StateKeys), ", "))}
			return false
		}
		return true
	})
	if err != nil {
		return &ResultError{Problem: "the result is not valid JSON: " + err.Error()}
	}
	return problem
}

// addTarget adds one target of a goto or a conditional edge.
func (w *writeCollector) addTarget(target checkpoint.Send) error {
	g := w.graph
	if target.Node == graph.End {
		if target.Input != "" {
			return &ResultError{Problem: "cannot send an input to the end of the graph"}
		}
		return nil
	}
	n, ok := g.Node(target.Node)
	if !ok || n.Kind == graph.KindStart {
		return &TargetError{Target: target.Node, Known: nodeNames(g)}
	}
	if target.Input != "" {
		w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[g.SendsChannel].Name, Value: encodeSend(target)})
		return nil
	}
	w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[n.TriggerChannel].Name, Value: payload.Null})
	return nil
}

func (w *writeCollector) addEdges() {
	g := w.graph
	for _, i := range w.task.Node.Edges {
		w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[i].Name, Value: payload.Null})
	}
	for _, i := range w.task.Node.Joins {
		w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[i].Name, Value: payload.Quote(w.task.Node.Name)})
	}
}

// shortenValue shortens a value for a message.
func shortenValue(v payload.JSON) string {
	const most = 60
	if len(v) <= most {
		return string(v)
	}
	return strings.ToValidUTF8(string(v[:most]), "") + "…"
}

// channelNames lists channels by position, for messages.
func channelNames(g *graph.Graph, positions []int) []string {
	names := make([]string, len(positions))
	for i, p := range positions {
		names[i] = g.Channels[p].Name
	}
	return names
}
