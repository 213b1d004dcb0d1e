package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Watch follows a thread or a run from any position.
func (s *graphService) Watch(req *graphdv1.WatchRequest, stream eventStream) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	ctx := stream.Context()
	note(ctx, req.GetThreadId(), req.GetRunId())
	b := s.border()
	thread, run := b.id("thread_id", req.GetThreadId()), b.optionalID("run_id", req.GetRunId())
	selected := selectionIn(b, req.GetFilter())
	if req.GetSnapshotFirst() && req.GetStart() != nil {
		b.refuse("snapshot_first", "begins with the present state, so start must be unset")
	}
	if after, ok := req.GetStart().(*graphdv1.WatchRequest_After); ok {
		b.must("after", after.After != nil)
		b.must("after.log_id", after.After.GetLogId() != "")
	}
	if err := b.err(); err != nil {
		return err
	}
	if err := s.enterThread(thread); err != nil {
		return err
	}
	defer s.leaveThread(thread)
	begun, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer begun()
	if req.GetSnapshotFirst() {
		roomOf(ctx).Times = 2 // the output of the newest run, and the state
	}
	sub, err := s.watched(ctx, thread, run, req)
	if err != nil {
		return err
	}
	sub.selection, sub.snapshot, sub.begun = selected, req.GetSnapshotFirst(), begun
	return s.serve(stream, sub)
}

// watched looks up what is to be followed, and from where.
func (s *graphService) watched(
	ctx context.Context, thread, runID string, req *graphdv1.WatchRequest,
) (*subscription, error) {
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	sub := &subscription{head: head, bounded: !req.GetFollow(), until: head.LastEvent}
	if id := firstOf(runID, head.Run); id != "" {
		run, err := s.engine.Run(ctx, thread, id)
		if err != nil {
			return nil, err
		}
		sub.opened = &run
	}
	if runID != "" {
		sub.run = sub.opened
		if rest, last := resting(&head, sub.run); rest {
			sub.stopAt = max(last, 1)
		}
	}
	sub.after, err = startAfter(req, &head, sub.run)
	sub.mark = req.GetAfter().GetMark()
	return sub, err
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// startAfter finds the event after which a watch begins, and refuses a cursor
// that is not in the log.
func startAfter(req *graphdv1.WatchRequest, head *checkpoint.Head, run *checkpoint.Run) (uint64, error) {
	oldest := before(head.FirstEvent)
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
		return start.After.GetSequence(), runtime.InLog(start.After.GetSequence(), head)
	}
	if req.GetSnapshotFirst() {
		return head.LastEvent, nil
	}
	if run != nil {
		first := before(run.FirstEvent)
		return first, runtime.InLog(first, head)
	}
	return oldest, nil
}

// before turns the first wanted event into the cursor that shows it.
func before(first uint64) uint64 { return max(first, 1) - 1 }
