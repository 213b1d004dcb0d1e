// Package due does the due work of one thread at a time: the scheduler finds the
// threads.
package due

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/crons"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
)

// Store is the part of the store that a Processor reads directly.
type Store interface {
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Run(ctx context.Context, thread, run string) (checkpoint.Run, error)
}

// Owner takes threads, and leaves them to other servers.
type Owner interface {
	Take(ctx context.Context, head *checkpoint.Head, timeout time.Duration, p ownership.Prepare) (*checkpoint.Head, error)
	FindOtherServer(thread string, l *superstep.Loop) string
	PutHandOff(t *commit.Tx, server string)
}

// Changer changes threads that may be held here.
type Changer interface {
	ChangeFrom(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
	RemoveThread(ctx context.Context, head checkpoint.Head) error
}

// Canceller ends runs that are cancelled.
type Canceller interface {
	FinishCancel(ctx context.Context, head checkpoint.Head) error
	PutRequest(ctx context.Context, t *commit.Tx, request checkpoint.Cancel) error
	PutCancelledEnd(ctx context.Context, t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error
}

// Pruner removes the past of threads that rest.
type Pruner interface {
	IsPruneDue(h *checkpoint.Head) bool
	PruneRested(ctx context.Context, head checkpoint.Head) error
}

// Capacity reports whether a run may begin, and queues the threads of those that may
// not.
type Capacity interface {
	CheckSlot(thread string) error // capacity.ErrNoCapacity when it may not
	EnqueueThread(thread, run string, lack error)
}

// Webhooks calls addresses when runs stop.
type Webhooks interface {
	ProcessDue(ctx context.Context, head checkpoint.Head) error
}

// Crons fires crons.
type Crons interface {
	ProcessDue(ctx context.Context, head checkpoint.Head) error
}

// Options are the collaborators of a Processor.
type Options struct {
	Server       string        // name of this server in leases
	LeaseTTL     time.Duration // how long a silent server keeps a thread
	ScanInterval time.Duration // how often a server looks for threads that are due

	Store     Store
	Reader    *query.Reader
	Committer *commit.Committer
	Env       *superstep.Env // of the loops of the runs that go on or begin
	Owner     Owner
	Changer   Changer
	Canceller Canceller
	Pruner    Pruner
	Capacity  Capacity
	Webhooks  Webhooks
	Crons     Crons
	Unserved  *placement.UnservedRuns
	Peers     *placement.Peers // nil when it does not matter where workers are

	IsLive          func(thread string) bool // whether a run of the thread is live here
	InvalidateTopic func(thread string)      // has followers read the thread anew
	WakeScheduler   func()
	Uptime          func() time.Duration // by a monotonic clock
	Logger          *zap.Logger
}

// Processor does the due work of threads: it goes on with runs, begins queued runs,
// expires interrupts, removes expired threads, prunes histories, or leaves a thread to
// others.
type Processor struct {
	opts Options
	log  *zap.Logger
}

// New makes a processor.
func New(opts Options) *Processor { return &Processor{opts: opts, log: opts.Logger} }

// ProcessDue does the due work of one thread. A missing or held thread is no error.
// Errors: those of the store, and those of the run that it takes up.
func (p *Processor) ProcessDue(ctx context.Context, thread string) error {
	defer p.opts.InvalidateTopic(thread)
	here := p.opts.IsLive(thread)
	head, err := p.opts.Store.Head(ctx, thread)
	if err != nil {
		if errors.Is(err, checkpoint.ErrThreadNotFound) {
			return nil
		}
		return err
	}
	switch {
	case webhooks.IsWebhook(thread):
		return p.opts.Webhooks.ProcessDue(ctx, head)
	case crons.IsCron(thread):
		return p.opts.Crons.ProcessDue(ctx, head)
	}
	late := !head.Due.IsZero() && !head.Due.After(head.Now)
	switch {
	case here && late && head.Open > 0:
		return p.endWaits(ctx, head)
	case here, head.Leased() && head.Owner != p.opts.Server, head.RetryAt.After(head.Now):
		return nil
	case head.State == checkpoint.ThreadBusy && head.Cancel != nil && head.Cancel.Run == head.Run && !head.Cancel.IsDrain():
		return p.opts.Canceller.FinishCancel(ctx, head)
	case (head.State == checkpoint.ThreadBusy || query.CanResume(&head)) && p.isLeftToOther(&head):
		return nil
	case head.State == checkpoint.ThreadBusy && p.opts.Peers != nil && p.opts.Peers.IsStillUnserved(&head):
		return p.postponeUnserved(ctx, head)
	case head.State == checkpoint.ThreadBusy:
		return p.takeWithCapacity(ctx, head, p.takeOverRun)
	case isExpired(&head):
		return p.opts.Changer.RemoveThread(ctx, head)
	case hasRunToQueue(&head):
		return p.queueLaterRuns(ctx, head)
	case query.CanResume(&head):
		return p.takeWithCapacity(ctx, head, p.takeOverRun)
	case p.opts.Pruner.IsPruneDue(&head):
		return p.opts.Pruner.PruneRested(ctx, head)
	case head.State == checkpoint.ThreadInterrupted && head.Open > 0:
		return p.endWaits(ctx, head)
	case head.State != checkpoint.ThreadInterrupted && len(head.Queue) > 0:
		return p.takeWithCapacity(ctx, head, p.beginQueuedRun)
	case head.State == checkpoint.ThreadFailed && head.Open > 0: // the run may be continued
		return p.endWaits(ctx, head)
	default:
		return p.setNextDue(ctx, head)
	}
}

// takeWithCapacity takes a thread if there is capacity for its run, else the thread
// is queued.
func (p *Processor) takeWithCapacity(ctx context.Context, head checkpoint.Head, take func(context.Context, checkpoint.Head) error) error {
	err := p.opts.Capacity.CheckSlot(head.Thread)
	if err == nil {
		err = take(ctx, head)
	}
	switch {
	case errors.Is(err, capacity.ErrNoCapacity):
		p.opts.Capacity.EnqueueThread(head.Thread, commit.NextRun(&head), err)
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
func (p *Processor) setNextDue(ctx context.Context, head checkpoint.Head) error {
	_, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Due = commit.RestDueTime(&t.Head)
		return nil
	})
	return err
}

// postponeUnserved leaves such a thread to a server that has workers for it, or alone for a
// longer while. Interrupts that expire meanwhile are attended to.
func (p *Processor) postponeUnserved(ctx context.Context, head checkpoint.Head) error {
	u, _ := p.opts.Unserved.FindRun(head.Thread)
	needs := make([][]checkpoint.Capability, len(u.Needs))
	for i := range needs {
		needs[i] = u.Needs[i : i+1]
	}
	if to := p.opts.Peers.ChooseServer(head.Thread, needs); to != "" {
		return p.handOffDueThread(ctx, head, to)
	}
	next, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(u.NextPauseTime())
		t.ScheduleBy(u.Deadline)
		if head.Open == 0 {
			return nil
		}
		waiting, err := p.opts.Reader.ListWaitingInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		return p.putDue(ctx, t, waiting)
	})
	if err == nil {
		p.opts.Unserved.NoteCheck(head.Thread, next.Revision, p.opts.Uptime())
	}
	return err
}

// isLeftToOther reports whether another server is expected to take a thread.
func (p *Processor) isLeftToOther(head *checkpoint.Head) bool {
	prefersOther := head.PreferredOwner != "" && head.PreferredOwner != p.opts.Server && head.PreferredUntil.After(head.Now)
	return prefersOther && p.opts.Peers != nil && p.opts.Peers.IsMember(head.PreferredOwner)
}

// handOffDueThread hands a due thread off to the server with its workers.
func (p *Processor) handOffDueThread(ctx context.Context, head checkpoint.Head, to string) error {
	_, err := p.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.RemoteTasks = head.Updated, superstep.RemoteTasksOf(&head)
		p.opts.Owner.PutHandOff(t, to)
		return nil
	})
	return err
}

// FreeSpace removes an expired thread, or prunes a thread that rests. Errors: those of
// the store, and those of RemoveThread and PruneRested.
func (p *Processor) FreeSpace(ctx context.Context, thread string) error {
	head, err := p.opts.Store.Head(ctx, thread)
	switch {
	case err != nil:
		return err
	case head.Leased() && head.Owner != p.opts.Server, head.RetryAt.After(head.Now), head.State == checkpoint.ThreadBusy:
		return nil
	case isExpired(&head):
		return p.opts.Changer.RemoveThread(ctx, head)
	case !query.CanResume(&head) && p.opts.Pruner.IsPruneDue(&head):
		return p.opts.Pruner.PruneRested(ctx, head)
	}
	return nil
}

// StoreQuarantine records the quarantine in the head of a thread. A lease without a
// session is returned. Errors: those of Changer.ChangeFrom but checkpoint.ErrConflict.
func (p *Processor) StoreQuarantine(ctx context.Context, head *checkpoint.Head, failures int, pause time.Duration) error {
	if head.Leased() && head.Owner != p.opts.Server {
		return nil
	}
	_, err := p.opts.Changer.ChangeFrom(ctx, *head, func(t *commit.Tx) error {
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
