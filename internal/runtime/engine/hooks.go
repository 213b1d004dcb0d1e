package engine

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/holdings"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
	"github.com/graphd-dev/graphd/internal/runtime/statistics"
	"github.com/graphd-dev/graphd/internal/runtime/views"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// commitHooks report the outcome of a change to the parts of an engine.
type commitHooks struct {
	feed       *feed.Feed
	held       *ownership.Table
	scheduler  *scheduler.Scheduler
	unserved   *placement.UnservedRuns
	capacity   *capacity.Limiter
	holdings   *holdings.Keeper
	statistics *statistics.Counter
	views      *views.Cache
	webhooks   *webhooks.Keeper
	owner      *ownership.Owner // set before the first change
}

// noteUnknownOutcome notes that a change to a thread may have been made.
func (h *commitHooks) noteUnknownOutcome(thread string) {
	h.feed.InvalidateTopic(thread)
	h.held.MarkMaybeLeased(thread)
	h.views.DropView(thread)
}

// noteCommitted notes that a change was made.
func (h *commitHooks) noteCommitted(t *commit.Tx, head checkpoint.Head) {
	if !tenant.IsHidden(t.Thread) {
		h.views.NoteChange(t, &head) // no run goes on with a thread that no client can name
	}
	h.scheduler.NoteCommitted(t.Thread, t.Head.Faults)
	if (t.Head.State != checkpoint.ThreadBusy || t.Delete) && h.unserved.CountTasks() > 0 {
		h.unserved.RemoveRun(t.Thread)
	}
	if len(t.Interrupts) > 0 {
		h.feed.WakeInterruptFollowers(t.Thread)
	}
	if head.Owner == "" { // else it does not wait
		h.capacity.NoteNextRun(t.Thread, commit.NextRun(&head))
	}
	h.statistics.CountChange(t.LiveEvents, t.Interrupts)
	h.holdings.NoteCommitted(t.Thread, head.CountWaiting(), t.LiveEvents)
	for i := range t.Runs {
		h.webhooks.NoteStop(&t.Runs[i])
	}
	h.owner.NotifyServers(&head)
}

// noteRemoved notes that a thread was removed.
func (h *commitHooks) noteRemoved(thread string) {
	h.views.DropView(thread)
	h.holdings.NoteRemoved(thread)
}

// schedulerHooks do the work of other parts at the beginning of each look of the
// scheduler.
type schedulerHooks struct {
	capacity          *capacity.Limiter
	observer          runtime.Observer
	peers             *placement.Peers // nil when it does not matter where workers are
	uptime            func() time.Duration
	reportedLiveBytes int64 // the last value of Observer.LiveBytes; owned by the scheduler
}

// reportLiveBytes reports the bytes of live runs to the observer.
func (h *schedulerHooks) reportLiveBytes() {
	if n := h.capacity.HeldBytes(); n != h.reportedLiveBytes {
		h.reportedLiveBytes = n
		h.observer.LiveBytes(n)
	}
}

// queueServed queues the threads whose runs have workers here for a slot. It returns
// those whose workers are at other servers alone.
func (h *schedulerHooks) queueServed() (elsewhere []string) {
	if h.peers == nil {
		return nil
	}
	here, elsewhere := h.peers.ListServed(h.uptime())
	if len(here) > 0 {
		h.capacity.EnqueueForSlots(here)
	}
	return elsewhere
}
