package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// beginSubgraph prepares the subgraph's first superstep: it goes on where it stopped,
// or takes its input.
func (l *graphLoop) beginSubgraph(ctx context.Context, input payload.JSON) error {
	if l.maybeBegun {
		return l.continueSuperstep()
	}
	l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	first := l.state
	err := l.thread.commitChange(func(t *commit.Tx) error {
		l.state = first // the change may have to be made again
		l.setHeldBytes(0)
		if l.beginsWithCopy {
			return l.branchCheckpoint(t)
		}
		if err := l.enterInput(t, input); err != nil {
			return err
		}
		l.runInlineOnEntry(ctx, t) // RunSupersteps finds the end again
		return nil
	})
	if err != nil {
		return err
	}
	if l.beginsWithCopy && l.hasBreakpoints() {
		l.state = l.state.MarkBreakpointsPassed()
	}
	p, err := l.loadUnkeptProgress(l.state)
	l.setProgress(p)
	l.setHeldBytes(l.measureBytes())
	return err
}

// loadUnkeptProgress returns the progress of a superstep of a subgraph that keeps no
// checkpoints: it comes to the same superstep whenever its node is run again.
func (fr *frame) loadUnkeptProgress(s *pregel.State) (progress, error) {
	if fr.level.keepsCheckpoints || !fr.level.maybeRerun {
		return progress{}, nil
	}
	p, err := fr.env.Store.Pending(fr.thread.StoreCtx, fr.thread.ID, s.Checkpoint().ID)
	return newProgress(p), runtime.TranslateStoreError(err)
}

func (l *graphLoop) setProgress(p progress) {
	l.pending, l.maybeBegun = p, len(p.tasks) > 0
}

// continueSuperstep takes up the superstep at which the loop stopped.
func (l *graphLoop) continueSuperstep() error {
	if err := l.reloadSuperstep(); err != nil {
		return err
	}
	l.mustReportState = true
	if err := l.checkDueNodes(); err != nil {
		return err
	}
	s, err := l.applyCommands(l.state)
	if err != nil {
		return err
	}
	l.state = s
	l.passBreakpoints()
	if l.tasks, err = l.state.PlanTasks(); err != nil {
		return err
	}
	if l.maxStep == 0 {
		l.maxStep = l.state.NextStep() + 1 + l.stepLimit()
	}
	l.setHeldBytes(l.measureBytes())
	return nil
}

// reloadSuperstep looks again at a superstep whose interrupts have been answered
// while the loop was still live.
func (l *graphLoop) reloadSuperstep() error {
	p, err := l.env.Store.Pending(l.thread.StoreCtx, l.thread.ID, l.state.Checkpoint().ID)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	l.pending, l.maybeBegun = newProgress(p), true
	l.clearMemos()
	l.setHeldBytes(l.measureBytes())
	return nil
}
