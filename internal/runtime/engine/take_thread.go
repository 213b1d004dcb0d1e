package engine

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A thread is taken in one way, whatever for: to begin a run, to go on with
// answers, to take over from another server, to begin a run that waited. One
// change claims the lease and begins the work.

// prepareFunc puts what a thread is taken for into a change. It returns the loop
// that goes on from there and, where the thread is left to another server, the
// name of that.
type prepareFunc func(s *session, t *commit.Tx) (l *superstep.Loop, to string, err error)

// Why a thread can't be taken here.
var (
	errDraining   = errors.New("the server drains, and takes up nothing")
	errThreadHeld = errors.New("a run of the thread is live here, or about to begin")
)

// takeThread claims a thread with one change and drives what the change began. When
// the preparation fails or panics, or the loop needs capacity and there is none,
// the thread is free again and nothing is stored. A panic becomes an *Error
// INTERNAL that wraps it. timeout is how long the call waits for memory for a large
// state; it holds no thread meanwhile.
func (e *Engine) takeThread(
	ctx context.Context, head *checkpoint.Head, timeout time.Duration, p prepareFunc,
) (next *checkpoint.Head, err error) {
	memory := e.readBudget.NewReservation()
	err = e.reader.RetryLargeRead(ctx, &memory, timeout, func() error {
		next, err = e.takeThreadReserved(ctx, head, &memory, p)
		return err
	})
	memory.ReleaseAll()
	return next, err
}

// takeThreadReserved does so for a state that is small, or for which there is room. What takes
// the thread takes the room as well.
func (e *Engine) takeThreadReserved(ctx context.Context, head *checkpoint.Head, memory *runtime.ReadReservation, p prepareFunc) (next *checkpoint.Head, err error) {
	s, err := e.holdThread(head.Thread)
	if err != nil {
		return nil, err
	}
	s.reservation, *memory = *memory, e.readBudget.NewReservation()
	c := threadClaim{session: s}
	if caught := contain.Call(func() { next, err = c.commitClaim(ctx, head, p) }); caught != nil {
		return nil, c.freePanicked(caught)
	}
	return next, err
}

// freePanicked frees a thread whose taking panicked.
func (c *threadClaim) freePanicked(p *contain.PanicError) error {
	c.session.log.Error("the engine panicked while it took a thread", p.Fields()...)
	c.releaseClaim(checkpoint.ErrUnavailable)
	return panicError(p)
}

// panicError is what a caller is told whose call panicked.
func panicError(p *contain.PanicError) *runtime.Error {
	return runtime.Errorf(runtime.ReasonInternal, "the engine failed; the operator's log says why").WithCause(p)
}

// threadClaim is one taking of a thread.
type threadClaim struct {
	session *session
	isSent  bool // the store may have the change
	isOver  bool // the session drives the thread, or has released it
}

// commitClaim puts the change together, makes it, and lets the session drive on.
func (c *threadClaim) commitClaim(ctx context.Context, head *checkpoint.Head, p prepareFunc) (*checkpoint.Head, error) {
	s := c.session
	t := commit.NewTx(head, s.engine.now())
	l, to, err := p(s, t)
	if err != nil {
		c.releaseClaim(nil)
		return nil, err
	}
	s.reservation.ReleaseUnused()
	if l.InlineEnd() == nil && to == "" {
		if err := s.reserveSlot(l); err != nil {
			c.releaseClaim(nil)
			return nil, err
		}
		s.reservation.ReleaseAll() // the run counts it
	}
	c.isSent = true
	next, err := s.engine.commitFirstChange(ctx, s, t)
	if err != nil {
		c.releaseClaim(err)
		return nil, err
	}
	c.isOver = true
	s.driveOrRelease(next, l, to)
	return next, nil
}

// reserveSlot takes a slot for the run that the session is about to drive, and counts
// what it holds.
func (s *session) reserveSlot(l *superstep.Loop) error {
	grant, err := s.capacity.Reserve(l.MeasureUncounted())
	if err != nil {
		return err
	}
	l.SetCounted(grant.HeldBytes)
	s.pruneMark = grant.PruneMark
	return nil
}

// releaseClaim releases the thread. why says what became of the change, if it was sent.
func (c *threadClaim) releaseClaim(why error) {
	if c.isOver {
		return
	}
	c.isOver = true
	if !c.isSent {
		why = nil
	}
	c.session.releaseThread(why)
}

// holdThread prepares to drive a thread here. The error is errDraining or
// errThreadHeld: this process must leave the run to others. Until startDriving or
// releaseThread is called nothing runs, and others wait who want to change the
// thread through the session.
func (e *Engine) holdThread(thread string) (*session, error) {
	s := e.newSession(thread, e.feed.AcquireTopic(thread))
	s.commitLock <- struct{}{}
	if err := e.live.registerSession(s); err != nil {
		s.stopWork(nil)
		s.cancelStoreCalls()
		e.feed.ReleaseTopic(s.topic)
		return nil, err
	}
	s.topic.AddDriver()
	return s, nil
}

// releaseThread gives up what holdThread prepared. When it is unknown whether the
// lease was taken, the thread is looked at again.
func (s *session) releaseThread(err error) {
	s.isLost = true
	s.unlockCommits()
	s.closeSession()
	s.engine.feed.InvalidateTopic(s.thread) // others may drive the thread meanwhile
	if errors.Is(err, checkpoint.ErrUnavailable) {
		s.engine.live.MarkMaybeLeased(s.thread)
	}
}

// commitFirstChange makes the first change of a session.
func (e *Engine) commitFirstChange(ctx context.Context, s *session, t *commit.Tx) (*checkpoint.Head, error) {
	ctx, cancel := e.committer.WithStoreTimeout(ctx)
	defer cancel()
	next, err := e.committer.ApplyChange(ctx, t, e.committer.MayRetry)
	if err != nil {
		return nil, err
	}
	s.topic.SetStoppedRun(&t.Change)
	s.topic.PublishEvents(t.LiveEvents)
	return &next, nil
}
