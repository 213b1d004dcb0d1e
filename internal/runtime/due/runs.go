package due

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// takeOverRun goes on with a run without a driver.
func (p *Processor) takeOverRun(ctx context.Context, head checkpoint.Head) error {
	var (
		refused   error
		elsewhere string
		l         *superstep.Loop
	)
	next, err := p.opts.Owner.Take(ctx, &head, runtime.WaitForever, func(ctx context.Context, c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		var err error
		if l, err = superstep.ContinueRun(ctx, p.opts.Env, p.opts.Reader, t, c.Thread(), nil); err != nil {
			refused = query.IgnoreLarge(err)
			return nil, err
		}
		c.Thread().Recovery.NoteTakeOver(&head)
		l.MarkHandedOut()
		if elsewhere = p.opts.Owner.FindOtherServer(head.Thread, l); elsewhere != "" && head.PreferredOwner == "" {
			return nil, errElsewhere
		}
		c.PutLease(t)
		return l, nil
	})
	switch {
	case refused != nil:
		return p.failUnusableRun(ctx, head, refused)
	case errors.Is(err, errElsewhere):
		return p.handOffDueThread(ctx, head, elsewhere)
	case err != nil:
		return err
	}
	p.log.Info("run taken up", zap.String("thread", head.Thread), zap.String("run", l.Run().ID), zap.Uint64("fence", next.Fence))
	return nil
}

// errElsewhere says that another server has the workers of a run.
var errElsewhere = errors.New("another server has the workers of the run")

// failUnusableRun fails a run that can't go on here or anywhere: its state can't be read,
// or nothing that its graph allows. A store that does not answer is no such
// reason, and a graph that is not known here may be known soon.
func (p *Processor) failUnusableRun(ctx context.Context, head checkpoint.Head, cause error) error {
	refused, ok := errors.AsType[*runtime.Error](cause)
	if !ok || refused.IsStoreFault() {
		return cause
	}
	if refused.Reason == runtime.ReasonGraphNotFound || refused.Reason == runtime.ReasonGraphVersionUnavailable {
		return p.postponeUnknownGraph(ctx, head, cause)
	}
	run, err := p.opts.Store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return err
	}
	_, err = p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Owner, t.Head.Due = "", time.Time{}
		if t.Head.Open > 0 {
			t.ScheduleBy(t.Now) // that sets the time of the next step
		}
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.RecordRunEnd(&run)
		return nil
	})
	if err == nil {
		p.logFailedRun(&run)
	}
	return err
}

// logFailedRun logs a run that has failed without being driven.
func (p *Processor) logFailedRun(run *checkpoint.Run) {
	p.log.Warn("run failed", append(runtime.FailureFields(run.Failure), zap.String("thread", run.Thread), zap.String("run", run.ID),
		zap.String("graph", run.Graph), zap.String("state", string(run.State)))...)
}

// postponeUnknownGraph leaves a thread whose graph is not known here alone for a while.
func (p *Processor) postponeUnknownGraph(ctx context.Context, head checkpoint.Head, why error) error {
	p.log.Warn("due thread not taken up", zap.String("thread", head.Thread), zap.String("run", head.Run), zap.Error(why), runtime.CauseField(why))
	_, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(p.opts.LeaseTTL)
		if head.PreferredOwner == p.opts.Server && head.PreferredUntil.After(head.Now) { // the graph may be so new that it is not known here yet
			t.Head.Due = t.Now.Add(p.opts.ScanInterval)
		}
		return nil
	})
	return err
}

// beginQueuedRun begins the first of the runs that wait.
func (p *Processor) beginQueuedRun(ctx context.Context, head checkpoint.Head) error {
	var (
		run     checkpoint.Run
		refused error
	)
	_, err := p.opts.Owner.Take(ctx, &head, runtime.WaitForever, func(ctx context.Context, c *ownership.Claim, t *commit.Tx) (*superstep.Loop, error) {
		var err error
		if run, err = p.opts.Store.Run(ctx, head.Thread, head.Queue[0]); err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		t.Head.Queue = head.Queue[1:]
		l, err := p.prepareQueuedRun(ctx, c.Thread(), t, &run)
		if err != nil {
			refused = query.IgnoreLarge(err)
			return nil, err
		}
		return l, c.PutLeaseOrHandOff(t, l)
	})
	if refused != nil {
		return p.failQueuedRun(ctx, head, run, refused)
	}
	return err
}

func (p *Processor) prepareQueuedRun(ctx context.Context, thread *superstep.Thread, t *commit.Tx, run *checkpoint.Run) (*superstep.Loop, error) {
	g, err := p.opts.Reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	if err := runtime.CheckExpected(&t.Head, run.Request.Expected); err != nil {
		return nil, err
	}
	state, err := p.opts.Reader.LoadState(ctx, thread.Reservation, &t.Head, g)
	if err != nil {
		return nil, err
	}
	run.Base = t.Head.Checkpoint
	l := superstep.NewRootLoop(p.opts.Env, thread, run, state)
	return l, superstep.BeginRun(ctx, p.opts.Reader, t, l)
}

// failQueuedRun fails a queued run that can no longer begin. The run behind it gets its
// turn.
func (p *Processor) failQueuedRun(ctx context.Context, head checkpoint.Head, run checkpoint.Run, cause error) error {
	var refused *runtime.Error
	if !errors.As(cause, &refused) || refused.IsStoreFault() {
		return cause
	}
	_, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Queue = head.Queue[1:]
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure})
		run.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, run)
		return nil
	})
	if err == nil {
		p.logFailedRun(&run)
	}
	return err
}
