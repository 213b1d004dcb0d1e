package ownership

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// leaseCommitter makes the changes of a held thread under its lease, one at a time.
type leaseCommitter struct {
	thread   *heldThread
	lease    *lease
	stop     *runStop
	progress progressNoter

	isRefreshing atomic.Bool // a goroutine waits to read the head

	// commitLock holds a token while a caller changes the thread through the session; it
	// guards the fields below, and whether the lease is lost.
	commitLock  chan struct{}
	head        checkpoint.Head
	changeBegan time.Duration // uptime when the change under way was begun
	spareTx     *commit.Tx    // the last change, to be reused; nil while a store may still look at it
}

// progressNoter notes in a change how far the run has come with it.
type progressNoter interface{ noteProgress(t *commit.Tx) }

// lockCommits waits for the right to change the thread, until ctx ends.
func (c *leaseCommitter) lockCommits(ctx context.Context) error {
	select {
	case c.commitLock <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.commitLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *leaseCommitter) unlockCommits() { <-c.commitLock }

// BeginChange begins a change of the live run. The error is superstep.ErrLeaseLost.
func (c *leaseCommitter) BeginChange() (*commit.Tx, error) {
	if c.lockCommits(c.stop.storeCtx) != nil {
		return nil, superstep.ErrLeaseLost
	}
	t, err := c.startChange()
	if err != nil {
		c.unlockCommits()
	}
	return t, err
}

// ApplyChange makes a change of the live run. It is repeated until the store answers or
// the lease is over: the results of nodes are worth waiting for. When it fails all the
// same the run is given up, because no server may go on from an unknown state; the run
// is taken up again from the store. Errors: superstep.ErrLeaseLost, and those of
// Committer.ApplyChange.
func (c *leaseCommitter) ApplyChange(t *commit.Tx) (again *commit.Tx, err error) {
	done, err := c.applyUnderLease(c.stop.storeCtx, t, c.lease.mayHoldLease, c.lease.loseLease)
	if done || err != nil {
		return nil, err
	}
	return c.startChange()
}

// EndChange ends the change that BeginChange began.
func (c *leaseCommitter) EndChange() { c.unlockCommits() }

// commitForCaller makes a change for a caller beside the live run, within ctx. A failure
// is the caller's alone.
func (c *leaseCommitter) commitForCaller(ctx context.Context, b commit.Build) (checkpoint.Head, error) {
	if err := c.lockCommits(ctx); err != nil {
		return checkpoint.Head{}, err
	}
	defer c.unlockCommits()
	committer := c.thread.opts.Committer
	ctx, cancel := committer.WithStoreTimeout(ctx)
	defer cancel()
	err := c.commitUnderLease(ctx, b, committer.MayRetry, func() {})
	return c.head, err
}

// nextTx returns an empty change from the newest head. The caller holds commitLock.
func (c *leaseCommitter) nextTx() *commit.Tx {
	t := c.spareTx
	if t == nil {
		t = new(commit.Tx)
	}
	c.spareTx = nil
	return t.StartFrom(&c.head, c.thread.opts.Now())
}

// commitUnderLease makes one change under the lease. When another writer changed
// the thread in between (an answer came, a cancel was asked for) it is computed
// again from the newer head; when the lease is gone the error is ErrLeaseLost and
// nothing has changed. failed is called when the store did not do its part.
func (c *leaseCommitter) commitUnderLease(ctx context.Context, b commit.Build, more func(attempt int) bool, failed func()) error {
	for {
		t, err := c.startChange()
		if err != nil {
			return err
		}
		if err := b(t); errors.Is(err, commit.ErrNoChange) {
			return nil
		} else if err != nil {
			return err
		}
		if done, err := c.applyUnderLease(ctx, t, more, failed); done || err != nil {
			return err
		}
	}
}

// startChange returns an empty change under the lease. The caller holds commitLock.
func (c *leaseCommitter) startChange() (*commit.Tx, error) {
	if c.lease.isLost {
		return nil, superstep.ErrLeaseLost
	}
	t := c.nextTx()
	t.Lease = c.thread.opts.LeaseTTL
	c.changeBegan = c.thread.opts.Uptime()
	return t, nil
}

// applyUnderLease makes a change once. It is not done, without an error, when another
// writer was faster and the lease is held still. The caller holds commitLock.
func (c *leaseCommitter) applyUnderLease(ctx context.Context, t *commit.Tx, more func(attempt int) bool, failed func()) (done bool, err error) {
	c.keepUpdatedTime(t)
	if t.Head.PreferredOwner == "" {
		c.progress.noteProgress(t)
	}
	head, err := c.thread.opts.Committer.ApplyChange(ctx, t, more)
	if err == nil {
		c.noteApplied(t, &head)
		return true, nil
	}
	if errors.Is(err, checkpoint.ErrConflict) {
		err = c.reloadHead(ctx)
	}
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, superstep.ErrLeaseLost):
		return false, err
	case errors.Is(err, checkpoint.ErrInvalid), tooLargeFailure(err) != nil: // ours to answer for, not the store's
		return false, err
	default:
		failed()
		return false, err
	}
}

// noteApplied takes in the head that a change has left, and publishes the change.
func (c *leaseCommitter) noteApplied(t *commit.Tx, head *checkpoint.Head) {
	c.spareTx = t
	c.head = *head
	c.lease.noteRenewal(c.changeBegan)
	c.lease.isLost = head.Owner != c.thread.opts.ID // given back by the change itself
	c.thread.publishChange(t)
	*t = commit.Tx{} // a run that waits for its nodes keeps nothing of it
	c.applyCancel()
}

// updatedResolution is how long a thread at work stands where it is among the others:
// the list of threads is not worth a change with every superstep.
const updatedResolution = time.Second

// keepUpdatedTime keeps the update time of the head unless something visible in
// lists changes.
func (c *leaseCommitter) keepUpdatedTime(t *commit.Tx) {
	same := t.Head.Run == c.head.Run && t.Head.State == c.head.State && t.Head.Open == c.head.Open
	if same && t.Head.State == checkpoint.ThreadBusy && t.Now.Sub(c.head.Updated) < updatedResolution {
		t.Head.Updated = c.head.Updated
	}
}

// reloadHead fetches the head after a conflict and checks that the lease is still
// ours. The caller holds commitLock.
func (c *leaseCommitter) reloadHead(ctx context.Context) error {
	head, err := c.thread.opts.Store.Head(ctx, c.thread.id)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		c.lease.loseLease()
		return superstep.ErrLeaseLost
	}
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	if head.Owner != c.thread.opts.ID || head.Fence != c.head.Fence || head.LogID != c.head.LogID || c.hasStoreLostChanges(&head) {
		c.lease.loseLease()
		return superstep.ErrLeaseLost
	}
	if head.LastEvent > c.head.LastEvent { // another server has stored events
		c.thread.opts.Feed.InvalidateTopic(c.thread.id)
	}
	c.head = head
	c.applyCancel()
	return nil
}

// hasStoreLostChanges reports whether the stored head is older than the head that the
// session made with the same lease: its newest changes are lost. The live run's values
// in memory do not continue such a thread.
func (c *leaseCommitter) hasStoreLostChanges(now *checkpoint.Head) bool {
	if now.Revision >= c.head.Revision && now.Checkpoint == c.head.Checkpoint && now.LastEvent >= c.head.LastEvent {
		return false
	}
	c.thread.log.Warn("the store has lost changes of a thread that runs here; the run goes on from what is left",
		zap.Uint64("revision", c.head.Revision), zap.Uint64("stored", now.Revision))
	return true
}

// refreshHead reads the newest head of a thread in the background. It does not
// wait.
func (c *leaseCommitter) refreshHead() {
	if !c.isRefreshing.CompareAndSwap(false, true) {
		return // the goroutine that waits for commitLock
	}
	ctx := c.stop.storeCtx
	go contain.Func(func() {
		if c.lockCommits(ctx) != nil {
			return
		}
		defer c.unlockCommits()
		c.isRefreshing.Store(false)
		if c.lease.isLost {
			return
		}
		if err := c.reloadHead(ctx); err != nil {
			c.thread.log.Debug("the newest head was not read", zap.Error(err), runtime.CauseField(err))
		}
	}, contain.LogPanic(c.thread.opts.Logger, "reading the newest head panicked"))()
}

// applyCancel acts on a cancel request in the head for the live run. The caller holds
// commitLock.
func (c *leaseCommitter) applyCancel() {
	request := c.head.Cancel
	if request == nil || request.Run != c.head.Run || c.lease.isLost {
		return
	}
	c.stop.stopForCancel(request)
}

func neverRetry(int) bool { return false }

// commitRenewal makes a change that renews the lease, unless a change is under way: that
// renews the lease, or fails.
func (c *leaseCommitter) commitRenewal() error {
	select {
	case c.commitLock <- struct{}{}:
	default:
		return nil
	}
	defer c.unlockCommits()
	return c.commitUnderLease(c.stop.renewalCtx, c.putRenewal, neverRetry, func() {})
}

// putRenewal makes a change renew the lease and nothing else, unless a commit has done
// so lately.
func (c *leaseCommitter) putRenewal(t *commit.Tx) error {
	if c.lease.age() < c.lease.renewInterval() {
		return commit.ErrNoChange
	}
	t.Head.Updated = c.head.Updated
	return nil
}

// currentHead returns the newest head that is known.
func (c *leaseCommitter) currentHead() checkpoint.Head {
	c.commitLock <- struct{}{}
	defer c.unlockCommits()
	return c.head
}

// waitFirstCommit waits until the first change of the session is decided and, when the
// session is over, until it has let go.
func (c *leaseCommitter) waitFirstCommit(ctx context.Context) error {
	if err := c.lockCommits(ctx); err != nil {
		return err
	}
	lost := c.lease.isLost
	c.unlockCommits()
	if !lost {
		return nil
	}
	select {
	case <-c.thread.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tooLargeFailure returns the failure of a run whose change is too large for the store,
// nil for other errors.
func tooLargeFailure(err error) *checkpoint.Failure {
	size, ok := errors.AsType[*checkpoint.SizeError](err)
	if !ok {
		return nil
	}
	return &checkpoint.Failure{
		Reason: runtime.FailedLimit, Message: size.Error(), Details: runtime.LimitDetails(size.Limit, int64(size.Max), int64(size.Actual)),
	}
}
