package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Why a live run is stopped from outside.
var (
	errLeaseLost = &handOverError{why: "the lease of the thread is lost"}
	errCancelled = errors.New("the run is cancelled")
	errTimedOut  = errors.New("the run has run out of time")
	errDrain     = &handOverError{why: "the server is draining"}
)

// handOverError is why a run ends here and goes on at another server.
type handOverError struct {
	why   string
	moved bool
}

func (e *handOverError) Error() string { return e.why }

// Is makes it ErrElsewhere, and ErrMoved if it is.
func (e *handOverError) Is(target error) bool {
	return target == ErrElsewhere || e.moved && target == ErrMoved
}

// session is the hold of this process on a thread while one of its runs is
// live: the lease, the newest head, and the right to commit.
type session struct {
	engine *Engine
	thread string
	topic  *topic
	log    *zap.Logger
	gone   chan struct{} // closed when the thread is let go of

	// work is what the run's nodes run under; calls is for what the run asks
	// of the store, which outlives cancelled work but not the lease.
	work  context.Context //nolint:containedctx // lives as long as the session
	stop  context.CancelCauseFunc
	calls context.Context //nolint:containedctx // lives as long as the session
	cut   context.CancelFunc

	placed bool // it has one of the places for live runs; guarded by Engine.mu

	load     load          // room for the state until the run is live
	carried  atomic.Int64  // bytes; see liveBytes
	since    time.Duration // Engine.uptime when it was let in
	promised bool          // it was let in for what its superstep will write
	leaves   int64         // what it holds, when it ends here so that others have room; guarded by Engine.mu
	returns  bool          // it waits in line then
	past     tidied        // what its loop knows of the past
	gives    bool          // it gives its place up, for want of workers; guarded by Engine.mu
	waits    *unserved     // what is known of it then

	// told says that the log has the results of finished tasks already: the
	// run was running when it was taken up.
	told bool

	fence    uint64       // of the lease
	renewed  atomic.Int64 // Engine.uptime when the lease was last prolonged
	stopping atomic.Bool  // a cancel is to be obeyed at the next superstep
	glancing atomic.Bool  // somebody waits for the turn to read the head
	renew    atomic.Pointer[time.Timer]

	// turn holds a token while somebody changes the thread through the
	// session; it guards what follows.
	errands  errands
	recovery recovery

	turn  chan struct{}
	head  checkpoint.Head
	draft *tx // the last change, to be reused; nil while a store may still look at it
	lost  bool
	grace *time.Timer // cuts the nodes off after a cancel
}

func (e *Engine) newSession(thread string, t *topic) *session {
	s := &session{
		engine: e, thread: thread, topic: t, log: e.log.WithLazy(zap.String("thread", thread)),
		gone: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	s.work, s.stop = context.WithCancelCause(e.base)
	s.calls, s.cut = context.WithCancel(e.commits)
	return s
}

// bystander is a session without a hold on the thread: it commits nothing.
func (e *Engine) bystander(thread string) *session {
	return &session{
		engine: e, thread: thread, topic: &topic{hub: e.hub, thread: thread}, log: e.log,
		work: e.base, calls: e.commits, turn: make(chan struct{}, 1), lost: true,
	}
}

// take waits for the right to change the thread, until ctx ends.
func (s *session) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) yield() { <-s.turn }

// commit makes one change of the live run. It is repeated until the store
// answers or the lease is over: what nodes have done is worth waiting for.
// When it fails all the same the run is given up, because nobody may go on
// from a state that is not known; the run is taken up again from the store.
func (s *session) commit(b build) error {
	if s.take(s.calls) != nil {
		return errLeaseLost
	}
	defer s.yield()
	return s.change(s.calls, b, s.holds, s.lose)
}

// amend makes a change for a caller beside the live run, within ctx. A failure
// is the caller's alone.
func (s *session) amend(ctx context.Context, b build) (checkpoint.Head, error) {
	if err := s.take(ctx); err != nil {
		return checkpoint.Head{}, err
	}
	defer s.yield()
	ctx, cancel := s.engine.patience(ctx)
	defer cancel()
	err := s.change(ctx, b, s.engine.persist, func() {})
	return s.head, err
}

// blank is an empty change from the newest head. The caller holds the turn.
func (s *session) blank() *tx {
	t := s.draft
	if t == nil {
		t = new(tx)
	}
	s.draft = nil
	return t.begin(s.head, s.engine.now())
}

// change makes one change under the lease. When somebody else changed the
// thread in between (an answer came, a cancel was asked for) it is computed
// again from the newer head; when the lease is gone the error is errLeaseLost
// and nothing has changed. failed is called when the store did not do its part.
func (s *session) change(ctx context.Context, b build, more func(attempt int) bool, failed func()) error {
	for {
		if s.lost {
			return errLeaseLost
		}
		t := s.blank()
		t.Lease = s.engine.opts.Lease
		began := s.engine.uptime()
		if err := b(t); err != nil {
			if errors.Is(err, errNoChange) {
				return nil
			}
			return err
		}
		s.linger(t)
		if t.Head.Wish == "" {
			s.further(t)
		}
		head, err := s.engine.apply(ctx, t, more)
		if err == nil {
			s.draft = t
			s.head = head
			s.renewed.Store(int64(began))
			s.lost = head.Owner != s.engine.id // given back by the change itself
			s.topic.stop(t)
			s.topic.publish(t.live)
			*t = tx{} // a run that waits for its nodes keeps nothing of it
			s.obey()
			return nil
		}
		if errors.Is(err, checkpoint.ErrConflict) {
			err = s.reload(ctx)
		}
		switch {
		case err == nil, errors.Is(err, errLeaseLost):
		case errors.Is(err, checkpoint.ErrInvalid), tooLarge(err) != nil: // ours to answer for, not the store's
			return err
		default:
			failed()
			return err
		}
	}
}

// recently is how long a thread at work stands where it is among the others:
// the list of threads is not worth a change with every superstep.
const recently = time.Second

// linger keeps the time of the last change where it is, if nobody would miss it.
func (s *session) linger(t *tx) {
	same := t.Head.Run == s.head.Run && t.Head.State == s.head.State && t.Head.Open == s.head.Open
	if same && t.Head.State == checkpoint.ThreadBusy && t.now.Sub(s.head.Updated) < recently {
		t.Head.Updated = s.head.Updated
	}
}

// reload fetches the head after a conflict and checks that the lease is still
// ours. The caller has the turn.
func (s *session) reload(ctx context.Context) error {
	head, err := s.engine.store.Head(ctx, s.thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		s.lose()
		return errLeaseLost
	}
	if err != nil {
		return storeError(err)
	}
	if head.Owner != s.engine.id || head.Fence != s.head.Fence || head.LogID != s.head.LogID || s.wentBack(&head) {
		s.lose()
		return errLeaseLost
	}
	if head.LastEvent > s.head.LastEvent { // others have told something
		s.engine.hub.doubt(s.thread)
	}
	s.head = head
	s.obey()
	return nil
}

// obey acts on the cancel request in the head, if it is for the live run: the
// run ends after this superstep, and its nodes are cut off after the grace.
// The caller has the turn.
func (s *session) obey() {
	c := s.head.Cancel
	if c == nil || c.Run != s.head.Run || s.lost {
		return
	}
	s.stopping.Store(true)
	switch {
	case c.Grace <= 0:
		s.stop(errCancelled)
	case s.grace == nil:
		s.grace = time.AfterFunc(c.Grace, contain.Func(func() { s.stop(errCancelled) }, contain.Log(s.log, "a timer panicked")))
	}
}

// fault gives the run up because a subgraph could not be driven on.
func (s *session) fault() { s.stop(errLeaseLost) }

// lose gives the run up. The caller has the turn.
func (s *session) lose() {
	s.lost = true
	s.stop(errLeaseLost)
}

// holds reports whether the lease may still be ours: it has not run out since
// the last commit that we know of.
func (s *session) holds(int) bool {
	return s.engine.uptime()-time.Duration(s.renewed.Load()) < s.engine.opts.Lease
}

// keep renews the lease while the run is quiet; each commit renews it too.
func (s *session) keep() {
	s.renew.Store(time.AfterFunc(s.engine.opts.Lease/3, contain.Func(s.tick, contain.Log(s.log, "renewing a lease panicked"))))
}

// tick prolongs the lease where no commit has done so lately. It gives the run
// up, and cuts off a commit that hangs, once the lease may have passed to
// somebody else.
func (s *session) tick() {
	if !s.holds(0) {
		s.stop(errLeaseLost)
		s.cut()
		return
	}
	if !s.rewind() {
		return
	}
	select {
	case s.turn <- struct{}{}:
	default: // a commit is under way; it renews the lease, or fails
		return
	}
	defer s.yield()
	err := s.change(s.calls, s.renewal, once, func() {})
	if err != nil && !errors.Is(err, errLeaseLost) {
		s.log.Warn("lease not renewed", zap.Error(err), cause(err))
	}
}

// rewind sets the timer of the renewal again, unless the session is over.
func (s *session) rewind() bool {
	timer := s.renew.Load()
	if timer == nil {
		return false
	}
	timer.Reset(s.engine.opts.Lease / 3)
	select {
	case <-s.gone:
		timer.Stop()
		return false
	default:
		return true
	}
}

func once(int) bool { return false }

// renewal is a change that only prolongs the lease, where no commit has done
// so lately.
func (s *session) renewal(t *tx) error {
	if s.engine.uptime()-time.Duration(s.renewed.Load()) < s.engine.opts.Lease/3 {
		return errNoChange
	}
	t.Head.Updated = s.head.Updated
	return nil
}

// settled waits until the first change of the session is decided and, when the
// session is over, until it has let go.
func (s *session) settled(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	lost := s.lost
	s.yield()
	if !lost {
		return nil
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close lets go of the thread. Nothing of the run is running any more.
func (s *session) close() {
	s.cut() // whoever has the turn and hangs gives it back
	s.turn <- struct{}{}
	s.lost = true
	if s.grace != nil {
		s.grace.Stop()
	}
	s.yield()
	s.settleDown()
	s.stop(nil)
	s.engine.drop(s)
	s.topic.rest()
	s.engine.hub.leave(s.topic)
	if s.engine.tuner != nil {
		s.engine.tuner.Hush(s.thread)
	}
	close(s.gone)
	if timer := s.renew.Load(); timer != nil {
		timer.Stop()
	}
}
