package stream

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Subscription describes the events that one client follows.
type Subscription struct {
	head            checkpoint.Head
	run             *checkpoint.Run // nil = the thread across its runs
	openedRun       *checkpoint.Run // shown first; nil = none
	isOutputDropped bool            // its output is not held any more
	lastSeq         uint64          // last event that was handled
	mark            uint32          // of that event, 0 = unknown
	isAttached      bool
	// endsAtFirstStop ends the stream at the first stop of the run that it meets. A
	// repeated call reads on, because the run may have continued since.
	endsAtFirstStop    bool
	stopSeq            uint64 // the run is at rest and this is its last event; 0 = unknown
	endSeq             uint64 // end of the log, for a watch without following
	isBounded          bool   // until is set
	startsWithSnapshot bool
	cancelsOnLeave     bool               // cancel the run when the client leaves
	wantsRecent        bool               // show ephemeral events from before, too
	recent             []checkpoint.Event // those that are not shown yet
	follower           Follower           // subscribed already; nil = begin to follow
	OnBegun            func()             // called when the stream has begun; nil = not needed
	wire.EventSelection
}

// NewWatchSubscription reads the thread or the run that a watch follows, and finds
// where it begins. Errors: THREAD_NOT_FOUND, RUN_NOT_FOUND, INVALID_CURSOR, those
// of runtime.CheckCursorRange, and those of the store.
func (s *Streamer) NewWatchSubscription(
	ctx context.Context, thread, runID string, req *graphdv1.WatchRequest,
) (*Subscription, error) {
	head, err := s.Engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	sub := &Subscription{
		head: head, isBounded: !req.GetFollow(), endSeq: head.LastEvent, startsWithSnapshot: req.GetSnapshotFirst(),
		wantsRecent: req.GetRecentEphemeral(),
	}
	if id := cmp.Or(runID, head.Run); id != "" {
		run, err := s.Engine.Run(ctx, interceptor.CallMemoryOf(ctx), thread, id)
		if err != nil {
			return nil, err
		}
		sub.openedRun = &run
	}
	if runID != "" {
		sub.run = sub.openedRun
		if rest, last := isAtRest(&head, sub.run); rest {
			sub.stopSeq = max(last, 1)
		}
	}
	sub.lastSeq, err = watchStart(req, &head, sub.run)
	sub.mark = req.GetAfter().GetMark()
	return sub, err
}

// watchStart finds the event after which a watch begins, and refuses a cursor
// that is not in the log.
func watchStart(req *graphdv1.WatchRequest, head *checkpoint.Head, run *checkpoint.Run) (uint64, error) {
	oldest := cursorBefore(head.FirstEvent)
	switch start := req.GetStart().(type) {
	case *graphdv1.WatchRequest_Beginning:
		return oldest, nil
	case *graphdv1.WatchRequest_Now:
		return head.LastEvent, nil
	case *graphdv1.WatchRequest_After:
		if start.After.GetLogId() != head.LogID {
			return 0, runtime.Errorf(runtime.ReasonInvalidCursor,
				"the cursor belongs to another log: the thread was deleted and made again since").
				With("logId", head.LogID)
		}
		return start.After.GetSequence(), runtime.CheckCursorRange(start.After.GetSequence(), head)
	}
	if req.GetSnapshotFirst() {
		return head.LastEvent, nil
	}
	if run != nil {
		first := cursorBefore(run.FirstEvent)
		return first, runtime.CheckCursorRange(first, head)
	}
	return oldest, nil
}

// cursorBefore returns the cursor before an event.
func cursorBefore(first uint64) uint64 { return max(first, 1) - 1 }
