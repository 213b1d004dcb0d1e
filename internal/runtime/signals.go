package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// rarely is how often a follower looks at the store when it is told of what
// others write: only signals that got lost are found so.
const rarely = 2 * time.Second

// hear takes in what another process tells. It is called by the store.
func (e *Engine) hear(s checkpoint.Signal) {
	contain.Func(func() { e.heed(s) }, contain.Log(e.log, "a message of another server panicked"))()
}

func (e *Engine) heed(s checkpoint.Signal) {
	switch {
	case s.Kind == checkpoint.SignalWake:
		e.roused(s.Owner, s.Thread)
		return
	case s.Thread == checkpoint.AllThreads:
		e.inbox.hear(s.Kind)
		return
	}
	t := e.hub.find(s.Thread)
	if t == nil {
		return
	}
	switch s.Kind {
	case checkpoint.SignalDeleted:
		e.hub.end(s.Thread, e.now())
	case checkpoint.SignalTuned, checkpoint.SignalDeaf:
		e.hub.doubt(s.Thread)
		t.tune(s.Kind == checkpoint.SignalTuned)
	case checkpoint.SignalLook:
		e.hub.doubt(s.Thread)
	case checkpoint.SignalEvents:
		if !s.Events[0].Ephemeral {
			t.publish(s.Events)
			return
		}
		for _, event := range s.Events {
			t.overhear(event)
		}
	case checkpoint.SignalGap:
		t.overhear(checkpoint.Event{Kind: EventGap, Time: e.now()})
	case checkpoint.SignalWake: // see above
	}
}

func (t *topic) tune(heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = heard
}

// patience is how often a follower looks at the store, 0 = never.
func (t *topic) patience(poll time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if poll > 0 && t.heard {
		return max(poll, rarely)
	}
	return poll
}

// overhear hands on an ephemeral event of another process. Its Seq is what that
// process knew: events after it may be known here, from somebody else, and those
// before it may not.
func (t *topic) overhear(e checkpoint.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followers) == 0 || t.over {
		return
	}
	if e.Seq > t.last {
		t.drop(len(t.ring))
		t.last, t.floor = e.Seq, e.Seq
	}
	e.Seq, e.Ephemeral = t.last, true
	t.push([]checkpoint.Event{e})
}
