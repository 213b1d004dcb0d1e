package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// A thread is taken in one way, whatever for: to begin a run, to go on with
// answers, to take over from another server, to begin a run that waited. One
// change claims the lease and begins the work.

// preparation puts what a thread is taken for into a change. It returns the loop
// that goes on from there and, where the thread is left to another server, the
// name of that.
type preparation func(s *session, t *tx) (l *loop, to string, err error)

// Why a thread can't be taken here.
var (
	errNoRoom   = &noRoomError{}
	errDraining = errors.New("the server drains, and takes up nothing")
	errHeld     = errors.New("a run of the thread is live here, or about to begin")
)

// noRoomError says that the server drives as many runs as it may, or that live
// runs hold as much as they may.
type noRoomError struct {
	need int64 // bytes that the run would hold; 0 = there is no place
}

func (e *noRoomError) Error() string {
	if e.need > 0 {
		return "the live runs of the server hold as much as they may"
	}
	return "the server drives as many runs as it may"
}

// Is makes both of them errNoRoom.
func (*noRoomError) Is(target error) bool { return target == errNoRoom }

// take claims a thread with one change and drives what the change began. When
// the preparation fails or panics, or the loop needs a place and there is none, the
// thread is free again and nothing is stored. A panic becomes an *Error INTERNAL
// that wraps it. Patience is how long the call waits for room for a large state; it
// holds no thread meanwhile.
func (e *Engine) take(
	ctx context.Context, head checkpoint.Head, patience time.Duration, p preparation,
) (next checkpoint.Head, err error) {
	room := e.newLoad()
	err = e.readLarge(ctx, &room, patience, func() error {
		next, err = e.takeWith(ctx, head, &room, p)
		return err
	})
	room.end()
	return next, err
}

// takeWith does so for a state that is small, or for which there is room. What takes
// the thread takes the room as well.
func (e *Engine) takeWith(ctx context.Context, head checkpoint.Head, room *load, p preparation) (checkpoint.Head, error) {
	s, err := e.hold(head.Thread)
	if err != nil {
		return checkpoint.Head{}, err
	}
	s.load, *room = *room, e.newLoad()
	c := claim{session: s}
	var next checkpoint.Head
	if caught := contain.Call(func() { next, err = c.make(ctx, head, p) }); caught != nil {
		s.log.Error("the engine panicked while it took a thread", caught.Fields()...)
		c.free(checkpoint.ErrUnavailable)
		return checkpoint.Head{}, panicked(caught)
	}
	return next, err
}

// panicked is what a caller is told whose call panicked.
func panicked(p *contain.PanicError) *Error {
	return Errorf(ReasonInternal, "the engine failed; the operator's log says why").Because(p)
}

// claim is one taking of a thread.
type claim struct {
	session *session
	sent    bool // the store may have the change
	over    bool // the session drives the thread, or has let go of it
}

// make puts the change together, makes it, and lets the session drive on.
func (c *claim) make(ctx context.Context, head checkpoint.Head, p preparation) (checkpoint.Head, error) {
	s := c.session
	t := newTx(head, s.engine.now())
	l, to, err := p(s, t)
	if err != nil {
		c.free(nil)
		return checkpoint.Head{}, err
	}
	s.load.settle()
	if l.ended == nil && to == "" {
		if err := s.engine.reserve(s, l); err != nil {
			c.free(nil)
			return checkpoint.Head{}, err
		}
		s.load.end() // the run counts it
	}
	c.sent = true
	next, err := s.engine.applyHeld(ctx, s, t)
	if err != nil {
		c.free(err)
		return checkpoint.Head{}, err
	}
	c.over = true
	s.begun(next, l, to)
	return next, nil
}

// free lets go of the thread. why says what became of the change, if it was sent.
func (c *claim) free(why error) {
	if c.over {
		return
	}
	c.over = true
	if !c.sent {
		why = nil
	}
	c.session.release(why)
}

// hold prepares to drive a thread here. The error is errDraining or errHeld: this
// process must leave the run to others. Until launch or release is called
// nothing runs, and others wait who want to change the thread through the
// session.
func (e *Engine) hold(thread string) (*session, error) {
	s := e.newSession(thread, e.hub.join(thread))
	s.turn <- struct{}{}
	if err := e.adopt(s); err != nil {
		s.stop(nil)
		s.cut()
		e.hub.leave(s.topic)
		return nil, err
	}
	s.topic.drive()
	return s, nil
}

// release gives up what hold prepared. When nobody knows whether the lease was
// taken, the thread is looked at again.
func (s *session) release(err error) {
	s.lost = true
	s.yield()
	s.close()
	s.engine.hub.doubt(s.thread) // others may drive the thread meanwhile
	if errors.Is(err, checkpoint.ErrUnavailable) {
		s.engine.adrift(s.thread)
	}
}

// applyHeld makes the first change of a session.
func (e *Engine) applyHeld(ctx context.Context, s *session, t *tx) (checkpoint.Head, error) {
	ctx, cancel := e.patience(ctx)
	defer cancel()
	next, err := e.apply(ctx, t, e.persist)
	if err == nil {
		s.topic.stop(t)
		s.topic.publish(t.live)
	}
	return next, err
}
