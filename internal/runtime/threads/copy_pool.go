package threads

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// copyPool shares equal parts among checkpoints that were read in several reads,
// and counts their bytes. Checkpoints of one read share them already.
type copyPool struct {
	values   map[valueKey]payload.JSON
	segments map[valueKey][]payload.JSON
}

// valueKey identifies a value by the checkpoint that wrote it, or a list by
// its beginning.
type valueKey struct {
	channel string
	seq     uint64
}

func newCopyPool() *copyPool {
	return &copyPool{values: make(map[valueKey]payload.JSON), segments: make(map[valueKey][]payload.JSON)}
}

// shareCheckpoint returns a checkpoint that shares its parts with earlier checkpoints,
// and the number of bytes that it adds.
func (p *copyPool) shareCheckpoint(cp *checkpoint.Checkpoint) (shared *checkpoint.Checkpoint, bytes int) {
	own := *cp
	own.Channels = nil
	bytes = own.Size()
	own.Channels = make([]checkpoint.Channel, len(cp.Channels))
	for i := range cp.Channels {
		ch := cp.Channels[i]
		if ch.List != nil {
			list, added := p.shareList(ch.Name, ch.List)
			ch.List = list
			bytes += added
		} else if at := (valueKey{ch.Name, ch.Stored}); len(p.values[at]) == len(ch.Value) {
			ch.Value = p.values[at]
		} else {
			p.values[at] = ch.Value
			bytes += len(ch.Value)
		}
		own.Channels[i] = ch
	}
	return &own, bytes
}

func (p *copyPool) shareList(channel string, l *checkpoint.List) (shared *checkpoint.List, bytes int) {
	own := *l
	own.Items = nil
	rest := l.Items
	for _, segment := range l.Segments {
		at := valueKey{channel, segment.ID}
		n := min(segment.Len, len(rest))
		known := p.segments[at]
		if len(known) < n {
			for _, item := range rest[len(known):n] {
				bytes += 16 + len(item)
			}
			known = append(slices.Clip(known), rest[len(known):n]...)
			p.segments[at] = known
		}
		if len(l.Segments) == 1 {
			own.Items = known[:n:n]
		} else {
			own.Items = append(own.Items, known[:n]...)
			bytes += 16 * n
		}
		rest = rest[n:]
	}
	return &own, bytes
}
