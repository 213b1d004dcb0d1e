package feed

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// connectedPollInterval is the interval at which a follower reads the store
// while signals arrive. The read finds the changes of lost signals.
const connectedPollInterval = 2 * time.Second

// HandleSignal handles a signal of another process for threads and interrupts. The
// store calls it.
func (f *Feed) HandleSignal(s checkpoint.Signal) {
	contain.Func(func() { f.dispatchSignal(s) }, contain.LogPanic(f.opts.Logger, "a message of another server panicked"))()
}

func (f *Feed) dispatchSignal(s checkpoint.Signal) {
	if s.Thread == checkpoint.AllThreads {
		f.interruptFollowers.handleSignal(s.Kind)
		return
	}
	t := f.hub.findTopic(s.Thread)
	if t == nil {
		return
	}
	switch s.Kind {
	case checkpoint.SignalDeleted:
		f.hub.endTopic(s.Thread, f.opts.Now())
	case checkpoint.SignalConnected, checkpoint.SignalDisconnected:
		f.hub.invalidateTopic(s.Thread)
		t.setConnected(s.Kind == checkpoint.SignalConnected)
	case checkpoint.SignalRefresh:
		f.hub.invalidateTopic(s.Thread)
	case checkpoint.SignalEvents:
		if !s.Events[0].Ephemeral {
			t.PublishEvents(s.Events)
			return
		}
		for _, event := range s.Events {
			t.publishRemoteEphemeral(event)
		}
	case checkpoint.SignalGap:
		t.publishRemoteEphemeral(checkpoint.Event{Kind: runtime.EventGap, Time: f.opts.Now(), Value: runtime.GapValue(s.Missing)})
	case checkpoint.SignalWake: // the engine's
	}
}

func (t *Topic) setConnected(heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isConnected = heard
}

// pollInterval returns the interval at which a follower reads the store, 0 =
// never.
func (t *Topic) pollInterval(poll time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if poll > 0 && t.isConnected {
		return max(poll, connectedPollInterval)
	}
	return poll
}

// publishRemoteEphemeral delivers an ephemeral event of another process. Its Seq is the
// newest event that process knew. This process may know later events already, and may
// lack earlier events.
func (t *Topic) publishRemoteEphemeral(e checkpoint.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followers) == 0 || t.isDeleted {
		return
	}
	if e.Seq > t.lastSeq {
		t.dropBatches(len(t.ring))
		t.lastSeq, t.storeOnlyUpTo = e.Seq, e.Seq
	}
	e.Seq, e.Ephemeral = t.lastSeq, true
	t.pushBatch([]checkpoint.Event{e})
}
