package ownership

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A thread is taken in one way for all purposes: to begin a run, to go on with answers,
// to take over from another server, to begin a run that waited. One change claims the
// lease and begins the work.

// Prepare puts the purpose of a claim into a change, and the lease of the claim or the
// hand-off to another server. It returns the loop that goes on from there. ctx is that of the
// call of Take.
type Prepare func(ctx context.Context, c *Claim, t *commit.Tx) (*superstep.Loop, error)

// Take claims a thread with one change and drives the run that the change began. When
// the preparation fails or panics, or the loop needs capacity and there is none, the
// thread is free again and nothing is stored. A panic becomes an *Error INTERNAL that
// wraps it. timeout is how long the call waits for memory for a large state; it holds no
// thread meanwhile. The error is ErrDraining or ErrThreadHeld when this server can't
// take the thread now.
func (o *Owner) Take(ctx context.Context, head *checkpoint.Head, timeout time.Duration, p Prepare) (next *checkpoint.Head, err error) {
	memory := o.opts.ReadBudget.NewReservation()
	err = o.opts.Reader.RetryLargeRead(ctx, &memory, timeout, func() error {
		next, err = o.takeReserved(ctx, head, &memory, p)
		return err
	})
	memory.ReleaseAll()
	return next, err
}

// takeReserved does so for a state that is small, or for which there is memory. The
// claim of the thread takes over the memory.
func (o *Owner) takeReserved(ctx context.Context, head *checkpoint.Head, memory *runtime.ReadReservation, p Prepare) (next *checkpoint.Head, err error) {
	s, err := o.holdThread(head.Thread)
	if err != nil {
		return nil, err
	}
	s.reservation, *memory = *memory, o.opts.ReadBudget.NewReservation()
	c := Claim{session: s}
	if caught := contain.Call(func() { next, err = c.commitClaim(ctx, head, p) }); caught != nil {
		return nil, c.freePanicked(caught)
	}
	return next, err
}

// Claim is one taking of a thread.
type Claim struct {
	session     *session
	destination string // the server that the thread is left to, "" = it is driven here
	isSent      bool   // the store may have the change
	isOver      bool   // the session drives the thread, or has released it
}

// Thread returns the thread for the loops of the run.
func (c *Claim) Thread() *superstep.Thread { return &c.session.loopThread }

// PutLease claims the lease in a change.
func (c *Claim) PutLease(t *commit.Tx) { putLease(t, c.session.thread.opts) }

// PutLeaseOrHandOff claims the lease for a loop that is about to begin, or hands the
// thread off to the server with its workers. A loop that has ended already ends in the
// same change. Errors: those of Loop.PutInlineEnd.
func (c *Claim) PutLeaseOrHandOff(t *commit.Tx, l *superstep.Loop) error {
	t.Head.Handoffs = 0
	if l.InlineEnd() != nil {
		c.PutLease(t)
		return l.PutInlineEnd(t)
	}
	o := c.session.owner
	if c.destination = o.FindOtherServer(t.Thread, l); c.destination != "" {
		o.PutHandOff(t, c.destination)
		return nil
	}
	c.PutLease(t)
	return nil
}

// commitClaim puts the change together, makes it, and lets the session drive on.
func (c *Claim) commitClaim(ctx context.Context, head *checkpoint.Head, p Prepare) (*checkpoint.Head, error) {
	s := c.session
	ctx = s.beginTurn(ctx)
	t := commit.NewTx(head, s.thread.opts.Now())
	l, err := p(ctx, c, t)
	if err != nil {
		c.releaseClaim(nil)
		return nil, err
	}
	s.reservation.ReleaseUnused()
	if l.InlineEnd() == nil && c.destination == "" {
		if err := s.reserveSlot(l); err != nil {
			c.releaseClaim(nil)
			return nil, err
		}
		s.reservation.ReleaseAll() // the run counts it
	}
	next, err := c.commitFirstChange(ctx, t)
	if err != nil {
		c.releaseClaim(err)
		return nil, err
	}
	c.isOver = true
	c.driveOrRelease(next, l)
	return next, nil
}

// commitFirstChange makes the first change of a session. A caller who leaves meanwhile does
// not stop it: the store may have the change already, and the run would have no driver.
func (c *Claim) commitFirstChange(ctx context.Context, t *commit.Tx) (*checkpoint.Head, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c.isSent = true
	committer := c.session.thread.opts.Committer
	ctx, cancel := committer.WithStoreTimeout(context.WithoutCancel(ctx))
	defer cancel()
	next, err := committer.ApplyChange(ctx, t, committer.MayRetry)
	if err != nil {
		return nil, err
	}
	c.session.thread.publishChange(t)
	return &next, nil
}

// driveOrRelease drives the loop after its first change, unless the thread was left to
// another server or the loop has ended with it.
func (c *Claim) driveOrRelease(head *checkpoint.Head, l *superstep.Loop) {
	s := c.session
	switch {
	case l.InlineEnd() != nil:
		s.endInlineRun(head, l)
	case c.destination == "":
		s.startDriving(head, l)
	default:
		s.thread.log.Debug("run left to a server with workers", zap.String("server", c.destination))
		s.endTurn(l.Run(), "left")
		s.releaseThread(nil)
	}
}

// freePanicked frees a thread whose taking panicked. It returns the caller's error.
func (c *Claim) freePanicked(p *contain.PanicError) error {
	c.session.thread.log.Error("the engine panicked while it took a thread", p.Fields()...)
	c.releaseClaim(checkpoint.ErrUnavailable)
	return runtime.Errorf(runtime.ReasonInternal, "the engine failed; the operator's log says why").WithCause(p)
}

// releaseClaim releases the thread. why is the error of the change, if it was sent.
func (c *Claim) releaseClaim(why error) {
	if c.isOver {
		return
	}
	c.isOver = true
	c.session.endTurn(nil, "not_taken")
	if !c.isSent {
		why = nil
	}
	c.session.releaseThread(why)
}
