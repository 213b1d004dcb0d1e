package pregel

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

func isTrigger(k graph.ChannelKind) bool {
	switch k {
	case graph.Trigger, graph.LastFinish, graph.Barrier, graph.BarrierFinish, graph.Guard:
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

// clearUnwritten clears a channel that a superstep did not write, if its kind lasts
// for one superstep. It reports whether the channel changed.
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

// releaseDeferred releases a deferred channel once no other task is due.
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
