package pregel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// UpdateError says that the writes of a superstep do not fit a channel.
type UpdateError struct {
	Channel string
	Problem string
}

func (e *UpdateError) Error() string { return "channel " + e.Channel + ": " + e.Problem }

// cell is one channel while a superstep is applied to it.
type cell struct {
	spec  *graph.Channel
	ch    *checkpoint.Channel
	seq   uint64 // of the checkpoint under construction, 0 = not to be stored yet
	seal  uint64 // lists begun up to this number must not grow in place
	extra string // seed for ids that a reducer makes
	// tail takes what is appended when the state is only looked at ahead; nil
	// when it is not, or when the reducer looks at the elements.
	tail *[]payload.JSON
	// index knows the ids of a list of messages; it points to nil when nobody
	// does, and is nil for other channels.
	index **payload.MessageIndex
	// size is that of a list, which is kept up to date; nil where it need not be.
	size *int64
}

// isList reports whether a channel is stored element by element.
func isList(k graph.Kind) bool {
	switch k {
	case graph.Append, graph.Topic, graph.TopicOnce, graph.Messages, graph.Union:
		return true
	default:
		return false
	}
}

// available reports whether a trigger channel is ready to fire.
func available(spec *graph.Channel, ch *checkpoint.Channel) bool {
	switch spec.Kind {
	case graph.LastFinish:
		return ch.Value != "" && ch.Flag
	case graph.Barrier:
		return full(spec, ch)
	case graph.BarrierFinish:
		return full(spec, ch) && ch.Flag
	case graph.Topic, graph.TopicOnce:
		return ch.List != nil && len(ch.List.Items) > 0
	default:
		return ch.Value != "" || ch.List != nil
	}
}

func full(spec *graph.Channel, ch *checkpoint.Channel) bool {
	return ch.List != nil && len(ch.List.Items) == len(spec.Members)
}

// update combines the values written in one superstep, in path order, and
// reports whether the channel counts as changed.
func (c cell) update(writes []checkpoint.Write) (bool, error) {
	switch c.spec.Kind {
	case graph.Last, graph.Guard, graph.Ephemeral, graph.Untracked:
		if len(writes) > 1 {
			return false, c.errorf("got %d values in one superstep but keeps only one; "+
				"give it a reducer that combines them, such as append or merge, or let one node write it", len(writes))
		}
		return c.set(writes[0].Value), nil
	case graph.Any, graph.Trigger:
		return c.set(writes[len(writes)-1].Value), nil
	case graph.LastFinish:
		c.ch.Flag = false
		return c.set(writes[len(writes)-1].Value), nil
	case graph.Barrier, graph.BarrierFinish:
		return c.arrive(writes)
	case graph.TopicOnce:
		return c.replaceTopic(writes), nil
	case graph.Append, graph.Topic, graph.Messages, graph.Union:
		return c.updateList(writes)
	case graph.Add, graph.Merge, graph.DeepMerge, graph.Min, graph.Max:
		return c.fold(writes)
	case graph.ByWorker:
		return c.place(writes)
	}
	return false, c.errorf("has an unknown kind")
}

func (c cell) errorf(format string, args ...any) error {
	return &UpdateError{Channel: c.spec.Name, Problem: fmt.Sprintf(format, args...)}
}

func (c cell) set(v payload.JSON) bool {
	c.ch.Value, c.ch.List, c.ch.Stored = v, nil, c.seq
	return true
}

// arrive records which members of a join have reported.
func (c cell) arrive(writes []checkpoint.Write) (bool, error) {
	var items []payload.JSON
	if c.ch.List != nil {
		items = c.ch.List.Items
	}
	changed := false
	for _, w := range writes {
		name, err := payload.Unquote(w.Value)
		if err != nil || !slices.Contains(c.spec.Members, name) {
			return false, c.errorf("waits for %s, not for %s", strings.Join(c.spec.Members, ", "), w.Value)
		}
		if !slices.Contains(items, w.Value) {
			items = append(slices.Clip(items), w.Value)
			changed = true
		}
	}
	if changed {
		c.restart(items)
	}
	return changed, nil
}

// restart stores a list anew.
func (c cell) restart(items []payload.JSON) {
	if c.index != nil {
		*c.index = nil
	}
	if c.size != nil {
		*c.size = itemBytes(items)
	}
	c.ch.Value = ""
	c.ch.List = &checkpoint.List{
		Items: items, Segments: []checkpoint.Segment{{ID: c.seq, Len: len(items)}}, Fresh: len(items),
	}
	c.ch.Stored = c.seq
}

// grow appends to a list, sharing what is there already. The spare room behind
// the elements belongs to the next checkpoint alone: what is only looked at
// ahead, perhaps by several tasks at once, must not write there.
func (c cell) grow(items []payload.JSON) {
	old := c.ch.List
	if c.size != nil {
		*c.size += itemBytes(items)
	}
	if c.tail != nil {
		*c.tail = append(*c.tail, items...)
		if old == nil {
			c.ch.List = &checkpoint.List{}
		}
		return
	}
	if old != nil && c.seq == 0 {
		clipped := *old
		clipped.Items = slices.Clip(old.Items)
		old = &clipped
	}
	if old == nil || len(old.Segments) == 0 {
		var head []payload.JSON
		if old != nil {
			head = old.Items
		}
		c.restart(append(slices.Clip(head), items...))
		return
	}
	next := &checkpoint.List{Fresh: len(items), Segments: slices.Clone(old.Segments)}
	tail := &next.Segments[len(next.Segments)-1]
	switch {
	case c.ch.Stored == 0 || c.ch.Stored == c.seq: // grown since the last checkpoint
		next.Items = append(old.Items, items...) //nolint:gocritic // the spare room is this branch's own
		next.Fresh += old.Fresh
		tail.Len += len(items)
		if tail.ID == 0 { // begun between two checkpoints
			tail.ID = c.seq
		}
	case tail.ID <= c.seal:
		// Another branch may append to the same stored list.
		next.Items = append(slices.Clip(old.Items), items...)
		next.Segments = append(next.Segments, checkpoint.Segment{ID: c.seq, Len: len(items)})
	default:
		next.Items = append(old.Items, items...) //nolint:gocritic // the spare room is this branch's own
		tail.Len += len(items)
	}
	if len(next.Segments) > maxSegments {
		c.restart(next.Items)
		return
	}
	c.ch.List, c.ch.Stored = next, c.seq
}

// maxSegments bounds how many stored lists one value is spread over: forks of
// forks beyond it are written out once.
const maxSegments = 8

func (c cell) replaceTopic(writes []checkpoint.Write) bool {
	items := make([]payload.JSON, len(writes))
	for i, w := range writes {
		items[i] = w.Value
	}
	c.restart(items)
	return true
}

// current returns the elements a list reducer starts from.
func (c cell) current() ([]payload.JSON, error) {
	if c.ch.List != nil {
		return c.ch.List.Items, nil
	}
	if c.spec.Default == "" {
		return nil, nil
	}
	items, err := payload.Elements(c.spec.Default)
	if err != nil {
		return nil, c.errorf("has a default that is not an array")
	}
	return items, nil
}

// updateList applies the append-like reducers. Elements that stay are shared;
// only what is new is stored.
func (c cell) updateList(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.overwrite(writes)
	if err != nil {
		return false, err
	}
	if overwritten {
		items, err := c.elements(writes[0].Value)
		if err != nil {
			return false, err
		}
		c.restart(items)
		return true, nil
	}
	start, err := c.current()
	if err != nil {
		return false, err
	}
	if c.ch.List == nil && len(start) > 0 {
		c.restart(slices.Clip(start))
	}
	for n, w := range writes {
		if err := c.extend(n, w.Value); err != nil {
			return false, err
		}
	}
	return true, nil
}

// extend applies the n-th write of the superstep to a list.
func (c cell) extend(n int, v payload.JSON) error {
	items, err := c.elements(v)
	if err != nil {
		return err
	}
	switch c.spec.Kind {
	case graph.Messages:
		return c.mergeMessages(n, v)
	case graph.Union:
		old := c.items()
		items = payload.UnionItems(old, items)[len(old):]
	default: // all elements are new
	}
	c.grow(items)
	return nil
}

func (c cell) items() []payload.JSON {
	if c.ch.List == nil {
		return nil
	}
	return c.ch.List.Items
}

// mergeMessages merges by id. Plain additions at the end are stored as such;
// anything else stores the list anew. Ids that are missing are made from where
// the write stands, so that the same write gets the same ones.
func (c cell) mergeMessages(write int, v payload.JSON) error {
	old := c.items()
	newID := func(n int) string { return messageID(c.extra, c.spec.Name, write, n) }
	if c.add(old, v, newID) {
		return nil
	}
	if c.index != nil {
		*c.index = nil // what comes of it is not known before the list is read again
	}
	merged, err := payload.MergeMessages(old, v, newID)
	if err != nil {
		return c.errorf("%v", err)
	}
	if len(merged) >= len(old) && slices.Equal(merged[:len(old)], old) {
		c.grow(merged[len(old):])
		return nil
	}
	c.restart(merged)
	return nil
}

// manyMessages is from how many on it is worth to know the ids of a list.
const manyMessages = 16

// add appends messages without reading those that are there, and reports
// whether that is all there is to do. What is only looked at ahead, or not yet
// numbered, leaves the index alone: it belongs to what follows the state.
func (c cell) add(old []payload.JSON, v payload.JSON, newID func(n int) string) bool {
	if c.index == nil || len(old) < manyMessages {
		return false
	}
	if *c.index == nil && c.seq != 0 {
		*c.index = payload.IndexMessages(old)
	}
	if *c.index == nil {
		return false
	}
	index := *c.index
	added, note, ok := index.Adds(v, newID)
	if !ok {
		return false
	}
	c.grow(added)
	if c.seq == 0 {
		*c.index = nil
		return true
	}
	note()
	*c.index = index // also where the list was stored anew
	return true
}

// elements splits a written value for a list channel.
func (c cell) elements(v payload.JSON) ([]payload.JSON, error) {
	if payload.KindOf(v) != payload.ArrayKind {
		if c.spec.Kind == graph.Topic || c.spec.Kind == graph.Messages {
			return []payload.JSON{v}, nil
		}
		return nil, c.errorf("combines arrays, but was given %s; write [value] to add one element", payload.KindOf(v))
	}
	items, err := payload.Elements(v)
	if err != nil {
		return nil, c.errorf("%v", err)
	}
	return items, nil
}

// fold applies the reducers that keep one whole value.
func (c cell) fold(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.overwrite(writes)
	if err != nil {
		return false, err
	}
	if overwritten {
		return c.set(writes[0].Value), nil
	}
	value := c.ch.Value
	if value == "" {
		value = c.spec.Default
	}
	for _, w := range writes {
		if value == "" {
			value = w.Value
			continue
		}
		if value, err = combine(c.spec.Kind, value, w.Value); err != nil {
			return false, c.errorf("%v", err)
		}
	}
	return c.set(value), nil
}

func combine(k graph.Kind, a, b payload.JSON) (payload.JSON, error) {
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

// overwrite finds the write that bypasses the reducer: it replaces what was
// there and every other write of the superstep.
func (c cell) overwrite(writes []checkpoint.Write) ([]checkpoint.Write, bool, error) {
	found := -1
	var value payload.JSON
	for i, w := range writes {
		v, ok := overwriteValue(w)
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

// overwriteValue recognises an overwrite by its mark or by the two spellings
// that survive JSON: {"__overwrite__": v} and {"type": "__overwrite__", "value": v}.
func overwriteValue(w checkpoint.Write) (payload.JSON, bool) {
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

// clear is what happens to a channel that nobody wrote in a superstep, and
// reports whether that changed it.
func (c cell) clear() bool {
	switch c.spec.Kind {
	case graph.Any, graph.Ephemeral, graph.Trigger, graph.Guard:
		if c.ch.Value == "" {
			return false
		}
	case graph.TopicOnce:
		if c.ch.List == nil || len(c.ch.List.Items) == 0 {
			return false
		}
	default:
		return false
	}
	c.empty()
	return true
}

func (c cell) empty() {
	c.ch.Value, c.ch.List, c.ch.Flag, c.ch.Stored = "", nil, false, 0
}

// consume resets a trigger that has fired, and reports whether it did.
func (c cell) consume() bool {
	switch c.spec.Kind {
	case graph.Barrier, graph.BarrierFinish, graph.LastFinish:
		if available(c.spec, c.ch) {
			c.empty()
			return true
		}
	default: // not a trigger that is reset by firing
	}
	return false
}

// finish releases a deferred channel once nothing else is left to do.
func (c cell) finish() bool {
	switch c.spec.Kind {
	case graph.LastFinish:
		if c.ch.Value == "" || c.ch.Flag {
			return false
		}
	case graph.BarrierFinish:
		if !full(c.spec, c.ch) || c.ch.Flag {
			return false
		}
	default:
		return false
	}
	if l := c.ch.List; l != nil && c.ch.Stored != 0 && c.ch.Stored != c.seq {
		c.ch.List = &checkpoint.List{Items: l.Items, Segments: l.Segments} // the mark is stored anew, the elements are not
	}
	c.ch.Flag = true
	c.ch.Stored = c.seq
	return true
}
