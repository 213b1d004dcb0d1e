package engine

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// connectedPollInterval is how often a follower reads the store while signals
// arrive: it finds what lost signals missed.
const connectedPollInterval = 2 * time.Second

// handleSignal takes in what another process tells. It is called by the store.
func (e *Engine) handleSignal(s checkpoint.Signal) {
	contain.Func(func() { e.dispatchSignal(s) }, contain.LogPanic(e.log, "a message of another server panicked"))()
}

func (e *Engine) dispatchSignal(s checkpoint.Signal) {
	switch {
	case s.Kind == checkpoint.SignalWake:
		e.handleWake(s.Owner, s.Thread)
		return
	case s.Thread == checkpoint.AllThreads:
		e.interruptFollowers.handleSignal(s.Kind)
		return
	}
	t := e.eventHub.findTopic(s.Thread)
	if t == nil {
		return
	}
	switch s.Kind {
	case checkpoint.SignalDeleted:
		e.eventHub.endTopic(s.Thread, e.now())
	case checkpoint.SignalConnected, checkpoint.SignalDisconnected:
		e.eventHub.invalidateTopic(s.Thread)
		t.setConnected(s.Kind == checkpoint.SignalConnected)
	case checkpoint.SignalRefresh:
		e.eventHub.invalidateTopic(s.Thread)
	case checkpoint.SignalEvents:
		if !s.Events[0].Ephemeral {
			t.publishEvents(s.Events)
			return
		}
		for _, event := range s.Events {
			t.publishRemoteEphemeral(event)
		}
	case checkpoint.SignalGap:
		t.publishRemoteEphemeral(checkpoint.Event{Kind: runtime.EventGap, Time: e.now()})
	case checkpoint.SignalWake: // see above
	}
}

func (t *topic) setConnected(heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isConnected = heard
}

// pollInterval is how often a follower looks at the store, 0 = never.
func (t *topic) pollInterval(poll time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if poll > 0 && t.isConnected {
		return max(poll, connectedPollInterval)
	}
	return poll
}

// publishRemoteEphemeral delivers an ephemeral event of another process. Its Seq is
// what that process knew: events after it may be known here, from another process,
// and those before it may not.
func (t *topic) publishRemoteEphemeral(e checkpoint.Event) {
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
