package threads

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// copyPool lets checkpoints that were read in several parts share what they have
// in common, as those do that are read together, and counts what they hold.
type copyPool struct {
	values   map[valueKey]payload.JSON
	segments map[valueKey][]payload.JSON
}

// valueKey is where a value was written, or where a list of elements begins.
type valueKey struct {
	channel string
	seq     uint64
}

func newCopyPool() *copyPool {
	return &copyPool{values: make(map[valueKey]payload.JSON), segments: make(map[valueKey][]payload.JSON)}
}

// shareCheckpoint returns a checkpoint that shares its parts with those before it, and how
// many bytes it holds besides.
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
