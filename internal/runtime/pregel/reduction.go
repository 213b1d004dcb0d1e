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
	var r idBuffer
	return hashID(appendParts(r[:0], "reduction", base, namespace, channel))
}

// Reductions lists what must be computed elsewhere before the writes of these
// tasks can be applied, by channel. The order of done does not matter.
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
		if r, ok := s.reductionOf(i, done); ok {
			out = append(out, r)
		}
	}
	return out
}

// reductionOf returns the reduction that one channel needs. A value that replaces
// another, and the first one ever, need no function.
func (s *State) reductionOf(i int, done []TaskWrites) (Reduction, bool) {
	spec := &s.graph.Channels[i]
	r := Reduction{Channel: spec.Name, Function: spec.Function}
	r.Current, _ = s.valueAt(i)
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

// ReplaceWrites replaces what was written to a channel by the value that it comes to.
func ReplaceWrites(done []TaskWrites, channel string, value payload.JSON) []TaskWrites {
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

// DropWrites leaves out what was written to a channel.
func DropWrites(done []TaskWrites, channel string) []TaskWrites {
	out := slices.Clone(done)
	for i := range out {
		out[i].Writes = slices.DeleteFunc(slices.Clone(out[i].Writes), func(w checkpoint.Write) bool {
			return w.Channel == channel
		})
	}
	return out
}

// OwnWrites returns what a task itself writes to state keys, without its edges.
func (s *State) OwnWrites(t *Task, r Result) ([]checkpoint.Write, error) {
	w := writeCollector{state: s, task: t}
	err := w.addUpdates(r)
	return w.writes, err
}

// replaceCombined replaces the writes to channels that a worker has combined.
func replaceCombined(writes []checkpoint.Write, values map[string]payload.JSON) []checkpoint.Write {
	done := []TaskWrites{{Writes: writes}}
	for channel, value := range values {
		done = ReplaceWrites(done, channel, value)
	}
	return done[0].Writes
}

// setCombined sets the value of a channel that a worker has combined, or the only
// one that was ever written.
func (c channelEdit) setCombined(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.findOverwrite(writes)
	if err != nil {
		return false, err
	}
	if !overwritten && (len(writes) > 1 || c.channel.Value != "" || c.spec.Default != "") {
		return false, c.errorf("is combined by function %q of a worker, which cannot be asked here; "+
			"write {\"__overwrite__\": value} to set it", c.spec.Function)
	}
	return c.setValue(writes[0].Value), nil
}
