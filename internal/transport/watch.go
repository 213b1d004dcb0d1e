package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Watch follows a thread or a run from any position.
func (s *graphService) Watch(req *graphdv1.WatchRequest, stream eventStream) error {
	if err := s.addStream(); err != nil {
		return err
	}
	defer s.removeStream()
	ctx := stream.Context()
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	b := s.newValidator()
	thread, run := b.CheckID("thread_id", req.GetThreadId()), b.CheckOptionalID("run_id", req.GetRunId())
	selected := wire.EventSelectionFromProto(b, req.GetFilter())
	if req.GetSnapshotFirst() && req.GetStart() != nil {
		b.AddViolation("snapshot_first", "begins with the present state, so start must be unset")
	}
	if after, ok := req.GetStart().(*graphdv1.WatchRequest_After); ok {
		b.RequireSet("after", after.After != nil)
		b.RequireSet("after.log_id", after.After.GetLogId() != "")
	}
	if err := b.Err(); err != nil {
		return err
	}
	if err := s.addThreadStream(thread); err != nil {
		return err
	}
	defer s.removeThreadStream(thread)
	begun, err := s.acquireOpeningSlot(ctx)
	if err != nil {
		return err
	}
	defer begun()
	if req.GetSnapshotFirst() {
		interceptor.CallMemoryOf(ctx).LargeParts = 2 // the output of the newest run, and the state
	}
	sub, err := s.newWatchSubscription(ctx, thread, run, req)
	if err != nil {
		return err
	}
	sub.EventSelection, sub.startsWithSnapshot, sub.onBegun = selected, req.GetSnapshotFirst(), begun
	return s.serveStream(stream, sub)
}

// newWatchSubscription reads what is followed, and from where.
func (s *graphService) newWatchSubscription(
	ctx context.Context, thread, runID string, req *graphdv1.WatchRequest,
) (*subscription, error) {
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	sub := &subscription{head: head, isBounded: !req.GetFollow(), endSeq: head.LastEvent}
	if id := firstNonEmpty(runID, head.Run); id != "" {
		run, err := s.engine.Run(ctx, thread, id)
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

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
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
