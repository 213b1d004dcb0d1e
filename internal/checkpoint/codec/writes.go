package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Writes picks what checkpoints of a change write beside their manifests.
type Writes struct {
	shown *Shown // what is written already; nil = a checkpoint writes what is its own
	// Value is called for each value to write, Item for each list element, with
	// the segment it stands in.
	Value func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel)
	Item  func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON)
}

// NewWrites begins with the first checkpoint of a change. With Change.Whole
// values are written by the first checkpoint that shows them.
func NewWrites(c *checkpoint.Change) *Writes {
	w := &Writes{}
	if c.Whole {
		w.shown = ShownBy(nil)
	}
	return w
}

// Next writes what the next checkpoint has to write.
func (w *Writes) Next(cp *checkpoint.Checkpoint) {
	for i := range cp.Channels {
		ch := &cp.Channels[i]
		switch {
		case !Stored(ch):
		case w.shown != nil:
			w.whole(cp, ch)
		case ch.Stored != cp.Seq: // an earlier checkpoint wrote it
		case ch.List == nil:
			w.Value(cp, ch)
		case len(ch.List.Segments) > 0:
			l := ch.List
			last := l.Segments[len(l.Segments)-1]
			w.items(cp, ch, last, last.Len-l.Fresh, len(l.Items)-l.Fresh)
		}
	}
}

func (w *Writes) whole(cp *checkpoint.Checkpoint, ch *checkpoint.Channel) {
	if ch.List == nil {
		if at := (place{ch.Stored, ch.Name}); !w.shown.values[at] {
			w.shown.values[at] = true
			w.Value(cp, ch)
		}
		return
	}
	start := 0
	for _, seg := range ch.List.Segments {
		at := place{seg.ID, ch.Name}
		if n := w.shown.lists[at]; n < seg.Len {
			w.items(cp, ch, seg, n, start+n)
			w.shown.lists[at] = seg.Len
		}
		start += seg.Len
	}
}

// items writes the elements of a segment from an index on; at is where the
// first of them stands in the list.
func (w *Writes) items(cp *checkpoint.Checkpoint, ch *checkpoint.Channel, seg checkpoint.Segment, index, at int) {
	for ; index < seg.Len; index++ {
		w.Item(cp, ch, seg.ID, index, ch.List.Items[at])
		at++
	}
}
