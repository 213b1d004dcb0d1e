package transport

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// filterIn parses a filter and blames the field for what is wrong with it.
func filterIn(b *border, text string, allowed ...string) []condition {
	conditions, err := parseFilter(text, allowed)
	if err != nil {
		b.refuse("filter", "%v", err)
	}
	return conditions
}

// anyState is the value of state that stands for all.
const anyState = "*"

// stateIn finds the word of the domain for a state in a filter, given in any
// case, with or without the prefix of the enum.
func stateIn(b *border, values map[string]int32, prefix, text string) string {
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, prefix) {
		name = prefix + name
	}
	if n, known := values[name]; known && n != 0 {
		return strings.ToLower(strings.TrimPrefix(name, prefix))
	}
	var known []string
	for v, n := range values {
		if n != 0 {
			known = append(known, strings.TrimPrefix(v, prefix))
		}
	}
	slices.Sort(known)
	b.refuse("filter", "%q is not a state; known are %s", clip(text, maxName), strings.Join(known, ", "))
	return ""
}

func threadQueryIn(b *border, filter string) checkpoint.ThreadQuery {
	var q checkpoint.ThreadQuery
	for _, c := range filterIn(b, filter, "state", "graph", metadataField) {
		switch c.Field {
		case "state":
			q.State = checkpoint.ThreadState(stateIn(b, graphdv1.ThreadState_value, "THREAD_STATE_", c.Value))
		case "graph":
			q.Graph = c.Value
		case metadataField:
			if q.Metadata == nil {
				q.Metadata = make(map[string]string)
			}
			q.Metadata[c.Key] = c.Value
		}
	}
	return q
}

// interruptQueryIn converts a filter over questions. fallback are the states
// that are meant when the filter asks for none.
func interruptQueryIn(b *border, filter, thread string, fallback ...checkpoint.InterruptState) checkpoint.InterruptQuery {
	q := checkpoint.InterruptQuery{Thread: thread, States: fallback}
	conditions := filterIn(b, filter,
		"state", "graph", "node", "reason", "assignee", "thread_id", "run_id")
	for _, c := range conditions {
		switch c.Field {
		case "state":
			q.States = nil
			if c.Value != anyState {
				s := stateIn(b, graphdv1.InterruptState_value, "INTERRUPT_STATE_", c.Value)
				q.States = []checkpoint.InterruptState{checkpoint.InterruptState(s)}
			}
		case "graph":
			q.Graph = c.Value
		case "node":
			q.Node = c.Value
		case "reason":
			q.Reason = c.Value
		case "assignee":
			q.Assignee = c.Value
		case "thread_id":
			if thread != "" && thread != c.Value {
				b.refuse("filter", "thread_id differs from the request's thread_id")
			}
			q.Thread = c.Value
		case "run_id":
			q.Run = c.Value
		}
	}
	return q
}

// runFilterIn converts a filter over the runs of one thread.
func runFilterIn(b *border, filter string) func(checkpoint.Run) bool {
	conditions := filterIn(b, filter, "state", "graph", metadataField)
	for i, c := range conditions {
		if c.Field == "state" {
			conditions[i].Value = stateIn(b, graphdv1.RunState_value, "RUN_STATE_", c.Value)
		}
	}
	return func(r checkpoint.Run) bool {
		for _, c := range conditions {
			got := r.Graph
			switch c.Field {
			case "state":
				got = string(r.State)
			case metadataField:
				got = r.Metadata[c.Key]
			}
			if got != c.Value {
				return false
			}
		}
		return true
	}
}
