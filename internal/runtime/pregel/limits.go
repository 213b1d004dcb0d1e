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
	Value  int64 // bytes of one channel, of one written value, of the input of one Send
	State  int64 // bytes of all channels together
	Writes int64 // bytes that the tasks of one superstep write together
	Sends  int   // Sends of one superstep
}

// The limits, as the options of the server that set them.
const (
	LimitValue  = "max-value-bytes"
	LimitState  = "max-state-bytes"
	LimitWrites = "max-write-bytes"
	LimitSends  = "max-sends"
)

func (l Limits) any() bool { return l != Limits{} }

func (l Limits) checkValue(channel string, size int64) error {
	if l.Value <= 0 || size <= l.Value {
		return nil
	}
	return &graph.LimitError{Limit: LimitValue, Most: l.Value, Need: size, Channel: channel, Problem: fmt.Sprintf(
		"channel %s: a value of %d bytes is larger than the %d of --%s; "+
			"keep large values elsewhere and references to them in the state", channel, size, l.Value, LimitValue)}
}

func (l Limits) checkState(size int64) error {
	if l.State <= 0 || size <= l.State {
		return nil
	}
	return &graph.LimitError{Limit: LimitState, Most: l.State, Need: size, Problem: fmt.Sprintf(
		"the state would have %d bytes, more than the %d of --%s; keep less in it, or references to what is kept elsewhere",
		size, l.State, LimitState)}
}

// CheckWrites refuses more than the tasks of a superstep may write together.
func (l Limits) CheckWrites(size int64) error {
	if l.Writes <= 0 || size <= l.Writes {
		return nil
	}
	return &graph.LimitError{Limit: LimitWrites, Most: l.Writes, Need: size, Problem: fmt.Sprintf(
		"the superstep writes %d bytes, more than the %d of --%s; let fewer tasks run at a time, or write less",
		size, l.Writes, LimitWrites)}
}

func (l Limits) checkSends(n int) error {
	if l.Sends <= 0 || n <= l.Sends {
		return nil
	}
	return &graph.LimitError{Limit: LimitSends, Most: int64(l.Sends), Need: int64(n), Problem: fmt.Sprintf(
		"%d Sends in one superstep are more than the %d of --%s; send lists of items, or go over them in rounds",
		n, l.Sends, LimitSends)}
}

// WriteBytes is what writes count towards the limit of a superstep.
func WriteBytes(writes []checkpoint.Write) (n int64) {
	for i := range writes {
		n += int64(len(writes[i].Value))
	}
	return n
}

// checkTask checks what one task, or one call, writes.
func (s *State) checkTask(writes []checkpoint.Write) error {
	if !s.limits.any() {
		return nil
	}
	for i := range writes {
		if err := s.limits.checkValue(writes[i].Channel, int64(len(writes[i].Value))); err != nil {
			return err
		}
	}
	return s.checkStep([]Done{{Writes: writes}}, s.limits)
}

// checkStep checks what all tasks of a superstep write.
func (s *State) checkStep(done []Done, limits Limits) error {
	sends, bytes, channel := 0, int64(0), s.graph.Channels[s.graph.Sends].Name
	for i := range done {
		for _, w := range done[i].Writes {
			bytes += int64(len(w.Value))
			if w.Channel == channel {
				sends++
			}
		}
	}
	if err := limits.checkSends(sends); err != nil {
		return err
	}
	return limits.CheckWrites(bytes)
}

// measure finds how large the channels are of a state that was read.
func (s *State) measure() {
	if !s.limits.any() {
		return
	}
	s.sizes = make([]int64, len(s.graph.Channels))
	for i := range s.graph.Channels {
		s.sizes[i] = sizeOf(&s.cp.Channels[i])
	}
	s.total = s.sum()
}

// sum is the size of all state keys together. What the graph itself keeps, like
// Sends and the input that waits, is bounded by what a superstep may write.
func (s *State) sum() (n int64) {
	for _, i := range s.graph.State {
		n += s.size(i)
	}
	for _, v := range s.untracked {
		n += int64(len(v))
	}
	return n
}

// Bytes is what the state holds in memory: its keys, and what waits for the next
// superstep.
func (s *State) Bytes() int64 {
	return s.total + sizeOf(&s.cp.Channels[s.graph.Sends]) + sizeOf(&s.cp.Channels[s.graph.StartChannel])
}

// size is the size of a channel: of a long list it is known and not counted.
func (s *State) size(i int) int64 {
	c := &s.cp.Channels[i]
	if c.List != nil && keepsSize(s.graph.Channels[i].Kind) {
		return s.sizes[i]
	}
	return sizeOf(c)
}

func sizeOf(c *checkpoint.Channel) int64 {
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

// keepsSize reports whether the size of a channel's list is kept up to date: it
// may be long, and a superstep must not go over it.
func keepsSize(k graph.Kind) bool { return isList(k) && k != graph.TopicOnce }

// measured is the size of a list while an update changes it, nil where it is
// not kept.
func (e *edit) measured(i int) *int64 {
	if !e.from.limits.any() || !keepsSize(e.from.graph.Channels[i].Kind) {
		return nil
	}
	size := new(int64)
	if e.channels[i].List != nil {
		*size = e.sizes[i]
	}
	return size
}

// resized checks a channel that was written against the limit of values; it
// may be larger than that, but not grow.
func (e *edit) resized(i int, list *int64) error {
	if !e.from.limits.any() || i == e.from.graph.StartChannel {
		return nil
	}
	size := int64(len(e.channels[i].Value))
	if e.from.graph.Channels[i].Kind == graph.Untracked {
		size = int64(len(e.untracked[i]))
	}
	if list != nil {
		if &e.sizes[0] == &e.from.sizes[0] {
			e.sizes = slices.Clone(e.sizes)
		}
		size, e.sizes[i] = *list, *list
	}
	if before := e.from.size(i); size <= before && e.from.graph.Channels[i].Kind != graph.Untracked {
		return nil
	}
	return e.limits.checkValue(e.channels[i].Name, size)
}

// outgrown checks the state that an edit leads to against its limit.
func (s *State) outgrown(before *State) error {
	if s.total <= before.total {
		return nil
	}
	return s.limits.checkState(s.total)
}
