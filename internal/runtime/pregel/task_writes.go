package pregel

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TaskWrites is a finished task with its writes. A failed task whose error handler
// has run has no writes. Without a task they are the writes of a call.
type TaskWrites struct {
	Task   *Task
	Writes []checkpoint.Write
}

func countWrites(done []TaskWrites) (n int) {
	for i := range done {
		n += len(done[i].Writes)
	}
	return n
}

// WriteBytes returns the size of writes as the limit of a superstep counts it.
func WriteBytes(writes []checkpoint.Write) (n int64) {
	for i := range writes {
		n += int64(len(writes[i].Value))
	}
	return n
}

// ReplaceWrites replaces the writes to a channel by their combined value.
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

// DropWrites returns the tasks without their writes to a channel.
func DropWrites(done []TaskWrites, channel string) []TaskWrites {
	out := slices.Clone(done)
	for i := range out {
		out[i].Writes = slices.DeleteFunc(slices.Clone(out[i].Writes), func(w checkpoint.Write) bool {
			return w.Channel == channel
		})
	}
	return out
}

// compareByPath orders tasks as LangGraph does: writes without a task first, triggered
// tasks by node name, Sends by position, a handler where its task was.
func compareByPath(a, b TaskWrites) int {
	if a.Task == nil || b.Task == nil {
		return cmp.Compare(pathRank(a.Task), pathRank(b.Task))
	}
	x, y := a.Task.failedOrSelf(), b.Task.failedOrSelf()
	if x.IsPush != y.IsPush {
		return cmp.Compare(pathRank(x), pathRank(y))
	}
	if x.IsPush {
		return cmp.Compare(x.Index, y.Index)
	}
	return cmp.Compare(x.Node.Name, y.Node.Name)
}

func pathRank(t *Task) int {
	switch {
	case t == nil:
		return 0
	case !t.failedOrSelf().IsPush:
		return 1
	default:
		return 2
	}
}
