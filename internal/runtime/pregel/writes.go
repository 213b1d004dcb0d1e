package pregel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TargetError says that a goto, a Send or a conditional edge names a node that
// the graph does not have.
type TargetError struct {
	Target string
	Known  []string
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("no node %q to go to; the graph has %s", e.Target, strings.Join(e.Known, ", "))
}

// ResultError says that a node's result can't be taken as an update.
type ResultError struct {
	Problem string
}

func (e *ResultError) Error() string { return e.Problem }

// CompleteTask turns the result of a finished task into writes: its updates, its
// gotos, and what its edges and conditional edges do. Routes holds the
// decisions of conditional edges that are made by code, by branch name. The
// errors are *TargetError, *ResultError, *UpdateError, or a failed expression.
func (s *State) CompleteTask(t *Task, r Result, routes map[string][]checkpoint.Send) ([]checkpoint.Write, error) {
	w := writeCollector{state: s, task: t, writes: make([]checkpoint.Write, 0, 4+len(r.Writes)+len(t.Node.Edges))}
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
	if err := s.checkTaskWrites(w.writes); err != nil { // before the edges look at it
		return nil, err
	}
	if err := w.addBranches(own, r, routes); err != nil {
		return nil, err
	}
	if err := s.checkTaskWrites(w.writes); err != nil {
		return nil, err
	}
	return w.writes, nil
}

// CommandWrites turns an update and gotos that come with a call, not from a task,
// into writes.
func (s *State) CommandWrites(r Result) ([]checkpoint.Write, error) {
	w := writeCollector{state: s}
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

// InputWrites turns the input of a run into the write that starts it. Keys that the
// graph does not take are dropped by the start node, or refused here when the
// graph is strict; an input without any key starts the graph all the same.
func (s *State) InputWrites(input payload.JSON) ([]checkpoint.Write, error) {
	if err := s.checkInput(input); err != nil {
		return nil, err
	}
	return []checkpoint.Write{{Channel: s.graph.Channels[s.graph.StartChannel].Name, Value: input}}, nil
}

// RestrictInput leaves of an input what the graph takes.
func (s *State) RestrictInput(input payload.JSON) payload.JSON {
	w := writeCollector{state: s, task: &Task{Node: s.graph.Nodes[0]}}
	if err := w.addObject(input); err != nil {
		return input
	}
	if len(w.writes) == 0 {
		return "{}"
	}
	return s.UpdateOf(w.writes)
}

// checkInput checks the keys of an input.
func (s *State) checkInput(input payload.JSON) error {
	if _, root := s.graph.ChannelIndex(rootChannel); root {
		return nil
	}
	fields, err := payload.Fields(input)
	if err != nil {
		return &ResultError{Problem: "the input must be an object with a key per channel: " + err.Error()}
	}
	if !s.graph.Spec.Strict {
		return nil
	}
	for _, f := range fields {
		if i, ok := s.graph.ChannelIndex(f.Key); !ok || !slices.Contains(s.graph.InputKeys, i) {
			return &ResultError{Problem: fmt.Sprintf("unknown input key %q; the graph takes %s",
				f.Key, strings.Join(channelNames(s.graph, s.graph.InputKeys), ", "))}
		}
	}
	return nil
}

// CodeBranches lists the conditional edges of a node that code decides.
func CodeBranches(n *graph.Node) []graph.Branch {
	var out []graph.Branch
	for _, b := range n.Branches {
		if b.Router != "" {
			out = append(out, b)
		}
	}
	return out
}

// BranchState returns the state as a conditional edge of the task sees it: with the
// updates of the task itself, and of no other.
func (s *State) BranchState(t *Task, r Result) (*State, error) {
	w := writeCollector{state: s, task: t}
	if err := w.addUpdates(r); err != nil {
		return nil, err
	}
	return s.lookAhead(replaceCombined(w.writes, r.CombinedValues))
}

// writeCollector collects the writes of one task.
type writeCollector struct {
	state  *State
	task   *Task // nil for a command
	writes []checkpoint.Write
}

func (w *writeCollector) isStart() bool { return w.task != nil && w.task.Node.Kind == graph.KindStart }

func (w *writeCollector) addUpdates(r Result) error {
	if err := w.addObject(r.Update); err != nil {
		return err
	}
	for _, x := range r.Writes {
		i, ok := w.state.graph.ChannelIndex(x.Channel)
		if !ok || !w.state.graph.Channels[i].IsStateKey {
			return &ResultError{Problem: fmt.Sprintf("unknown channel %q; the graph has %s",
				x.Channel, strings.Join(channelNames(w.state.graph, w.state.graph.StateKeys), ", "))}
		}
		w.writes = append(w.writes, x)
	}
	return nil
}

func (w *writeCollector) addObject(update payload.JSON) error {
	if update == "" || update == payload.Null {
		return nil
	}
	g := w.state.graph
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

// shortenValue shortens a value for a message.
func shortenValue(v payload.JSON) string {
	const most = 60
	if len(v) <= most {
		return string(v)
	}
	return strings.ToValidUTF8(string(v[:most]), "") + "…"
}

// addTarget adds one target of a goto or a conditional edge.
func (w *writeCollector) addTarget(target checkpoint.Send) error {
	g := w.state.graph
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
	g := w.state.graph
	for _, i := range w.task.Node.Edges {
		w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[i].Name, Value: payload.Null})
	}
	for _, i := range w.task.Node.Joins {
		w.writes = append(w.writes, checkpoint.Write{Channel: g.Channels[i].Name, Value: payload.Quote(w.task.Node.Name)})
	}
}

// addBranches decides the conditional edges; they see the state with the first
// own writes of this task applied.
func (w *writeCollector) addBranches(own int, r Result, routes map[string][]checkpoint.Send) error {
	n := w.task.Node
	if len(n.Branches) == 0 {
		return nil
	}
	ahead, err := w.state.lookAhead(replaceCombined(w.writes[:own:own], r.CombinedValues))
	if err != nil {
		return err
	}
	vars := graph.Vars{State: ahead.FullView(), Input: w.task.Input}
	for _, b := range n.Branches {
		targets, err := decideBranch(b, vars, routes)
		if err != nil {
			return fmt.Errorf("conditional edge %s of %s: %w", b.Name, n.Name, err)
		}
		for _, t := range targets {
			if err := w.addTarget(t); err != nil {
				return fmt.Errorf("conditional edge %s of %s: %w", b.Name, n.Name, err)
			}
		}
	}
	return nil
}

func decideBranch(b graph.Branch, vars graph.Vars, routes map[string][]checkpoint.Send) ([]checkpoint.Send, error) {
	switch {
	case b.Router != "":
		return mapPaths(b.Paths, routes[b.Name])
	case b.Expr != nil:
		v, err := b.Expr.Eval(vars)
		if err != nil {
			return nil, err
		}
		targets, err := ParseTargets(v)
		if err != nil {
			return nil, err
		}
		return mapPaths(b.Paths, targets)
	}
	for _, c := range b.Cases {
		holds := true
		if c.When != nil {
			v, err := c.When.Eval(vars)
			if err != nil {
				return nil, err
			}
			holds = v == "true"
			if !holds && v != "false" {
				return nil, &ResultError{Problem: "a condition must be true or false, not " + shortenValue(v)}
			}
		}
		if holds {
			targets := make([]checkpoint.Send, len(c.To))
			for i, to := range c.To {
				targets[i].Node = to
			}
			return targets, nil
		}
	}
	return nil, nil
}

// mapPaths looks up the keys of a conditional edge; Sends pass as they are.
func mapPaths(paths map[string]string, targets []checkpoint.Send) ([]checkpoint.Send, error) {
	if paths == nil {
		return targets, nil
	}
	out := make([]checkpoint.Send, len(targets))
	for i, t := range targets {
		out[i] = t
		if t.Input != "" {
			continue
		}
		node, ok := paths[t.Node]
		if !ok {
			known := make([]string, 0, len(paths))
			for k := range paths {
				known = append(known, k)
			}
			slices.Sort(known)
			return nil, &TargetError{Target: t.Node, Known: known}
		}
		out[i].Node = node
	}
	return out, nil
}

// errNoTarget answers a conditional edge or goto that yields nothing usable.
var errNoTarget = errors.New("must yield a node name, a Send, or a list of them")

// ParseTargets reads what a goto or a conditional edge yielded: a name, a Send as
// {"$send": [node, input]}, or a list of those.
func ParseTargets(v payload.JSON) ([]checkpoint.Send, error) {
	switch payload.KindOf(v) {
	case payload.String:
		name, err := payload.Unquote(v)
		if err != nil {
			return nil, err
		}
		return []checkpoint.Send{{Node: name}}, nil
	case payload.ObjectKind:
		t, err := parseSend(v)
		return []checkpoint.Send{t}, err
	case payload.ArrayKind:
		return parseTargetList(v)
	default:
		return nil, fmt.Errorf("%w, not %s", errNoTarget, shortenValue(v))
	}
}

func parseTargetList(v payload.JSON) ([]checkpoint.Send, error) {
	items, err := payload.Elements(v)
	if err != nil {
		return nil, err
	}
	out := make([]checkpoint.Send, 0, len(items))
	for _, item := range items {
		if payload.KindOf(item) == payload.ArrayKind {
			return nil, fmt.Errorf("%w, not a list in a list", errNoTarget)
		}
		one, err := ParseTargets(item)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

func parseSend(v payload.JSON) (checkpoint.Send, error) {
	pair, ok := payload.Lookup(v, "$send")
	if !ok {
		return checkpoint.Send{}, fmt.Errorf("%w, not %s", errNoTarget, shortenValue(v))
	}
	parts, err := payload.Elements(pair)
	if err != nil || len(parts) != 2 {
		return checkpoint.Send{}, fmt.Errorf("a Send is {\"$send\": [node, input]}, not %s", shortenValue(v))
	}
	name, err := payload.Unquote(parts[0])
	if err != nil {
		return checkpoint.Send{}, fmt.Errorf("a Send names a node, not %s", shortenValue(parts[0]))
	}
	return checkpoint.Send{Node: name, Input: parts[1]}, nil
}

// UpdateOf is what a task's writes look like in an event or a snapshot: an
// object of the state keys it wrote, null when it wrote none, and a list of
// single-key objects when it wrote a key more than once.
func (s *State) UpdateOf(writes []checkpoint.Write) payload.JSON {
	var few [8]payload.Field // on the stack; more fields spill to the heap
	fields := few[:0]
	repeated := false
	for _, w := range writes {
		i, ok := s.graph.ChannelIndex(w.Channel)
		if !ok || !s.graph.Channels[i].IsStateKey {
			continue
		}
		for _, f := range fields {
			repeated = repeated || f.Key == w.Channel
		}
		fields = append(fields, payload.Field{Key: w.Channel, Value: w.Value})
	}
	switch {
	case len(fields) == 0:
		return payload.Null
	case !repeated:
		return singleUpdate(fields)
	}
	items := make([]payload.JSON, len(fields))
	for i := range fields {
		items[i] = singleUpdate(fields[i : i+1])
	}
	return payload.Array(items)
}

// singleUpdate returns an object, or the bare value where the state is one value.
func singleUpdate(fields []payload.Field) payload.JSON {
	if fields[0].Key == rootChannel {
		return fields[0].Value
	}
	return payload.Object(fields)
}
