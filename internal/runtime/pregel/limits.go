package pregel

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// Limits bound the size of a graph's state. They bound growth only: a state
// that is larger already, from a time with other limits, can be read, kept and
// made smaller. 0 = no limit.
type Limits struct {
	MaxValueBytes int64 // bytes of one channel, of one written value, of the input of one Send
	MaxStateBytes int64 // bytes of all channels together
	MaxWriteBytes int64 // bytes that the tasks of one superstep write together
	MaxSends      int   // Sends of one superstep
	// StateTenant is the tenant whose own limit MaxStateBytes is, "" = that of the server.
	StateTenant string
}

// The limits, as the options of the server that set them, and LimitTenantState as the file
// of the limits of tenants names it.
const (
	LimitTenantState = "state_bytes"

	LimitValue  = "max-value-bytes"
	LimitState  = "max-state-bytes"
	LimitWrites = "max-write-bytes"
	LimitSends  = "max-sends"
)

// WithTenantState returns the limits with that of a tenant for its states, where it is
// below that of the server. A negative number is none.
func (l Limits) WithTenantState(tenant string, most int64) Limits {
	if most < 0 || l.MaxStateBytes > 0 && most >= l.MaxStateBytes {
		return l
	}
	l.MaxStateBytes, l.StateTenant = max(most, 1), tenant
	return l
}

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
	if l.StateTenant != "" {
		return &graph.LimitError{Limit: LimitTenantState, Max: l.MaxStateBytes, Needed: size, Problem: fmt.Sprintf(
			"the state would have %d bytes, more than the %d of the limit %s of the tenant %q; keep less in it, or references to what is kept elsewhere",
			size, l.MaxStateBytes, LimitTenantState, l.StateTenant)}
	}
	return &graph.LimitError{Limit: LimitState, Max: l.MaxStateBytes, Needed: size, Problem: fmt.Sprintf(
		"the state would have %d bytes, more than the %d of --%s; keep less in it, or references to what is kept elsewhere",
		size, l.MaxStateBytes, LimitState)}
}

// CheckWriteBytes refuses more than the tasks of a superstep may write together. The
// error is a *graph.LimitError.
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

// checkTaskWrites checks the writes of one task, or of one call.
func (l Limits) checkTaskWrites(g *graph.Graph, writes []checkpoint.Write) error {
	if !l.isSet() {
		return nil
	}
	for i := range writes {
		if err := l.checkValue(writes[i].Channel, int64(len(writes[i].Value))); err != nil {
			return err
		}
	}
	return l.checkStepWrites(g, []TaskWrites{{Writes: writes}})
}

// checkStepWrites checks the writes of all tasks of a superstep.
func (l Limits) checkStepWrites(g *graph.Graph, done []TaskWrites) error {
	sends, bytes, channel := 0, int64(0), g.Channels[g.SendsChannel].Name
	for i := range done {
		for _, w := range done[i].Writes {
			bytes += int64(len(w.Value))
			if w.Channel == channel {
				sends++
			}
		}
	}
	if err := l.checkSendCount(sends); err != nil {
		return err
	}
	return l.CheckWriteBytes(bytes)
}
