package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Watch follows a thread or a run from any position. Errors: INVALID_FIELD, those
// of stream.Registry, those of Streamer.NewWatchSubscription, and those of
// Streamer.ServeStream.
func (s *graphService) Watch(req *graphdv1.WatchRequest, ss stream.EventStream) error {
	if err := s.streams.AddStream(ss.Context()); err != nil {
		return err
	}
	defer s.streams.RemoveStream()
	ctx := ss.Context()
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	v := s.newValidator(ctx)
	thread, run := v.CheckThread("thread_id", req.GetThreadId()), v.CheckOptionalID("run_id", req.GetRunId())
	selected := wire.EventSelectionFromProto(v, req.GetFilter())
	if req.GetSnapshotFirst() && req.GetStart() != nil {
		v.AddViolation("snapshot_first", "begins with the present state, so start must be unset")
	}
	if req.GetRecentEphemeral() && (req.GetSnapshotFirst() || !req.GetFollow()) {
		v.AddViolation("recent_ephemeral", "shows events in their places while a thread is followed, so follow must be set and snapshot_first unset")
	}
	if after, ok := req.GetStart().(*graphdv1.WatchRequest_After); ok {
		v.RequireSet("after", after.After != nil)
		v.RequireSet("after.log_id", after.After.GetLogId() != "")
	}
	if err := v.Err(); err != nil {
		return err
	}
	if err := s.streams.AddThreadStream(thread); err != nil {
		return err
	}
	defer s.streams.RemoveThreadStream(thread)
	begun, err := s.streams.AcquireOpeningSlot(ctx)
	if err != nil {
		return err
	}
	defer begun()
	if req.GetSnapshotFirst() {
		interceptor.CallMemoryOf(ctx).LargeParts = 2 // the output of the newest run, and the state
	}
	sub, err := s.events.NewWatchSubscription(ctx, thread, run, req)
	if err != nil {
		return err
	}
	sub.EventSelection, sub.OnBegun = selected, begun
	return s.events.ServeStream(ss, sub)
}
