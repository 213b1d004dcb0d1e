package engine

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// dueWork does what is due for a thread: it goes on with a run, begins one that is queued,
// ends what expires, or leaves the thread to others.
type dueWork struct{ engine *Engine }

// ProcessDue does the due work of one thread. A missing or held thread is no error.
// Errors: those of the store, and those of the run that it takes up.
func (d *dueWork) ProcessDue(ctx context.Context, thread string) error {
	defer d.engine.feed.InvalidateTopic(thread)
	here := d.engine.held.IsLive(thread)
	head, err := d.engine.store.Head(ctx, thread)
	if err != nil {
		if errors.Is(err, checkpoint.ErrThreadNotFound) {
			return nil
		}
		return err
	}
	late := !head.Due.IsZero() && !head.Due.After(head.Now)
	switch {
	case here && late && head.Open > 0:
		return d.expireInterrupts(ctx, head)
	case here, head.Leased() && head.Owner != d.engine.id, head.RetryAt.After(head.Now):
		return nil
	case head.State == checkpoint.ThreadBusy && head.Cancel != nil && head.Cancel.Run == head.Run:
		return d.engine.canceller.FinishCancel(ctx, head)
	case (head.State == checkpoint.ThreadBusy || query.CanResume(&head)) && d.isLeftToOther(&head):
		return nil
	case head.State == checkpoint.ThreadBusy && d.engine.peers != nil && d.engine.peers.IsStillUnserved(&head):
		return d.postponeUnserved(ctx, head)
	case head.State == checkpoint.ThreadBusy:
		return d.takeWithCapacity(ctx, head, d.takeOverRun)
	case isExpired(&head):
		return d.engine.changer.RemoveThread(ctx, head)
	case query.CanResume(&head):
		return d.takeWithCapacity(ctx, head, d.takeOverRun)
	case d.engine.threads.IsPruneDue(&head):
		return d.engine.threads.PruneRested(ctx, head)
	case head.State == checkpoint.ThreadInterrupted && head.Open > 0:
		return d.expireInterrupts(ctx, head)
	case head.State != checkpoint.ThreadInterrupted && len(head.Queue) > 0:
		return d.takeWithCapacity(ctx, head, d.beginQueuedRun)
	default:
		return d.setNextDue(ctx, head)
	}
}

// takeWithCapacity takes a thread if there is capacity for its run, else the thread
// is queued.
func (d *dueWork) takeWithCapacity(ctx context.Context, head checkpoint.Head, take func(context.Context, checkpoint.Head) error) error {
	var err error = capacity.ErrNoCapacity
	if d.engine.capacity.HasFreeSlot() {
		err = take(ctx, head)
	}
	switch {
	case errors.Is(err, capacity.ErrNoCapacity):
		d.engine.capacity.EnqueueThread(head.Thread, err)
		return nil
	case errors.Is(err, ownership.ErrThreadHeld), errors.Is(err, ownership.ErrDraining):
		return nil
	}
	return err
}

// isExpired reports whether a thread's time is over.
func isExpired(h *checkpoint.Head) bool {
	at := commit.ExpiryTime(h)
	return !at.IsZero() && !at.After(h.Now)
}

// setNextDue sets the time at which the thread is due next.
func (d *dueWork) setNextDue(ctx context.Context, head checkpoint.Head) error {
	_, err := d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Due = commit.ExpiryTime(&t.Head)
		return nil
	})
	return err
}

// takeOverRun goes on with a run without a driver.
func (d *dueWork) takeOverRun(ctx context.Context, head checkpoint.Head) error {
	var (
		refused   error
		elsewhere string
		l         *superstep.Loop
	)
	next, err := d.engine.owner.Take(ctx, &head, runtime.WaitForever, func(c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		var err error
		if l, err = d.engine.continueRun(ctx, d.engine.reader, c, t, nil); err != nil {
			refused = query.IgnoreLarge(err)
			return nil, err
		}
		c.Thread().Recovery.NoteTakeOver(&head)
		l.MarkHandedOut()
		if elsewhere = d.engine.owner.FindOtherServer(head.Thread, l); elsewhere != "" && head.PreferredOwner == "" {
			return nil, errElsewhere
		}
		c.PutLease(t)
		return l, nil
	})
	switch {
	case refused != nil:
		return d.failUnusableRun(ctx, head, refused)
	case errors.Is(err, errElsewhere):
		return d.handOffDueThread(ctx, head, elsewhere)
	case err != nil:
		return err
	}
	d.engine.log.Info("run taken up", zap.String("thread", head.Thread), zap.String("run", l.Run().ID), zap.Uint64("fence", next.Fence))
	return nil
}

// errElsewhere says that another server has the workers of a run.
var errElsewhere = errors.New("another server has the workers of the run")

// failUnusableRun fails a run that can't go on here or anywhere: its state can't be read,
// or nothing that its graph allows. A store that does not answer is no such
// reason, and a graph that is not known here may be known soon.
func (d *dueWork) failUnusableRun(ctx context.Context, head checkpoint.Head, cause error) error {
	refused, ok := errors.AsType[*runtime.Error](cause)
	if !ok || refused.IsStoreFault() {
		return cause
	}
	if refused.Reason == runtime.ReasonGraphNotFound || refused.Reason == runtime.ReasonGraphVersionUnavailable {
		return d.postponeUnknownGraph(ctx, head, cause)
	}
	run, err := d.engine.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return err
	}
	_, err = d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Owner, t.Head.Due = "", time.Time{}
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.RecordRunEnd(&run)
		return nil
	})
	if err == nil {
		d.logFailedRun(&run)
	}
	return err
}

// logFailedRun logs a run that has failed without being driven.
func (d *dueWork) logFailedRun(run *checkpoint.Run) {
	d.engine.log.Warn("run failed", append(runtime.FailureFields(run.Failure), zap.String("thread", run.Thread), zap.String("run", run.ID),
		zap.String("graph", run.Graph), zap.String("state", string(run.State)))...)
}

// postponeUnknownGraph leaves a thread whose graph is not known here alone for a while.
func (d *dueWork) postponeUnknownGraph(ctx context.Context, head checkpoint.Head, why error) error {
	d.engine.log.Warn("due thread not taken up", zap.String("thread", head.Thread), zap.String("run", head.Run), zap.Error(why), runtime.CauseField(why))
	_, err := d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(d.engine.opts.LeaseTTL)
		if head.PreferredOwner == d.engine.id && head.PreferredUntil.After(head.Now) { // the graph may be so new that it is not known here yet
			t.Head.Due = t.Now.Add(d.engine.opts.ScanInterval)
		}
		return nil
	})
	return err
}

// beginQueuedRun begins the first of the runs that wait.
func (d *dueWork) beginQueuedRun(ctx context.Context, head checkpoint.Head) error {
	var (
		run     checkpoint.Run
		refused error
	)
	_, err := d.engine.owner.Take(ctx, &head, runtime.WaitForever, func(c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		var err error
		if run, err = d.engine.store.Run(ctx, head.Thread, head.Queue[0]); err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		t.Head.Queue = head.Queue[1:]
		l, err := d.prepareQueuedRun(ctx, c.Thread(), t, &run)
		if err != nil {
			refused = query.IgnoreLarge(err)
			return nil, err
		}
		return l, c.PutLeaseOrHandOff(t, l)
	})
	if refused != nil {
		return d.failQueuedRun(ctx, head, run, refused)
	}
	return err
}

func (d *dueWork) prepareQueuedRun(ctx context.Context, thread *superstep.Thread, t *commit.Tx, run *checkpoint.Run) (*superstep.Loop, error) {
	g, err := d.engine.reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	if err := runtime.CheckExpected(&t.Head, run.Request.Expected); err != nil {
		return nil, err
	}
	state, err := d.engine.reader.LoadState(ctx, thread.Reservation, &t.Head, g)
	if err != nil {
		return nil, err
	}
	run.Base = t.Head.Checkpoint
	l := superstep.NewRootLoop(d.engine.loopEnv, thread, run, state)
	return l, superstep.BeginRun(ctx, d.engine.reader, t, l)
}

// failQueuedRun fails a queued run that can no longer begin; what is behind it
// gets its turn.
func (d *dueWork) failQueuedRun(ctx context.Context, head checkpoint.Head, run checkpoint.Run, cause error) error {
	var refused *runtime.Error
	if !errors.As(cause, &refused) || refused.IsStoreFault() {
		return cause
	}
	_, err := d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Queue = head.Queue[1:]
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure})
		run.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, run)
		return nil
	})
	if err == nil {
		d.logFailedRun(&run)
	}
	return err
}

// expireInterrupts does what was agreed on for interrupts that were not answered in time.
func (d *dueWork) expireInterrupts(ctx context.Context, head checkpoint.Head) error {
	_, err := d.engine.changer.ChangeFrom(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != head.Run {
			return checkpoint.ErrConflict
		}
		open, err := d.engine.reader.ListOpenInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		t.Head.Updated, t.Head.Due = head.Updated, time.Time{}
		if t.Head.State != checkpoint.ThreadBusy {
			t.Head.Due = commit.ExpiryTime(&t.Head)
		}
		late := takeExpired(t, open)
		if len(late) == 0 {
			return nil
		}
		return d.putExpired(ctx, t, late)
	})
	d.engine.wakeScheduler()
	return err
}

// takeExpired returns the expired interrupts and schedules the thread for the
// others.
func takeExpired(t *commit.Tx, open []checkpoint.Interrupt) []checkpoint.Interrupt {
	var late []checkpoint.Interrupt
	for _, q := range open {
		if q.Expires.IsZero() || q.Expires.After(t.Now) {
			t.ScheduleBy(q.Expires)
			continue
		}
		q.State, q.Updated = checkpoint.InterruptExpired, t.Now
		if q.Expiry == checkpoint.ExpiryResumeDefault {
			q.Response = orNull(q.Default)
		}
		late = append(late, q)
	}
	return late
}

// putExpired puts the end of some interrupts into a change: their nodes go on, with
// the default or with the failure that there was no answer, or the run is
// cancelled.
func (d *dueWork) putExpired(ctx context.Context, t *commit.Tx, late []checkpoint.Interrupt) error {
	t.Interrupts = append(t.Interrupts, late...)
	t.Head.Open = max(0, t.Head.Open-len(late))
	t.Head.Updated = t.Now
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: late})
	for _, q := range late {
		if q.Expiry != checkpoint.ExpiryCancelRun {
			t.Head.Answered++
			continue
		}
		return d.cancelExpiredRun(ctx, t)
	}
	if t.Head.Owner == "" {
		t.ScheduleBy(t.Now)
	}
	return nil
}

// cancelExpiredRun ends the run whose interrupt expired, or asks its driver to.
func (d *dueWork) cancelExpiredRun(ctx context.Context, t *commit.Tx) error {
	request := checkpoint.Cancel{Run: t.Head.Run, Reason: "a question expired"}
	if t.Head.State == checkpoint.ThreadBusy {
		if err := d.engine.canceller.PutRequest(ctx, t, request); !errors.Is(err, commit.ErrNoChange) {
			return err
		}
		return nil
	}
	run, err := d.engine.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	return d.engine.canceller.PutCancelledEnd(ctx, t, run, request)
}

func orNull(v payload.JSON) payload.JSON {
	if v == "" {
		return payload.Null
	}
	return v
}

// postponeUnserved leaves such a thread to a server that has workers for it, or alone for a
// longer while. Interrupts that expire meanwhile are attended to.
func (d *dueWork) postponeUnserved(ctx context.Context, head checkpoint.Head) error {
	u, _ := d.engine.unserved.FindRun(head.Thread)
	needs := make([][]checkpoint.Capability, len(u.Needs))
	for i := range needs {
		needs[i] = u.Needs[i : i+1]
	}
	if to := d.engine.peers.ChooseServer(head.Thread, needs); to != "" {
		return d.handOffDueThread(ctx, head, to)
	}
	next, err := d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(u.NextPauseTime())
		t.ScheduleBy(u.Deadline)
		if head.Open == 0 {
			return nil
		}
		open, err := d.engine.reader.ListOpenInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		if late := takeExpired(t, open); len(late) > 0 {
			return d.putExpired(ctx, t, late)
		}
		return nil
	})
	if err == nil {
		d.engine.unserved.NoteCheck(head.Thread, next.Revision, d.engine.uptime())
	}
	return err
}

// isLeftToOther reports whether another server is expected to take a thread.
func (d *dueWork) isLeftToOther(head *checkpoint.Head) bool {
	return d.engine.peers != nil && head.PreferredOwner != "" && head.PreferredOwner != d.engine.id && head.PreferredUntil.After(head.Now) && d.engine.peers.IsMember(head.PreferredOwner)
}

// handOffDueThread hands a due thread off to the server with its workers.
func (d *dueWork) handOffDueThread(ctx context.Context, head checkpoint.Head, to string) error {
	_, err := d.engine.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.RemoteTasks = head.Updated, superstep.RemoteTasksOf(&head)
		d.engine.owner.PutHandOff(t, to)
		return nil
	})
	return err
}

// FreeSpace removes an expired thread, or prunes a thread that rests. Errors: those of
// the store, and those of RemoveThread and PruneRested.
func (d *dueWork) FreeSpace(ctx context.Context, thread string) error {
	head, err := d.engine.store.Head(ctx, thread)
	switch {
	case err != nil:
		return err
	case head.Leased() && head.Owner != d.engine.id, head.RetryAt.After(head.Now), head.State == checkpoint.ThreadBusy:
		return nil
	case isExpired(&head):
		return d.engine.changer.RemoveThread(ctx, head)
	case !query.CanResume(&head) && d.engine.threads.IsPruneDue(&head):
		return d.engine.threads.PruneRested(ctx, head)
	}
	return nil
}

// StoreQuarantine records the quarantine in the head of a thread. A lease without a
// session is returned. Errors: those of Changer.ChangeFrom but checkpoint.ErrConflict.
func (d *dueWork) StoreQuarantine(ctx context.Context, head *checkpoint.Head, failures int, pause time.Duration) error {
	if head.Leased() && head.Owner != d.engine.id {
		return nil
	}
	_, err := d.engine.changer.ChangeFrom(ctx, *head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Faults, t.Head.RetryAt = failures, t.Now.Add(pause)
		if t.Lease == 0 {
			t.Head.RemoteTasks, t.Head.Owner = superstep.RemoteTasksOf(&t.Head), ""
		}
		t.ScheduleBy(t.Head.RetryAt)
		return nil
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // the thread is no longer as it was
	}
	return err
}

// queueServed queues the threads whose runs have workers here for a slot. It returns
// those whose workers are at other servers alone.
func (d *dueWork) queueServed() (elsewhere []string) {
	e := d.engine
	if e.peers == nil {
		return nil
	}
	here, elsewhere := e.peers.ListServed(e.uptime())
	if len(here) > 0 {
		e.capacity.EnqueueForSlots(here)
	}
	return elsewhere
}
