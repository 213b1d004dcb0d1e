package ownership

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// lease is the right of this server to change a thread, for a time. Each change under
// it renews it.
type lease struct {
	thread  *heldThread
	stop    *runStop
	renewer leaseRenewer

	renewedAt  atomic.Int64 // uptime when it was last renewed
	renewTimer atomic.Pointer[time.Timer]
	isLost     bool // the commit lock guards it
}

// leaseRenewer makes a change that renews the lease and nothing else, unless a change is
// under way or was made lately.
type leaseRenewer interface{ commitRenewal() error }

// putLease adds the lease to a change. A due time that has come is kept while interrupts
// are open: an interrupt may have expired.
func putLease(t *commit.Tx, opts *Options) {
	t.Head.Owner, t.Head.PreferredOwner, t.Head.PreferredUntil, t.Head.RetryAt = opts.ID, "", time.Time{}, time.Time{}
	t.Head.Fence++
	t.Head.RemoteTasks = nil
	t.Lease = opts.LeaseTTL
	if t.Head.Open == 0 {
		t.Head.Due = time.Time{}
	}
}

// noteRenewal notes that the lease was renewed by a change that was begun at some uptime.
func (l *lease) noteRenewal(began time.Duration) { l.renewedAt.Store(int64(began)) }

// age returns the time since the lease was renewed.
func (l *lease) age() time.Duration {
	return l.thread.opts.Uptime() - time.Duration(l.renewedAt.Load())
}

// mayHoldLease reports whether the lease may still be ours: it has not run out since
// the last commit that we know of.
func (l *lease) mayHoldLease(int) bool { return l.age() < l.thread.opts.LeaseTTL }

// renewInterval returns how long a quiet run waits between renewals.
func (l *lease) renewInterval() time.Duration { return l.thread.opts.LeaseTTL / 3 }

// loseLease abandons the run. The caller holds the commit lock.
func (l *lease) loseLease() {
	l.isLost = true
	l.stop.stopWork(superstep.ErrLeaseLost)
}

// startRenewal renews the lease while the run is quiet; each commit renews it too.
func (l *lease) startRenewal() {
	l.renewTimer.Store(time.AfterFunc(l.renewInterval(), contain.Func(l.renewLease, contain.LogPanic(l.thread.log, "renewing a lease panicked"))))
}

// renewLease renews the lease where no commit has done so lately. It gives the
// run up, and cuts off a commit that hangs, once the lease may have passed to
// another writer.
func (l *lease) renewLease() {
	if !l.mayHoldLease(0) {
		l.stop.stopWork(superstep.ErrLeaseLost)
		l.stop.cancelStoreCalls()
		return
	}
	if !l.resetRenewTimer() {
		return
	}
	if err := l.renewer.commitRenewal(); err != nil && !errors.Is(err, superstep.ErrLeaseLost) {
		l.thread.log.Warn("lease not renewed", zap.Error(err), runtime.CauseField(err))
	}
}

// resetRenewTimer sets the renewal timer again unless the session is over; it
// reports whether it did.
func (l *lease) resetRenewTimer() bool {
	timer := l.renewTimer.Load()
	if timer == nil {
		return false
	}
	timer.Reset(l.renewInterval())
	select {
	case <-l.thread.released:
		timer.Stop()
		return false
	default:
		return true
	}
}

// stopRenewal stops the renewal. The thread is released.
func (l *lease) stopRenewal() {
	if timer := l.renewTimer.Load(); timer != nil {
		timer.Stop()
	}
}
