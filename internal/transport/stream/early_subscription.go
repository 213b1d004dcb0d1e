package stream

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// EarlySubscription follows a run from before its first step, so that the client
// also gets the events that are never stored.
type EarlySubscription struct {
	*Streamer
	wire.EventSelection

	waits    bool             // for the stop of the run, whatever comes before
	view     graphdv1.RunView // of the run that stops
	follower Follower         // nil = no run was started
	after    uint64
}

// NewEarlySubscription makes an EarlySubscription of the events that a client has
// selected. The caller calls CloseFollower.
func (s *Streamer) NewEarlySubscription(selection wire.EventSelection) *EarlySubscription {
	return &EarlySubscription{Streamer: s, EventSelection: selection}
}

// NewEarlyWait makes an EarlySubscription that waits for the stop of a run, of which a view is shown
// then. The caller calls CloseFollower.
func (s *Streamer) NewEarlyWait(view graphdv1.RunView) *EarlySubscription {
	return &EarlySubscription{Streamer: s, waits: true, view: view}
}

// FollowStarted begins to follow a started run. It is a runtime.StartHook.
func (e *EarlySubscription) FollowStarted(thread string, after uint64) {
	e.CloseFollower()
	e.after = after
	if e.waits {
		e.follower = e.awaitStop(thread, after, 0, e.view)
		return
	}
	e.follower = e.followThread(thread, after, 0, false, &e.EventSelection)
}

// CloseFollower closes the follower, also of a run that is served.
func (e *EarlySubscription) CloseFollower() {
	if e.follower != nil {
		e.follower.Close()
		e.follower = nil
	}
}

// ToSubscription follows the started run from the beginning of the call to the next
// stop of the run.
func (e *EarlySubscription) ToSubscription(st *runtime.Started, onDisconnect graphdv1.DisconnectPolicy) *Subscription {
	run := StartedRun(st)
	sub := &Subscription{
		head: st.Head, run: &run, openedRun: &run, lastSeq: st.After, isAttached: st.IsAttached, endsAtFirstStop: !st.IsAttached,
		cancelsOnLeave: onDisconnect == graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL,
		EventSelection: e.EventSelection,
	}
	if e.after == st.After {
		sub.follower = e.follower
	}
	if rest, last := isAtRest(&st.Head, &st.Run); rest {
		sub.stopSeq = max(last, 1)
	}
	return sub
}

// StartedRun returns the run as it is shown to the caller that started it: a watch
// after its last event shows all effects of the call. It has no etag, because the
// store numbered it after it was written.
func StartedRun(st *runtime.Started) checkpoint.Run {
	run := st.Run
	run.LastEvent, run.Revision = st.After, 0
	return run
}
