package listing

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// parseFilterField parses a filter. Its violations name the field.
func parseFilterField(v *wire.Validator, field, text string, allowed ...string) []condition {
	conditions, err := parseFilter(text, allowed)
	if err != nil {
		v.AddViolation(field, "%v", err)
	}
	return conditions
}

// anyState is the value of state that means all states.
const anyState = "*"

// parseFilterState returns the domain name of a state in a filter, given in any
// case, with or without the prefix of the enum.
func parseFilterState(v *wire.Validator, field string, values map[string]int32, prefix, text string) string {
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, prefix) {
		name = prefix + name
	}
	if n, known := values[name]; known && n != 0 {
		return strings.ToLower(strings.TrimPrefix(name, prefix))
	}
	var known []string
	for state, n := range values {
		if n != 0 {
			known = append(known, strings.TrimPrefix(state, prefix))
		}
	}
	slices.Sort(known)
	v.AddViolation(field, "%q is not a state; known are %s", reason.ClipText(text, wire.MaxNameLength), strings.Join(known, ", "))
	return ""
}

// uuidField leaves out threads whose ids are no UUIDs.
const uuidField = "uuid"

// ThreadQueryFromFilter converts a filter of the threads of the request's tenant.
func ThreadQueryFromFilter(v *wire.Validator, filter string) checkpoint.ThreadQuery {
	q := checkpoint.ThreadQuery{Tenant: v.Tenant()}
	for _, c := range parseFilterField(v, "filter", filter, "state", "graph", metadataField, uuidField) {
		switch c.Field {
		case uuidField:
			q.OnlyUUIDs = c.Value == "true"
			if !q.OnlyUUIDs {
				v.AddViolation("filter", `uuid can only be "true"`)
			}
		case "state":
			q.State = checkpoint.ThreadState(parseFilterState(v, "filter", graphdv1.ThreadState_value, "THREAD_STATE_", c.Value))
		case "graph":
			q.Graph = v.CheckFilterName("filter", c.Value)
		case metadataField:
			if q.Metadata == nil {
				q.Metadata = make(map[string]string)
			}
			q.Metadata[c.Key] = c.Value
		}
	}
	return q
}

// RunPredicateFromFilter converts a filter over the runs of one thread.
func RunPredicateFromFilter(v *wire.Validator, filter string) func(checkpoint.Run) bool {
	conditions := parseFilterField(v, "filter", filter, "state", "graph", metadataField)
	for i, c := range conditions {
		switch c.Field {
		case "state":
			conditions[i].Value = parseFilterState(v, "filter", graphdv1.RunState_value, "RUN_STATE_", c.Value)
		case "graph":
			conditions[i].Value = v.CheckFilterName("filter", c.Value)
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
