package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// session is the hold of this process on a thread while one of its runs is
// live: the lease, the newest head, and the right to commit.
type session struct {
	engine    *Engine
	thread    string
	topic     *feed.Topic
	followers topicFollowers // of topic
	log       *zap.Logger
	released  chan struct{} // closed when the thread is released

	// workCtx is what the run's nodes run under; calls is for what the run asks
	// of the store, which outlives cancelled work but not the lease.
	workCtx          context.Context //nolint:containedctx // lives as long as the session
	stopWork         context.CancelCauseFunc
	storeCtx         context.Context //nolint:containedctx // lives as long as the session
	cancelStoreCalls context.CancelFunc

	capacity    capacity.Holder         // what the run holds of the server
	reservation runtime.ReadReservation // memory for the state until the run is live
	pruneMark   capacity.PruneMark      // what is known of the last prune
	unserved    *placement.UnservedRun  // what is known of a run that gives its slot up, for want of workers

	loopThread superstep.Thread // what the loops of the run see of the session

	renewedAt    atomic.Int64 // Engine.uptime when the lease was last prolonged
	isStopping   atomic.Bool  // a cancel takes effect at the next superstep
	isRefreshing atomic.Bool  // a goroutine waits to read the head
	renewTimer   atomic.Pointer[time.Timer]

	// commitLock holds a token while a caller changes the thread through the
	// session; it guards what follows.
	remoteWork remoteWork

	commitLock  chan struct{}
	head        checkpoint.Head
	changeBegan time.Duration // Engine.uptime when the change under way was begun
	spareTx     *commit.Tx    // the last change, to be reused; nil while a store may still look at it
	isLost      bool
	graceTimer  *time.Timer // cuts the nodes off after a cancel
}

func (e *Engine) newSession(thread string, t *feed.Topic) *session {
	s := &session{
		engine: e, thread: thread, topic: t, log: e.log.WithLazy(zap.String("thread", thread)),
		released: make(chan struct{}), commitLock: make(chan struct{}, 1),
	}
	s.capacity.Init(e.capacity, thread, s)
	s.workCtx, s.stopWork = context.WithCancelCause(e.baseCtx)
	s.storeCtx, s.cancelStoreCalls = context.WithCancel(e.commitCtx)
	s.followers = topicFollowers{feed: e.feed, topic: t}
	s.loopThread = superstep.Thread{
		ID: thread, Log: s.log, StoreCtx: s.storeCtx, WorkDone: s.workCtx.Done(), Reservation: &s.reservation,
		Committer: s, Followers: &s.followers, Stop: s, RunEnd: s, History: s, Memory: &s.capacity, Tasks: s, Placement: s, Reasons: &s.remoteWork,
	}
	return s
}

// newDetachedThread makes a thread that is edited and not driven: nothing is committed
// for it.
func (e *Engine) newDetachedThread(thread string) *superstep.Thread {
	followers := &topicFollowers{feed: e.feed, topic: e.feed.NewDetachedTopic(thread)}
	return superstep.NewDetachedThread(e.commitCtx, thread, e.log, e.baseCtx.Done(), followers)
}

// topicFollowers are those who follow a topic.
type topicFollowers struct {
	feed  *feed.Feed
	topic *feed.Topic
}

// PublishEphemeral sends an event that is not stored.
func (f *topicFollowers) PublishEphemeral(e checkpoint.Event) { f.feed.PublishEphemeral(f.topic, e) }

// WantsValues reports whether a follower wants states.
func (f *topicFollowers) WantsValues() bool { return f.topic.WantsValues() }

// WantsInputs reports whether a follower wants what scheduled tasks see.
func (f *topicFollowers) WantsInputs() bool { return f.topic.WantsInputs() }

// lockCommits waits for the right to change the thread, until ctx ends.
func (s *session) lockCommits(ctx context.Context) error {
	select {
	case s.commitLock <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.commitLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) unlockCommits() { <-s.commitLock }

// BeginChange begins a change of the live run.
func (s *session) BeginChange() (*commit.Tx, error) {
	if s.lockCommits(s.storeCtx) != nil {
		return nil, superstep.ErrLeaseLost
	}
	t, err := s.startChange()
	if err != nil {
		s.unlockCommits()
	}
	return t, err
}

// ApplyChange makes a change of the live run. It is repeated until the store answers or
// the lease is over: what nodes have done is worth waiting for. When it fails all the
// same the run is given up, because no server may go on from a state that is not known;
// the run is taken up again from the store.
func (s *session) ApplyChange(t *commit.Tx) (again *commit.Tx, err error) {
	done, err := s.applyUnderLease(s.storeCtx, t, s.mayHoldLease, s.loseLease)
	if done || err != nil {
		return nil, err
	}
	return s.startChange()
}

// EndChange ends what BeginChange began.
func (s *session) EndChange() { s.unlockCommits() }

// commitForCaller makes a change for a caller beside the live run, within ctx. A failure
// is the caller's alone.
func (s *session) commitForCaller(ctx context.Context, b commit.Build) (checkpoint.Head, error) {
	if err := s.lockCommits(ctx); err != nil {
		return checkpoint.Head{}, err
	}
	defer s.unlockCommits()
	ctx, cancel := s.engine.committer.WithStoreTimeout(ctx)
	defer cancel()
	err := s.commitUnderLease(ctx, b, s.engine.committer.MayRetry, func() {})
	return s.head, err
}

// nextTx is an empty change from the newest head. The caller holds commitLock.
func (s *session) nextTx() *commit.Tx {
	t := s.spareTx
	if t == nil {
		t = new(commit.Tx)
	}
	s.spareTx = nil
	return t.StartFrom(&s.head, s.engine.now())
}

// commitUnderLease makes one change under the lease. When another writer changed
// the thread in between (an answer came, a cancel was asked for) it is computed
// again from the newer head; when the lease is gone the error is ErrLeaseLost and
// nothing has changed. failed is called when the store did not do its part.
func (s *session) commitUnderLease(ctx context.Context, b commit.Build, more func(attempt int) bool, failed func()) error {
	for {
		t, err := s.startChange()
		if err != nil {
			return err
		}
		if err := b(t); errors.Is(err, commit.ErrNoChange) {
			return nil
		} else if err != nil {
			return err
		}
		if done, err := s.applyUnderLease(ctx, t, more, failed); done || err != nil {
			return err
		}
	}
}

// startChange is an empty change under the lease. The caller holds commitLock.
func (s *session) startChange() (*commit.Tx, error) {
	if s.isLost {
		return nil, superstep.ErrLeaseLost
	}
	t := s.nextTx()
	t.Lease = s.engine.opts.LeaseTTL
	s.changeBegan = s.engine.uptime()
	return t, nil
}

// applyUnderLease makes a change once. It is not done, without an error, when another
// writer was faster and the lease is held still. The caller holds commitLock.
func (s *session) applyUnderLease(ctx context.Context, t *commit.Tx, more func(attempt int) bool, failed func()) (done bool, err error) {
	s.keepUpdatedTime(t)
	if t.Head.PreferredOwner == "" {
		s.noteProgress(t)
	}
	head, err := s.engine.committer.ApplyChange(ctx, t, more)
	if err == nil {
		s.spareTx = t
		s.head = head
		s.renewedAt.Store(int64(s.changeBegan))
		s.isLost = head.Owner != s.engine.id // given back by the change itself
		s.topic.SetStoppedRun(&t.Change)
		s.topic.PublishEvents(t.LiveEvents)
		*t = commit.Tx{} // a run that waits for its nodes keeps nothing of it
		s.applyCancel()
		return true, nil
	}
	if errors.Is(err, checkpoint.ErrConflict) {
		err = s.reloadHead(ctx)
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

// updatedResolution is how long a thread at work stands where it is among the others:
// the list of threads is not worth a change with every superstep.
const updatedResolution = time.Second

// keepUpdatedTime keeps the update time of the head unless something visible in
// lists changes.
func (s *session) keepUpdatedTime(t *commit.Tx) {
	same := t.Head.Run == s.head.Run && t.Head.State == s.head.State && t.Head.Open == s.head.Open
	if same && t.Head.State == checkpoint.ThreadBusy && t.Now.Sub(s.head.Updated) < updatedResolution {
		t.Head.Updated = s.head.Updated
	}
}

// reloadHead fetches the head after a conflict and checks that the lease is still
// ours. The caller holds commitLock.
func (s *session) reloadHead(ctx context.Context) error {
	head, err := s.engine.store.Head(ctx, s.thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		s.loseLease()
		return superstep.ErrLeaseLost
	}
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	if head.Owner != s.engine.id || head.Fence != s.head.Fence || head.LogID != s.head.LogID || s.hasStoreLostChanges(&head) {
		s.loseLease()
		return superstep.ErrLeaseLost
	}
	if head.LastEvent > s.head.LastEvent { // others have told something
		s.engine.feed.InvalidateTopic(s.thread)
	}
	s.head = head
	s.applyCancel()
	return nil
}

// applyCancel acts on a cancel request in the head for the live run: the run ends
// after this superstep, and its nodes are cancelled after the grace. The caller
// holds commitLock.
func (s *session) applyCancel() {
	c := s.head.Cancel
	if c == nil || c.Run != s.head.Run || s.isLost {
		return
	}
	s.isStopping.Store(true)
	switch {
	case c.Grace <= 0:
		s.stopWork(superstep.ErrRunCancelled)
	case s.graceTimer == nil:
		s.graceTimer = time.AfterFunc(c.Grace, contain.Func(func() { s.stopWork(superstep.ErrRunCancelled) }, contain.LogPanic(s.log, "a timer panicked")))
	}
}

// IsStopping reports whether the run ends with this superstep because it is cancelled.
func (s *session) IsStopping() bool { return s.isStopping.Load() }

// AbandonRun abandons the run because a subgraph could not be driven on.
func (s *session) AbandonRun() { s.stopWork(superstep.ErrLeaseLost) }

// loseLease abandons the run. The caller holds commitLock.
func (s *session) loseLease() {
	s.isLost = true
	s.stopWork(superstep.ErrLeaseLost)
}

// mayHoldLease reports whether the lease may still be ours: it has not run out since
// the last commit that we know of.
func (s *session) mayHoldLease(int) bool {
	return s.engine.uptime()-time.Duration(s.renewedAt.Load()) < s.engine.opts.LeaseTTL
}

// startRenewal renews the lease while the run is quiet; each commit renews it too.
func (s *session) startRenewal() {
	s.renewTimer.Store(time.AfterFunc(s.engine.opts.LeaseTTL/3, contain.Func(s.renewLease, contain.LogPanic(s.log, "renewing a lease panicked"))))
}

// renewLease prolongs the lease where no commit has done so lately. It gives the
// run up, and cuts off a commit that hangs, once the lease may have passed to
// another writer.
func (s *session) renewLease() {
	if !s.mayHoldLease(0) {
		s.stopWork(superstep.ErrLeaseLost)
		s.cancelStoreCalls()
		return
	}
	if !s.resetRenewTimer() {
		return
	}
	select {
	case s.commitLock <- struct{}{}:
	default: // a commit is under way; it renews the lease, or fails
		return
	}
	defer s.unlockCommits()
	err := s.commitUnderLease(s.storeCtx, s.putRenewal, neverRetry, func() {})
	if err != nil && !errors.Is(err, superstep.ErrLeaseLost) {
		s.log.Warn("lease not renewed", zap.Error(err), runtime.CauseField(err))
	}
}

// resetRenewTimer sets the renewal timer again unless the session is over; it
// reports whether it did.
func (s *session) resetRenewTimer() bool {
	timer := s.renewTimer.Load()
	if timer == nil {
		return false
	}
	timer.Reset(s.engine.opts.LeaseTTL / 3)
	select {
	case <-s.released:
		timer.Stop()
		return false
	default:
		return true
	}
}

func neverRetry(int) bool { return false }

// putRenewal is a change that only prolongs the lease, where no commit has done
// so lately.
func (s *session) putRenewal(t *commit.Tx) error {
	if s.engine.uptime()-time.Duration(s.renewedAt.Load()) < s.engine.opts.LeaseTTL/3 {
		return commit.ErrNoChange
	}
	t.Head.Updated = s.head.Updated
	return nil
}

// waitFirstCommit waits until the first change of the session is decided and, when the
// session is over, until it has let go.
func (s *session) waitFirstCommit(ctx context.Context) error {
	if err := s.lockCommits(ctx); err != nil {
		return err
	}
	lost := s.isLost
	s.unlockCommits()
	if !lost {
		return nil
	}
	select {
	case <-s.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closeSession releases the thread. Nothing of the run is running any more.
func (s *session) closeSession() {
	s.cancelStoreCalls() // a holder of commitLock that hangs gives it back
	s.commitLock <- struct{}{}
	s.isLost = true
	if s.graceTimer != nil {
		s.graceTimer.Stop()
	}
	s.unlockCommits()
	s.stopTracking()
	s.stopWork(nil)
	s.engine.dropSession(s)
	s.topic.RemoveDriver()
	s.engine.feed.ReleaseTopic(s.topic)
	s.engine.feed.StopPublishing(s.thread)
	close(s.released)
	if timer := s.renewTimer.Load(); timer != nil {
		timer.Stop()
	}
}

// hasStoreLostChanges reports whether the head that the store has is from before the one
// that the session made with the same lease: its newest changes are lost. What
// the live run holds in memory does not continue such a thread.
func (s *session) hasStoreLostChanges(now *checkpoint.Head) bool {
	if now.Revision >= s.head.Revision && now.Checkpoint == s.head.Checkpoint && now.LastEvent >= s.head.LastEvent {
		return false
	}
	s.log.Warn("the store has lost changes of a thread that runs here; the run goes on from what is left",
		zap.Uint64("revision", s.head.Revision), zap.Uint64("stored", now.Revision))
	return true
}
