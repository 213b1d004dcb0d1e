package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// putRunEnd puts the end of the run into a change: its state, its result, the release of
// the lease, and the turn of the runs behind it.
func (cw changeWriter) putRunEnd(s *pregel.State, v *End) error {
	fr := cw.frame
	cw.Head.Owner = ""
	v.IsCommitted = true
	if v.State == checkpoint.RunRunning { // handed over as it is
		cw.Head.Due = cw.Now
		cw.Head.RemoteTasks = fr.thread.Recovery.listLeft(fr.listUnfinished())
		fr.thread.RunEnd.PutHandOver(cw.Tx, fr.run)
		return nil
	}
	run := *fr.run
	if c := cw.Head.Cancel; c != nil && c.Run == run.ID {
		if !cw.keepsEnd(c, v) {
			return cw.putCancelledEnd(run, *c, v)
		}
		if err := HoldAnswers(fr.thread.StoreCtx, fr.env.Reader, cw.Tx); err != nil {
			return err
		}
	}
	if v.breakpoint != nil {
		cw.PutBreakpoint(v.breakpoint, s.NextStep())
	}
	run.State, run.Failure, run.Updated = v.State, v.Failure, cw.Now
	switch {
	case v.State == checkpoint.RunSucceeded:
		run.Output, run.Result = storedOutput(s)
	case v.breakpoint != nil:
		fr.putLiveOutput(cw.Tx, s)
	}
	if v.State != checkpoint.RunInterrupted && v.State != checkpoint.RunFailed {
		if err := WithdrawInterrupts(fr.thread.StoreCtx, fr.env.Reader, cw.Tx, run.ID, checkpoint.InterruptCancelled); err != nil {
			return err
		}
	}
	cw.RecordRunEnd(&run)
	return nil
}

// putCancelledEnd puts the end of a run that was asked to stop into a change.
func (cw changeWriter) putCancelledEnd(run checkpoint.Run, c checkpoint.Cancel, v *End) error {
	if v.breakpoint != nil && !c.Rollback {
		cw.putUnpassedBreakpoint(*v.breakpoint)
	}
	*v = End{State: c.EndState(cw.Head.Open), IsCommitted: true}
	if v.State == checkpoint.RunCancelled {
		v.Failure = CancelFailure(c.Reason)
	}
	return cw.frame.thread.RunEnd.PutCancelledEnd(cw.Tx, run, c)
}

// keepsEnd reports whether a run keeps the end that it has come to though it is asked to
// stop. One that waits for answers does not if all have come meanwhile.
func (cw changeWriter) keepsEnd(c *checkpoint.Cancel, v *End) bool {
	switch {
	case !c.KeepsQuestions() || v.State == checkpoint.RunCancelled:
		return false
	case v.State == checkpoint.RunInterrupted:
		return v.breakpoint != nil || cw.Head.Open > 0
	default:
		return true
	}
}

// putUnpassedBreakpoint puts a breakpoint that a run has come to when it is cancelled into
// a change: who goes on with the thread has not passed it.
func (cw changeWriter) putUnpassedBreakpoint(q checkpoint.Interrupt) {
	q.State, q.Created, q.Updated = checkpoint.InterruptCancelled, cw.Now, cw.Now
	cw.Interrupts = append(cw.Interrupts, q)
}

// maxLiveOutput is how many bytes the state of a run may have whose output is made for those who
// wait for its stop. A larger one is read from the store.
const maxLiveOutput = 64 << 10

// putLiveOutput puts the output of the state at which a run waits into a change, for those who wait
// for its stop. They see what others read later: no untracked values.
func (fr *frame) putLiveOutput(t *commit.Tx, s *pregel.State) {
	if fr.level.isRoot && !s.Graph().HasUntracked() && s.MemoryBytes() <= maxLiveOutput && fr.thread.Followers.WantsOutput() {
		t.LiveOutput = s.Output()
	}
}

// maxStoredOutput is how many bytes of output stand in the record of a run.
const maxStoredOutput = 1024

// storedOutput returns the output for the record of a run. A large output is part of the
// state: stored again with each run, it would soon be larger than the thread itself.
func storedOutput(s *pregel.State) (output payload.JSON, at string) {
	output = s.Output()
	if len(output) <= maxStoredOutput || s.Graph().HasUntracked() {
		return output, ""
	}
	return "", s.Checkpoint().ID
}
