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

// channelEdit applies the writes of one superstep to one channel.
type channelEdit struct {
	spec       *graph.Channel
	channel    *checkpoint.Channel
	seq        uint64 // of the checkpoint under construction, 0 = not to be stored yet
	sharedUpTo uint64 // lists stored up to this checkpoint must not grow in place
	idSeed     string // seed for ids that a reducer makes
	// tail takes what is appended when the state is only looked at ahead; nil
	// when it is not, or when the reducer looks at the elements.
	tail *[]payload.JSON
	// messageIndex knows the ids of a list of messages; it points to nil when
	// no caller does, and is nil for other channels.
	messageIndex **payload.MessageIndex
	// listSize is that of a list, which is kept up to date; nil where it need not be.
	listSize *int64
}

// storesList reports whether a channel is stored element by element.
func storesList(k graph.ChannelKind) bool {
	switch k {
	case graph.Append, graph.Topic, graph.TopicOnce, graph.Messages, graph.Union:
		return true
	default:
		return false
	}
}

// isAvailable reports whether a trigger channel is ready to fire.
func isAvailable(spec *graph.Channel, ch *checkpoint.Channel) bool {
	switch spec.Kind {
	case graph.LastFinish:
		return ch.Value != "" && ch.Flag
	case graph.Barrier:
		return isBarrierFull(spec, ch)
	case graph.BarrierFinish:
		return isBarrierFull(spec, ch) && ch.Flag
	case graph.Topic, graph.TopicOnce:
		return ch.List != nil && len(ch.List.Items) > 0
	default:
		return ch.Value != "" || ch.List != nil
	}
}

func isBarrierFull(spec *graph.Channel, ch *checkpoint.Channel) bool {
	return ch.List != nil && len(ch.List.Items) == len(spec.Members)
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
		return c.replaceTopic(writes), nil
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

// recordArrivals records which members of a join have reported.
func (c channelEdit) recordArrivals(writes []checkpoint.Write) (bool, error) {
	var items []payload.JSON
	if c.channel.List != nil {
		items = c.channel.List.Items
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
		c.rewriteList(items)
	}
	return changed, nil
}

// rewriteList stores a list anew.
func (c channelEdit) rewriteList(items []payload.JSON) {
	if c.messageIndex != nil {
		*c.messageIndex = nil
	}
	if c.listSize != nil {
		*c.listSize = itemBytes(items)
	}
	c.channel.Value = ""
	c.channel.List = &checkpoint.List{
		Items: items, Segments: []checkpoint.Segment{{ID: c.seq, Len: len(items)}}, Appended: len(items),
	}
	c.channel.Stored = c.seq
}

// appendItems appends to a list, sharing what is there already. The spare capacity
// behind the elements belongs to the next checkpoint alone: what is only looked at
// ahead, perhaps by several tasks at once, must not write there.
func (c channelEdit) appendItems(items []payload.JSON) {
	old := c.channel.List
	if c.listSize != nil {
		*c.listSize += itemBytes(items)
	}
	if c.tail != nil {
		*c.tail = append(*c.tail, items...)
		if old == nil {
			c.channel.List = &checkpoint.List{}
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
		c.rewriteList(append(slices.Clip(head), items...))
		return
	}
	next := &checkpoint.List{Appended: len(items), Segments: slices.Clone(old.Segments)}
	tail := &next.Segments[len(next.Segments)-1]
	switch {
	case c.channel.Stored == 0 || c.channel.Stored == c.seq: // grown since the last checkpoint
		next.Items = append(old.Items, items...) //nolint:gocritic // the spare capacity is this branch's own
		next.Appended += old.Appended
		tail.Len += len(items)
		if tail.ID == 0 { // begun between two checkpoints
			tail.ID = c.seq
		}
	case tail.ID <= c.sharedUpTo:
		// Another branch may append to the same stored list.
		next.Items = append(slices.Clip(old.Items), items...)
		next.Segments = append(next.Segments, checkpoint.Segment{ID: c.seq, Len: len(items)})
	default:
		next.Items = append(old.Items, items...) //nolint:gocritic // the spare capacity is this branch's own
		tail.Len += len(items)
	}
	if len(next.Segments) > maxSegments {
		c.rewriteList(next.Items)
		return
	}
	c.channel.List, c.channel.Stored = next, c.seq
}

// maxSegments bounds how many stored lists one value is spread over: forks of
// forks beyond it are written out once.
const maxSegments = 8

func (c channelEdit) replaceTopic(writes []checkpoint.Write) bool {
	items := make([]payload.JSON, len(writes))
	for i, w := range writes {
		items[i] = w.Value
	}
	c.rewriteList(items)
	return true
}

// currentItems returns the elements a list reducer starts from.
func (c channelEdit) currentItems() ([]payload.JSON, error) {
	if c.channel.List != nil {
		return c.channel.List.Items, nil
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
func (c channelEdit) updateList(writes []checkpoint.Write) (bool, error) {
	writes, overwritten, err := c.findOverwrite(writes)
	if err != nil {
		return false, err
	}
	if overwritten {
		items, err := c.splitElements(writes[0].Value)
		if err != nil {
			return false, err
		}
		c.rewriteList(items)
		return true, nil
	}
	start, err := c.currentItems()
	if err != nil {
		return false, err
	}
	if c.channel.List == nil && len(start) > 0 {
		c.rewriteList(slices.Clip(start))
	}
	for n, w := range writes {
		if err := c.extendList(n, w.Value); err != nil {
			return false, err
		}
	}
	return true, nil
}

// extendList applies the n-th write of the superstep to a list.
func (c channelEdit) extendList(n int, v payload.JSON) error {
	items, err := c.splitElements(v)
	if err != nil {
		return err
	}
	switch c.spec.Kind {
	case graph.Messages:
		return c.mergeMessages(n, v)
	case graph.Union:
		old := c.listItems()
		items = payload.UnionItems(old, items)[len(old):]
	default: // all elements are new
	}
	c.appendItems(items)
	return nil
}

func (c channelEdit) listItems() []payload.JSON {
	if c.channel.List == nil {
		return nil
	}
	return c.channel.List.Items
}

// mergeMessages merges by id. Plain additions at the end are stored as such;
// anything else stores the list anew. Ids that are missing are made from where
// the write stands, so that the same write gets the same ones.
func (c channelEdit) mergeMessages(write int, v payload.JSON) error {
	old := c.listItems()
	newID := func(n int) string { return messageID(c.idSeed, c.spec.Name, write, n) }
	if c.appendMessages(old, v, newID) {
		return nil
	}
	if c.messageIndex != nil {
		*c.messageIndex = nil // what comes of it is not known before the list is read again
	}
	merged, err := payload.MergeMessages(old, v, newID)
	if err != nil {
		return c.errorf("%v", err)
	}
	if len(merged) >= len(old) && slices.Equal(merged[:len(old)], old) {
		c.appendItems(merged[len(old):])
		return nil
	}
	c.rewriteList(merged)
	return nil
}

// minIndexedMessages is the length from which a list of messages gets an index.
const minIndexedMessages = 16

// appendMessages appends messages without reading those that are there, and reports
// whether that is all there is to do. What is only looked at ahead, or not yet
// numbered, leaves the index alone: it belongs to what follows the state.
func (c channelEdit) appendMessages(old []payload.JSON, v payload.JSON, newID func(n int) string) bool {
	if c.messageIndex == nil || len(old) < minIndexedMessages {
		return false
	}
	if *c.messageIndex == nil && c.seq != 0 {
		*c.messageIndex = payload.IndexMessages(old)
	}
	if *c.messageIndex == nil {
		return false
	}
	index := *c.messageIndex
	added, note, ok := index.PlanAppend(v, newID)
	if !ok {
		return false
	}
	c.appendItems(added)
	if c.seq == 0 {
		*c.messageIndex = nil
		return true
	}
	note()
	*c.messageIndex = index // also where the list was stored anew
	return true
}

// splitElements splits a written value for a list channel.
func (c channelEdit) splitElements(v payload.JSON) ([]payload.JSON, error) {
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

// foldValues applies the reducers that keep one whole value.
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

// findOverwrite finds the write that bypasses the reducer: it replaces what was
// there and every other write of the superstep.
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

// clearUnwritten clears a channel that a superstep did not write, if its kind lasts
// for one superstep, and reports whether that changed it.
func (c channelEdit) clearUnwritten() bool {
	switch c.spec.Kind {
	case graph.Any, graph.Ephemeral, graph.Trigger, graph.Guard:
		if c.channel.Value == "" {
			return false
		}
	case graph.TopicOnce:
		if c.channel.List == nil || len(c.channel.List.Items) == 0 {
			return false
		}
	default:
		return false
	}
	c.resetChannel()
	return true
}

func (c channelEdit) resetChannel() {
	c.channel.Value, c.channel.List, c.channel.Flag, c.channel.Stored = "", nil, false, 0
}

// consumeTrigger resets a trigger that has fired, and reports whether it did.
func (c channelEdit) consumeTrigger() bool {
	switch c.spec.Kind {
	case graph.Barrier, graph.BarrierFinish, graph.LastFinish:
		if isAvailable(c.spec, c.channel) {
			c.resetChannel()
			return true
		}
	default: // not a trigger that is reset by firing
	}
	return false
}

// releaseDeferred releases a deferred channel once nothing else is left to do.
func (c channelEdit) releaseDeferred() bool {
	switch c.spec.Kind {
	case graph.LastFinish:
		if c.channel.Value == "" || c.channel.Flag {
			return false
		}
	case graph.BarrierFinish:
		if !isBarrierFull(c.spec, c.channel) || c.channel.Flag {
			return false
		}
	default:
		return false
	}
	if l := c.channel.List; l != nil && c.channel.Stored != 0 && c.channel.Stored != c.seq {
		c.channel.List = &checkpoint.List{Items: l.Items, Segments: l.Segments} // the mark is stored anew, the elements are not
	}
	c.channel.Flag = true
	c.channel.Stored = c.seq
	return true
}
