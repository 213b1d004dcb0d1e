package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// earlySubscription follows a run from before its first step, so that the client
// also gets the events that are never stored.
type earlySubscription struct {
	*eventStreamer
	wire.EventSelection

	follower Follower // nil = no run was started
	after    uint64
}

// followStarted is a runtime.StartHook.
func (e *earlySubscription) followStarted(thread string, after uint64) {
	e.closeFollower()
	e.follower, e.after = e.followThread(thread, after, 0, &e.EventSelection), after
}

func (e *earlySubscription) closeFollower() {
	if e.follower != nil {
		e.follower.Close()
		e.follower = nil
	}
}

// toSubscription follows the run that was started from where the call began to
// its next stop.
func (e *earlySubscription) toSubscription(st *runtime.Started, onDisconnect graphdv1.DisconnectPolicy) *subscription {
	run := startedRun(st)
	sub := &subscription{
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
