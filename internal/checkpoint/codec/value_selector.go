package codec

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ValueSelector selects the values that checkpoints of a change write beside
// their manifests.
type ValueSelector struct {
	written *References // values written already; nil = a checkpoint writes its own values
	// OnValue is called for each value to write, Item for each list element, with
	// the segment it stands in.
	OnValue func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel)
	OnItem  func(cp *checkpoint.Checkpoint, ch *checkpoint.Channel, segment uint64, index int, v payload.JSON)
}

// NewValueSelector begins with the first checkpoint of a change. With Change.Whole
// values are written by the first checkpoint that shows them.
func NewValueSelector(c *checkpoint.Change) *ValueSelector {
	w := &ValueSelector{}
	if c.IsCopy {
		w.written = CollectReferences(nil)
	}
	return w
}

// AddCheckpoint writes the values of the next checkpoint.
func (v *ValueSelector) AddCheckpoint(cp *checkpoint.Checkpoint) {
	for i := range cp.Channels {
		ch := &cp.Channels[i]
		switch {
		case !IsSeparate(ch):
		case v.written != nil:
			v.selectUnwritten(cp, ch)
		case ch.Stored != cp.Seq: // an earlier checkpoint wrote it
		case ch.List == nil:
			v.OnValue(cp, ch)
		case len(ch.List.Segments) > 0:
			l := ch.List
			last := l.Segments[len(l.Segments)-1]
			v.selectItems(cp, ch, last, last.Len-l.Appended, len(l.Items)-l.Appended)
		}
	}
}

func (v *ValueSelector) selectUnwritten(cp *checkpoint.Checkpoint, ch *checkpoint.Channel) {
	if ch.List == nil {
		if at := (valueKey{ch.Stored, ch.Name}); !v.written.values[at] {
			v.written.values[at] = true
			v.OnValue(cp, ch)
		}
		return
	}
	start := 0
	for _, seg := range ch.List.Segments {
		at := valueKey{seg.ID, ch.Name}
		if n := v.written.lists[at]; n < seg.Len {
			v.selectItems(cp, ch, seg, n, start+n)
			v.written.lists[at] = seg.Len
		}
		start += seg.Len
	}
}

// selectItems writes the elements of a segment from an index on; at is where the
// first of them stands in the list.
func (v *ValueSelector) selectItems(cp *checkpoint.Checkpoint, ch *checkpoint.Channel, seg checkpoint.Segment, index, at int) {
	for ; index < seg.Len; index++ {
		v.OnItem(cp, ch, seg.ID, index, ch.List.Items[at])
		at++
	}
}
