package stream

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// maxOpenIDs bounds Run.open_interrupt_ids and Run.interrupts.
const maxOpenIDs = 500

// DescribeRun converts a run, with as much as a view shows of the interrupts that it waits for and of
// its state. It leaves out what does not fit in a message or in the memory of the server: the change
// that it describes may be made already, and must not be refused. Errors: those of the store.
func (s *Streamer) DescribeRun(
	ctx context.Context, run checkpoint.Run, logID string, view graphdv1.RunView,
) (*graphdv1.Run, error) {
	waits := run.State == checkpoint.RunInterrupted
	var shown []checkpoint.Interrupt
	if showsInterrupts(view) && !run.State.Terminal() {
		var err error
		if shown, err = s.readOpenInterrupts(ctx, &run); err != nil {
			return nil, err
		}
	}
	var ids []string
	switch {
	case waits && shown != nil:
		ids = listIDs(shown)
	case waits:
		var err error
		if ids, err = s.Engine.OpenInterruptIDs(ctx, run.Thread, run.ID, maxOpenIDs); err != nil {
			return nil, err
		}
	}
	if waits && view == graphdv1.RunView_RUN_VIEW_FULL {
		output, err := s.Engine.OutputOfWaiting(ctx, interceptor.CallMemoryOf(ctx), &run)
		if err != nil && !isOutOfMemory(err) && !isGone(err) {
			return nil, err
		}
		run.Output = output
	}
	return s.fitRun(wire.RunToProto(run, logID, ids), shown), nil
}

func showsInterrupts(view graphdv1.RunView) bool {
	return view == graphdv1.RunView_RUN_VIEW_INTERRUPTS || view == graphdv1.RunView_RUN_VIEW_FULL
}

// readOpenInterrupts reads the open interrupts of a run, the oldest first. It returns nil when
// there is none, and when they are too large to be read together.
func (s *Streamer) readOpenInterrupts(ctx context.Context, run *checkpoint.Run) ([]checkpoint.Interrupt, error) {
	open, whole, err := s.Engine.OpenInterrupts(ctx, interceptor.CallMemoryOf(ctx), run.Thread, run.ID, maxOpenIDs)
	if isOutOfMemory(err) || err == nil && !whole {
		return nil, nil
	}
	return open, err
}

// isOutOfMemory reports whether a read was refused because calls hold as much as they may.
func isOutOfMemory(err error) bool {
	return errors.Is(err, &runtime.Error{Reason: runtime.ReasonTooManyRequests})
}

// isGone reports whether a state can't be read because the thread or its graph has changed meanwhile.
func isGone(err error) bool {
	gone := []string{runtime.ReasonThreadNotFound, runtime.ReasonGraphNotFound, runtime.ReasonCheckpointNotFound}
	return slices.ContainsFunc(gone, func(reason string) bool { return errors.Is(err, &runtime.Error{Reason: reason}) })
}

func listIDs(open []checkpoint.Interrupt) []string {
	ids := make([]string, 0, len(open))
	for i := range open {
		ids = append(ids, open[i].ID)
	}
	return ids
}

// fitRun adds the interrupts to a run, and leaves out what makes it larger than a message may be.
func (s *Streamer) fitRun(run *graphdv1.Run, shown []checkpoint.Interrupt) *graphdv1.Run {
	if len(shown) > 0 {
		run.Interrupts = wire.InterruptsToProto(shown)
		if proto.Size(run) > s.MaxMessageBytes {
			run.Interrupts = nil
		}
	}
	if run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED && run.Output != nil && proto.Size(run) > s.MaxMessageBytes {
		run.Output = nil
	}
	return run
}

// describeStoppedRun converts a run that has stopped here, nil when more is to be shown than is
// known of it.
func (s *Streamer) describeStoppedRun(stopped *runtime.StoppedRun, logID string, view graphdv1.RunView) *graphdv1.Run {
	run, shown := stopped.Run, []checkpoint.Interrupt(nil)
	if run.State == checkpoint.RunInterrupted && showsInterrupts(view) {
		if shown = stopped.Interrupts; len(shown) != len(stopped.OpenInterrupts) || len(shown) > maxOpenIDs {
			return nil
		}
	}
	if run.State == checkpoint.RunInterrupted && view == graphdv1.RunView_RUN_VIEW_FULL {
		if run.Output = stopped.Output; run.Output == "" {
			return nil
		}
	}
	ids := stopped.OpenInterrupts[:min(len(stopped.OpenInterrupts), maxOpenIDs)]
	return s.fitRun(wire.RunToProto(run, logID, ids), shown)
}
