package pregel

import (
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// UpdateError refuses the writes of a superstep because they do not fit a
// channel.
type UpdateError struct {
	Channel string
	Problem string
}

func (e *UpdateError) Error() string { return "channel " + e.Channel + ": " + e.Problem }

// channelEdit applies the writes of one superstep to one channel.
type channelEdit struct {
	spec       *graph.Channel
	channel    *checkpoint.Channel
	seq        uint64 // of the checkpoint under construction, 0 = not to be stored yet
	sharedUpTo uint64 // lists stored up to this checkpoint must not grow in place
	idSeed     string // seed for ids that a reducer makes
	// tail receives the appended elements of a look-ahead. It is nil for other
	// edits, and when the reducer reads the elements.
	tail *[]payload.JSON
	// messageIndex points to the ids in a list of messages, or to nil when
	// they are unknown. It is nil for other channels.
	messageIndex **payload.MessageIndex
	// listSize points to the size of a list, to be kept up to date; nil where that is
	// not needed.
	listSize *int64
}

// applyWrites combines the values written in one superstep, in path order, and
// reports whether the channel counts as changed.
func (c channelEdit) applyWrites(writes []checkpoint.Write) (bool, error) {
	switch c.spec.Kind {
	case graph.Last, graph.Guard, graph.Ephemeral, graph.Untracked:
		if len(writes) > 1 {
			return false, c.errorf("got %d values in one superstep but keeps only one; "+
				"give it a reducer that combines them, such as append or merge, or let one node write it", len(writes))
		}
		return c.setValue(writes[0].Value), nil
	case graph.Any, graph.Trigger:
		return c.setValue(writes[len(writes)-1].Value), nil
	case graph.LastFinish:
		c.channel.Flag = false
		return c.setValue(writes[len(writes)-1].Value), nil
	case graph.Barrier, graph.BarrierFinish:
		return c.recordArrivals(writes)
	case graph.TopicOnce:
		return c.replaceTopic(writes)
	case graph.Append, graph.Topic, graph.Messages, graph.Union:
		return c.updateList(writes)
	case graph.Add, graph.Merge, graph.DeepMerge, graph.Min, graph.Max:
		return c.foldValues(writes)
	case graph.ByWorker:
		return c.setCombined(writes)
	}
	return false, c.errorf("has an unknown kind")
}

func (c channelEdit) errorf(format string, args ...any) error {
	return &UpdateError{Channel: c.spec.Name, Problem: fmt.Sprintf(format, args...)}
}

func (c channelEdit) setValue(v payload.JSON) bool {
	c.channel.Value, c.channel.List, c.channel.Stored = v, nil, c.seq
	return true
}

// foldValues applies the reducers that keep a whole value.
func (c channelEdit) foldValues(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.findOverwrite(writes)
	if err != nil {
		return false, err
	}
	if overwritten {
		return c.setValue(writes[0].Value), nil
	}
	value := c.channel.Value
	if value == "" {
		value = c.spec.Default
	}
	for _, w := range writes {
		if value == "" {
			value = w.Value
			continue
		}
		if value, err = combineValues(c.spec.Kind, value, w.Value); err != nil {
			return false, c.errorf("%v", err)
		}
	}
	return c.setValue(value), nil
}

func combineValues(k graph.ChannelKind, a, b payload.JSON) (payload.JSON, error) {
	switch k {
	case graph.Add:
		return payload.Add(a, b)
	case graph.Merge:
		return payload.Merge(a, b)
	case graph.DeepMerge:
		return payload.DeepMerge(a, b)
	case graph.Min, graph.Max:
		less, err := payload.Less(b, a)
		if err != nil {
			return "", err
		}
		if less == (k == graph.Min) {
			return b, nil
		}
		return a, nil
	default:
		return b, nil
	}
}

// setCombined sets the value of a channel: the value that a worker has combined, or the
// first and only written value.
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

// findOverwrite finds the write that bypasses the reducer. It replaces the
// value and every other write of the superstep.
func (c channelEdit) findOverwrite(writes []checkpoint.Write) ([]checkpoint.Write, bool, error) {
	found := -1
	var value payload.JSON
	for i, w := range writes {
		v, ok := parseOverwrite(w)
		if !ok {
			continue
		}
		if found >= 0 {
			return nil, false, c.errorf("got two overwrites in one superstep; only one can win")
		}
		found, value = i, v
	}
	if found < 0 {
		return writes, false, nil
	}
	return []checkpoint.Write{{Channel: writes[found].Channel, Value: value}}, true, nil
}

// bypassesReducer reports whether a write to a channel of this kind may bypass its
// reducer. The other kinds keep every value as it is written.
func bypassesReducer(k graph.ChannelKind) bool {
	switch k {
	case graph.Append, graph.Topic, graph.Messages, graph.Union, graph.Add, graph.Merge, graph.DeepMerge,
		graph.Min, graph.Max, graph.ByWorker:
		return true
	default:
		return false
	}
}

// parseOverwrite recognises an overwrite by its mark or by the two spellings
// that survive JSON: {"__overwrite__": v} and {"type": "__overwrite__", "value": v}.
func parseOverwrite(w checkpoint.Write) (payload.JSON, bool) {
	if w.Overwrite {
		return w.Value, true
	}
	if payload.KindOf(w.Value) != payload.ObjectKind || !strings.Contains(string(w.Value), "__overwrite__") {
		return "", false
	}
	fields, err := payload.Fields(w.Value)
	switch {
	case err != nil:
		return "", false
	case len(fields) == 1 && fields[0].Key == "__overwrite__":
		return fields[0].Value, true
	case len(fields) == 2 && fields[0].Key == "type" && fields[0].Value == `"__overwrite__"` && fields[1].Key == "value":
		return fields[1].Value, true
	}
	return "", false
}
