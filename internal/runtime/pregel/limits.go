package pregel

import (
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Limits bound what a graph may hold. They bound growth only: a state that is
// larger already, from a time with other limits, can be read, kept and made
// smaller. 0 = no limit.
type Limits struct {
	MaxValueBytes int64 // bytes of one channel, of one written value, of the input of one Send
	MaxStateBytes int64 // bytes of all channels together
	MaxWriteBytes int64 // bytes that the tasks of one superstep write together
	MaxSends      int   // Sends of one superstep
}

// The limits, as the options of the server that set them.
const (
	LimitValue  = "max-value-bytes"
	LimitState  = "max-state-bytes"
	LimitWrites = "max-write-bytes"
	LimitSends  = "max-sends"
)

func (l Limits) isSet() bool { return l != Limits{} }

func (l Limits) checkValue(channel string, size int64) error {
	if l.MaxValueBytes <= 0 || size <= l.MaxValueBytes {
		return nil
	}
	return &graph.LimitError{Limit: LimitValue, Max: l.MaxValueBytes, Needed: size, Channel: channel, Problem: fmt.Sprintf(
		"channel %s: a value of %d bytes is larger than the %d of --%s; "+
			"keep large values elsewhere and references to them in the state", channel, size, l.MaxValueBytes, LimitValue)}
}

func (l Limits) checkStateSize(size int64) error {
	if l.MaxStateBytes <= 0 || size <= l.MaxStateBytes {
		return nil
	}
	return &graph.LimitError{Limit: LimitState, Max: l.MaxStateBytes, Needed: size, Problem: fmt.Sprintf(
		"the state would have %d bytes, more than the %d of --%s; keep less in it, or references to what is kept elsewhere",
		size, l.MaxStateBytes, LimitState)}
}

// CheckWriteBytes refuses more than the tasks of a superstep may write together.
func (l Limits) CheckWriteBytes(size int64) error {
	if l.MaxWriteBytes <= 0 || size <= l.MaxWriteBytes {
		return nil
	}
	return &graph.LimitError{Limit: LimitWrites, Max: l.MaxWriteBytes, Needed: size, Problem: fmt.Sprintf(
		"the superstep writes %d bytes, more than the %d of --%s; let fewer tasks run at a time, or write less",
		size, l.MaxWriteBytes, LimitWrites)}
}

func (l Limits) checkSendCount(n int) error {
	if l.MaxSends <= 0 || n <= l.MaxSends {
		return nil
	}
	return &graph.LimitError{Limit: LimitSends, Max: int64(l.MaxSends), Needed: int64(n), Problem: fmt.Sprintf(
		"%d Sends in one superstep are more than the %d of --%s; send lists of items, or go over them in rounds",
		n, l.MaxSends, LimitSends)}
}

// WriteBytes is what writes count towards the limit of a superstep.
func WriteBytes(writes []checkpoint.Write) (n int64) {
	for i := range writes {
		n += int64(len(writes[i].Value))
	}
	return n
}

// checkTaskWrites checks what one task, or one call, writes.
func (s *State) checkTaskWrites(writes []checkpoint.Write) error {
	if !s.limits.isSet() {
		return nil
	}
	for i := range writes {
		if err := s.limits.checkValue(writes[i].Channel, int64(len(writes[i].Value))); err != nil {
			return err
		}
	}
	return s.checkStepWrites([]TaskWrites{{Writes: writes}}, s.limits)
}

// checkStepWrites checks what all tasks of a superstep write.
func (s *State) checkStepWrites(done []TaskWrites, limits Limits) error {
	sends, bytes, channel := 0, int64(0), s.graph.Channels[s.graph.SendsChannel].Name
	for i := range done {
		for _, w := range done[i].Writes {
			bytes += int64(len(w.Value))
			if w.Channel == channel {
				sends++
			}
		}
	}
	if err := limits.checkSendCount(sends); err != nil {
		return err
	}
	return limits.CheckWriteBytes(bytes)
}

// measureChannels finds how large the channels are of a state that was read.
func (s *State) measureChannels() {
	if !s.limits.isSet() {
		return
	}
	s.listSizes = make([]int64, len(s.graph.Channels))
	for i := range s.graph.Channels {
		s.listSizes[i] = channelBytes(&s.checkpoint.Channels[i])
	}
	s.totalSize = s.sumSizes()
}

// sumSizes returns the size of all state keys together. What the graph itself
// keeps, like Sends and the input that waits, is bounded by what a superstep may
// write.
func (s *State) sumSizes() (n int64) {
	for _, i := range s.graph.StateKeys {
		n += s.sizeAt(i)
	}
	for _, v := range s.untracked {
		n += int64(len(v))
	}
	return n
}

// MemoryBytes is what the state holds in memory: its keys, and what waits for the next
// superstep.
func (s *State) MemoryBytes() int64 {
	return s.totalSize + channelBytes(&s.checkpoint.Channels[s.graph.SendsChannel]) + channelBytes(&s.checkpoint.Channels[s.graph.StartChannel])
}

// sizeAt returns the size of a channel; that of a long list is kept, not counted.
func (s *State) sizeAt(i int) int64 {
	c := &s.checkpoint.Channels[i]
	if c.List != nil && tracksSize(s.graph.Channels[i].Kind) {
		return s.listSizes[i]
	}
	return channelBytes(c)
}

func channelBytes(c *checkpoint.Channel) int64 {
	if c.List == nil {
		return int64(len(c.Value))
	}
	return itemBytes(c.List.Items)
}

// itemBytes is the size of elements with what stands between them.
func itemBytes(items []payload.JSON) (n int64) {
	for i := range items {
		n += int64(len(items[i])) + 1
	}
	return n
}

// tracksSize reports whether the size of a channel's list is kept up to date: it
// may be long, and a superstep must not go over it.
func tracksSize(k graph.ChannelKind) bool { return storesList(k) && k != graph.TopicOnce }

// newListSize returns a counter of the size of a list for one update, nil where the
// size is not kept.
func (e *stateEdit) newListSize(i int) *int64 {
	if !e.before.limits.isSet() || !tracksSize(e.before.graph.Channels[i].Kind) {
		return nil
	}
	size := new(int64)
	if e.channels[i].List != nil {
		*size = e.listSizes[i]
	}
	return size
}

// checkValueGrowth checks a channel that was written against the limit of values; it
// may be larger than that, but not grow.
func (e *stateEdit) checkValueGrowth(i int, list *int64) error {
	if !e.before.limits.isSet() || i == e.before.graph.StartChannel {
		return nil
	}
	size := int64(len(e.channels[i].Value))
	if e.before.graph.Channels[i].Kind == graph.Untracked {
		size = int64(len(e.untracked[i]))
	}
	if list != nil {
		if &e.listSizes[0] == &e.before.listSizes[0] {
			e.listSizes = slices.Clone(e.listSizes)
		}
		size, e.listSizes[i] = *list, *list
	}
	if before := e.before.sizeAt(i); size <= before && e.before.graph.Channels[i].Kind != graph.Untracked {
		return nil
	}
	return e.limits.checkValue(e.channels[i].Name, size)
}

// checkStateGrowth checks the state that an edit leads to against its limit.
func (s *State) checkStateGrowth(before *State) error {
	if s.totalSize <= before.totalSize {
		return nil
	}
	return s.limits.checkStateSize(s.totalSize)
}
