package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Reduction is a request for the new value of a channel whose reducer a worker
// has. It holds the present value and the writes of one superstep, in order.
type Reduction struct {
	Channel  string
	Function string
	Current  payload.JSON // "" before the first write; then there are at least two Writes
	Writes   []payload.JSON
}

// ReductionID returns the id of the reduction of a channel in the superstep
// after the checkpoint base.
func ReductionID(base, namespace, channel string) string {
	var r idBuffer
	return hashID(appendParts(r[:0], "reduction", base, namespace, channel))
}

// Reductions lists the channels whose new values must be computed elsewhere
// before the writes of these tasks can be applied. The order of done does not
// matter.
func (s *State) Reductions(done []TaskWrites) []Reduction {
	if !s.graph.HasWorkerReducer() {
		return nil
	}
	done = slices.Clone(done)
	slices.SortStableFunc(done, compareByPath)
	var out []Reduction
	for i := range s.graph.Channels {
		if s.graph.Channels[i].Kind != graph.ByWorker {
			continue
		}
		if r, ok := reductionOf(&s.values, i, done); ok {
			out = append(out, r)
		}
	}
	return out
}

// reductionOf returns the reduction that one channel needs. A value that replaces
// another, and the first value ever, need no function.
func reductionOf(v *values, i int, done []TaskWrites) (Reduction, bool) {
	spec := &v.graph.Channels[i]
	r := Reduction{Channel: spec.Name, Function: spec.Function}
	r.Current, _ = v.valueAt(i)
	for _, d := range done {
		for _, w := range d.Writes {
			if w.Channel != spec.Name {
				continue
			}
			if _, over := parseOverwrite(w); over {
				return r, false
			}
			r.Writes = append(r.Writes, w.Value)
		}
	}
	if r.Current == "" {
		return r, len(r.Writes) > 1
	}
	return r, len(r.Writes) > 0
}
