package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RouteError says that the function of a [Builder.Route] has chosen a node that the route does not
// name. The node from which the route leads fails with it, for good.
type RouteError struct {
	From    string   // the node from which the route leads
	Target  string   // what was chosen
	Allowed []string // what the route names
}

// Error says what would be right.
func (e *RouteError) Error() string {
	quoted := make([]string, len(e.Allowed))
	for i, name := range e.Allowed {
		quoted[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("the route from %q has chosen %q: want one of %s, which it names, or graph.End", e.From, e.Target, strings.Join(quoted, ", "))
}

// checkedFunc returns the function of a route, which fails with a RouteError where it chooses what the
// route does not name.
func (r *route) checkedFunc() Func {
	if len(r.to) == 0 {
		return r.decide
	}
	return func(ctx context.Context, s State) (any, error) {
		decision, err := r.decide(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, name := range chosenNodes(decision) {
			if name != End && name != "" && !slices.Contains(r.to, name) {
				return nil, &RouteError{From: r.from, Target: name, Allowed: slices.Clone(r.to)}
			}
		}
		return decision, nil
	}
}

// chosenNodes returns the nodes that a decision names. What is no decision names none: it is refused
// where it is used.
func chosenNodes(decision any) []string {
	switch d := decision.(type) {
	case nil:
		return nil
	case string:
		return []string{d}
	case []string:
		return d
	case Target:
		return []string{d.Node}
	case []Target:
		names := make([]string, len(d))
		for i := range d {
			names[i] = d[i].Node
		}
		return names
	}
	text, err := encodeJSON(decision)
	if err != nil {
		return nil
	}
	return namesInJSON(text)
}

// namesInJSON returns the nodes that a decision in JSON names: a name, a Send, or a list of them.
func namesInJSON(text json.RawMessage) []string {
	var form any
	if decodeJSON(text, &form) != nil {
		return nil
	}
	all, isList := form.([]any)
	if !isList {
		all = []any{form}
	}
	var names []string
	for _, one := range all {
		if send, ok := one.(map[string]any); ok {
			if pair, ok := send["$send"].([]any); ok && len(pair) > 0 {
				one = pair[0]
			}
		}
		if name, ok := one.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
