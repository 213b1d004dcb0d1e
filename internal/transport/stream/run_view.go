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

// DescribeRun converts a run, with as much as a view shows of the open interrupts and of its state.
// It leaves out what does not fit in a message or in the memory of the server: the change that it
// describes may be made already, and must not be refused. head is that of the thread. Errors: those
// of the store.
func (s *Streamer) DescribeRun(
	ctx context.Context, run checkpoint.Run, head *checkpoint.Head, view graphdv1.RunView,
) (*graphdv1.Run, error) {
	open, err := s.readOpen(ctx, &run, head, view)
	if err != nil {
		return nil, err
	}
	if run.State == checkpoint.RunInterrupted && view == graphdv1.RunView_RUN_VIEW_FULL {
		output, err := s.Engine.OutputOfWaiting(ctx, interceptor.CallMemoryOf(ctx), &run)
		if err != nil && !isOutOfMemory(err) && !isGone(err) {
			return nil, err
		}
		run.Output = output
	}
	return s.fitRun(wire.RunToProto(run, head.LogID, open.ids), open.interrupts), nil
}

// openInterrupts are the open interrupts of a run, as far as they are shown.
type openInterrupts struct {
	ids        []string
	interrupts []checkpoint.Interrupt // nil = they are not wanted, or too large
}

// readOpen reads the open interrupts that a view shows of a run, the oldest first. A run also waits
// for those that it has taken over from a run that failed.
func (s *Streamer) readOpen(
	ctx context.Context, run *checkpoint.Run, head *checkpoint.Head, view graphdv1.RunView,
) (open openInterrupts, err error) {
	switch run.State {
	case checkpoint.RunInterrupted:
	case checkpoint.RunRunning:
		if !showsInterrupts(view) {
			return open, nil
		}
	case checkpoint.RunFailed: // the next run takes them over
		if !showsInterrupts(view) || head.Run != run.ID {
			return open, nil
		}
	default:
		return open, nil
	}
	if showsInterrupts(view) {
		list, whole, err := s.Engine.OpenInterrupts(ctx, interceptor.CallMemoryOf(ctx), run.Thread, maxOpenIDs)
		if err == nil && whole {
			return openInterrupts{listIDs(list), list}, nil
		}
		if err != nil && !isOutOfMemory(err) {
			return open, err
		}
	}
	open.ids, err = s.Engine.OpenInterruptIDs(ctx, run.Thread, maxOpenIDs)
	return open, err
}

func showsInterrupts(view graphdv1.RunView) bool {
	return view == graphdv1.RunView_RUN_VIEW_INTERRUPTS || view == graphdv1.RunView_RUN_VIEW_FULL
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
	if run.State == checkpoint.RunFailed && showsInterrupts(view) {
		return nil
	}
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
