package ownership

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// NotifyServers notifies the other servers to which a change leaves the thread: the
// owner of the thread, the preferred owner or, when the thread is free and this server
// has no capacity, all.
func (o *Owner) NotifyServers(h *checkpoint.Head) {
	if o.subscription == nil {
		return
	}
	isDue := !h.Due.IsZero() && !h.Due.After(h.Now.Add(commit.MaxClockDrift)) // by our clock
	switch {
	case h.Owner == "" && h.PreferredOwner != "" && h.PreferredOwner != o.opts.ID:
		o.subscription.WakeServers(h.PreferredOwner, h.Thread)
	case h.Owner == o.opts.ID:
	case h.Owner != "":
		o.subscription.WakeServers(h.Owner, h.Thread)
	case isDue && (o.opts.Capacity.CheckSlot(h.Thread) != nil || o.opts.Capacity.IsExceeded()):
		o.subscription.WakeServers("", h.Thread)
	}
}

// HandleSignal handles a signal of another process. It is called by the store.
func (o *Owner) HandleSignal(s checkpoint.Signal) {
	if s.Kind != checkpoint.SignalWake {
		o.opts.Feed.HandleSignal(s)
		return
	}
	contain.Func(func() { o.handleWake(s.Owner, s.Thread) }, contain.LogPanic(o.log, "a message of another server panicked"))()
}

// handleWake reads a thread because another server asks for it.
func (o *Owner) handleWake(owner, thread string) {
	switch owner {
	case "":
		o.opts.Scheduler.Wake()
	case o.opts.ID:
		if s := o.opts.Threads.findSession(thread); s != nil {
			s.commits.refreshHead()
		}
		o.acceptHandOff(thread)
	}
}
