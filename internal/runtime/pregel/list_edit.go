package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// storesList reports whether a channel is stored element by element.
func storesList(k graph.ChannelKind) bool {
	switch k {
	case graph.Append, graph.Topic, graph.TopicOnce, graph.Messages, graph.Union:
		return true
	default:
		return false
	}
}

// updateList applies the append-like reducers. It shares the elements that stay, and
// stores only the new elements.
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

func (c channelEdit) listItems() []payload.JSON {
	if c.channel.List == nil {
		return nil
	}
	return c.channel.List.Items
}

// splitElements splits a written value for a list channel.
func (c channelEdit) splitElements(v payload.JSON) ([]payload.JSON, error) {
	if payload.KindOf(v) != payload.ArrayKind {
		if c.spec.Kind == graph.Topic || c.spec.Kind == graph.TopicOnce || c.spec.Kind == graph.Messages {
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

// replaceTopic sets a list to what one superstep has written: the elements of the
// updates of a state key, or the Sends as they are.
func (c channelEdit) replaceTopic(writes []checkpoint.Write) (bool, error) {
	items := make([]payload.JSON, 0, len(writes))
	for _, w := range writes {
		if !c.spec.IsStateKey {
			items = append(items, w.Value)
			continue
		}
		more, err := c.splitElements(w.Value)
		if err != nil {
			return false, err
		}
		items = append(items, more...)
	}
	c.rewriteList(items)
	return true, nil
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

// appendItems appends to a list and shares the present elements. The spare
// capacity behind the elements belongs to the next checkpoint alone. A look-ahead,
// perhaps of several tasks at once, must not write there.
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

// maxSegments is the largest number of stored lists for one value. A fork
// beyond it writes the value out once.
const maxSegments = 8
