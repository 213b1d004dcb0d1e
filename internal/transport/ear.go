package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// ear follows a run from before it begins to work, so that the client misses
// nothing of it, not even what is never stored.
type ear struct {
	*pump
	selection

	follower Follower // nil = not told of a run
	after    uint64
}

// listen is a runtime.Watch.
func (e *ear) listen(thread string, after uint64) {
	e.close()
	e.follower, e.after = e.pump.listen(thread, after, 0, &e.selection), after
}

func (e *ear) close() {
	if e.follower != nil {
		e.follower.Close()
		e.follower = nil
	}
}

// subscription follows the run that was started from where the call began to
// its next stop.
func (e *ear) subscription(st runtime.Started, onDisconnect graphdv1.DisconnectPolicy) *subscription {
	run := begun(st)
	sub := &subscription{
		head: st.Head, run: &run, opened: &run, after: st.After, attached: st.Attached, firstStop: !st.Attached,
		cancel:    onDisconnect == graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL,
		selection: e.selection,
	}
	if e.after == st.After {
		sub.follower = e.follower
	}
	if rest, last := resting(&st.Head, &st.Run); rest {
		sub.stopAt = max(last, 1)
	}
	return sub
}
