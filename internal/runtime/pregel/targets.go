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

// TargetError refuses a goto, a Send or a conditional edge to a node that the
// graph does not have.
type TargetError struct {
	Target string
	Known  []string
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("no node %q to go to; the graph has %s", e.Target, strings.Join(e.Known, ", "))
}

// errNoTarget refuses a conditional edge or goto without a usable target.
var errNoTarget = errors.New("must yield a node name, a Send, or a list of them")

// ParseTargets reads the value of a goto or a conditional edge: a name, a Send as
// {"$send": [node, input]}, or a list of both. The error names the expected form.
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

// encodeSend returns the stored form of a Send in its channel.
func encodeSend(s checkpoint.Send) payload.JSON {
	return payload.Object([]payload.Field{
		{Key: "node", Value: payload.Quote(s.Node)}, {Key: "input", Value: s.Input},
	})
}

func decodeSend(item payload.JSON) (node string, input payload.JSON, err error) {
	name, _ := payload.Lookup(item, "node")
	input, ok := payload.Lookup(item, "input")
	if node, err = payload.Unquote(name); err != nil {
		return "", "", err
	}
	if !ok {
		input = payload.Null
	}
	return node, input, nil
}

// nodeNames lists the nodes that a caller may name, for messages.
func nodeNames(g *graph.Graph) []string {
	names := make([]string, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		if n.Kind != graph.KindStart {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}
