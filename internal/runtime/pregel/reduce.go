package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Reduction asks for the new value of a channel whose reducer is not known
// here: what it holds, and what one superstep writes to it, in order.
type Reduction struct {
	Channel  string
	Function string
	Current  payload.JSON // "" before the first write; then there are at least two Writes
	Writes   []payload.JSON
}

// ReductionID names the work of combining what a superstep, after the
// checkpoint base, writes to a channel.
func ReductionID(base, namespace, channel string) string {
	var r room
	return id(text(r[:0], "reduction", base, namespace, channel))
}

// Reductions lists what must be computed elsewhere before the writes of these
// tasks can be applied, by channel. The order of done does not matter.
func (s *State) Reductions(done []Done) []Reduction {
	if !s.graph.ByWorker() {
		return nil
	}
	done = slices.Clone(done)
	slices.SortStableFunc(done, byPath)
	var out []Reduction
	for i := range s.graph.Channels {
		if s.graph.Channels[i].Kind != graph.ByWorker {
			continue
		}
		if r, ok := s.reduction(i, done); ok {
			out = append(out, r)
		}
	}
	return out
}

// reduction is what one channel needs. A value that replaces another, and the
// first one ever, need no function.
func (s *State) reduction(i int, done []Done) (Reduction, bool) {
	spec := &s.graph.Channels[i]
	r := Reduction{Channel: spec.Name, Function: spec.Function}
	r.Current, _ = s.value(i)
	for _, d := range done {
		for _, w := range d.Writes {
			if w.Channel != spec.Name {
				continue
			}
			if _, over := overwriteValue(w); over {
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

// Reduced replaces what was written to a channel by the value that it comes to.
func Reduced(done []Done, channel string, value payload.JSON) []Done {
	out := slices.Clone(done)
	set := false
	for i := range out {
		if !slices.ContainsFunc(out[i].Writes, func(w checkpoint.Write) bool { return w.Channel == channel }) {
			continue
		}
		writes := make([]checkpoint.Write, 0, len(out[i].Writes))
		for _, w := range out[i].Writes {
			switch {
			case w.Channel != channel:
				writes = append(writes, w)
			case !set:
				writes, set = append(writes, checkpoint.Write{Channel: channel, Value: value, Overwrite: true}), true
			}
		}
		out[i].Writes = writes
	}
	return out
}

// Without leaves out what was written to a channel.
func Without(done []Done, channel string) []Done {
	out := slices.Clone(done)
	for i := range out {
		out[i].Writes = slices.DeleteFunc(slices.Clone(out[i].Writes), func(w checkpoint.Write) bool {
			return w.Channel == channel
		})
	}
	return out
}

// Own returns what a task itself writes to state keys, without its edges.
func (s *State) Own(t *Task, r Result) ([]checkpoint.Write, error) {
	w := writer{state: s, task: t}
	err := w.updates(r)
	return w.writes, err
}

// foreseen replaces the writes to channels that a worker has combined.
func foreseen(writes []checkpoint.Write, values map[string]payload.JSON) []checkpoint.Write {
	done := []Done{{Writes: writes}}
	for channel, value := range values {
		done = Reduced(done, channel, value)
	}
	return done[0].Writes
}

// place sets the value of a channel that a worker has combined, or the only
// one that was ever written.
func (c cell) place(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.overwrite(writes)
	if err != nil {
		return false, err
	}
	if !overwritten && (len(writes) > 1 || c.ch.Value != "" || c.spec.Default != "") {
		return false, c.errorf("is combined by function %q of a worker, which cannot be asked here; "+
			"write {\"__overwrite__\": value} to set it", c.spec.Function)
	}
	return c.set(writes[0].Value), nil
}
