package transport

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
)

// Why a turn of a stream ended without events, as causes of its context.
var (
	errQuiet    = errors.New("nothing happened for a while")
	errDraining = errors.New("the server drains")
	errStalled  = errors.New("the client does not read")
	errBehind   = errors.New("the client has not read what it was sent before")
)

// atHand is how many bytes of a stream are sent without a goroutine: less than
// the 64 KB that gRPC takes before it waits for the client.
const atHand = 48 << 10

// sender hands messages to a stream. Sending has no time limit, so what gRPC
// need not take at once is sent by a goroutine of its own, and a client that
// does not read is noticed. Most streams end before they need one. It holds one
// message at most; what follows stays in the log.
type sender struct {
	to     func(*frame) error
	outlet *outlet     // what the client has not read
	room   int         // bytes that are taken without waiting
	out    chan *frame // to the goroutine; nil = there is none yet
	idle   chan struct{}
	done   chan struct{} // closed when the goroutine has ended
	err    error         // why it ended early; read after done
	stall  time.Duration
	last   time.Time // when a message was handed over last
}

func newSender(to func(*frame) error, o *outlet, room int, stall time.Duration) *sender {
	return &sender{to: to, outlet: o, room: room, stall: stall, last: time.Now()}
}

func (s *sender) loop() {
	defer close(s.done)
	for {
		select {
		case m, more := <-s.out:
			if !more {
				return
			}
			if s.err = s.deliver(m); s.err != nil {
				return
			}
		case s.idle <- struct{}{}:
		}
	}
}

// brief is how long a stream that has read events holds them while its client
// does not read.
func (s *sender) brief() time.Duration { return min(100*time.Millisecond, s.stall/4) }

// deliver sends one message; a panic is an error of the stream. gRPC has a message,
// or will never have it, when it is sent: what was admitted counts there from then on.
func (s *sender) deliver(f *frame) (err error) {
	p := contain.Call(func() { err = s.to(f) })
	s.dismiss(f)
	if p != nil {
		return p
	}
	return err
}

// dismiss ends the counting of a message that was admitted.
func (s *sender) dismiss(f *frame) {
	if f.isLarge() {
		s.outlet.release(f)
	}
}

// send hands a message over. It returns errStalled when the client has not
// taken the one before it in time.
func (s *sender) send(ctx context.Context, f *frame) error {
	return s.handOver(ctx, f, s.stall, errStalled)
}

// offer is send for what can be had again: it returns errBehind soon.
func (s *sender) offer(ctx context.Context, f *frame) error {
	return s.handOver(ctx, f, s.brief(), errBehind)
}

func (s *sender) handOver(ctx context.Context, f *frame, within time.Duration, late error) error {
	room, freed := s.outlet.admit(f)
	if s.out == nil {
		if s.room -= f.size(); s.room > 0 && room {
			s.last = time.Now()
			return s.deliver(f)
		}
		s.begin()
	}
	if room {
		select {
		case s.out <- f: // as a rule the one before it is sent long ago
			s.last = time.Now()
			return nil
		default:
		}
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		out := s.out
		if !room {
			out = nil
		}
		var err error
		select {
		case out <- f:
			s.last = time.Now()
			return nil
		case <-freed:
			room, freed = s.outlet.admit(f)
			continue
		case <-s.done:
			err = s.err
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = late
		}
		if room {
			s.dismiss(f)
		}
		return err
	}
}

// ready returns when what was handed over is sent and there is room for so many bytes:
// errBehind soon, so that what is large is not read for a client that does not read.
func (s *sender) ready(ctx context.Context, size int) error {
	return s.awaitRoom(ctx, size, s.brief(), errBehind)
}

func (s *sender) awaitRoom(ctx context.Context, size int, within time.Duration, late error) error {
	if s.out == nil {
		s.begin()
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		room, freed := s.outlet.room(size)
		idle := s.idle
		if !room {
			idle = nil
		}
		select {
		case <-idle:
			return nil
		case <-freed:
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return late
		}
	}
}

func (s *sender) begin() {
	s.out, s.idle, s.done = make(chan *frame), make(chan struct{}), make(chan struct{})
	go contain.Func(s.loop, func(*contain.PanicError) {})()
}

// wait returns when the client has taken all that was handed over, or errStalled
// when that takes too long.
func (s *sender) wait(ctx context.Context) error {
	timer := time.NewTimer(s.stall - s.brief())
	defer timer.Stop()
	for {
		drained, freed := s.outlet.drained()
		idle := s.idle
		if !drained {
			idle = nil
		}
		select {
		case <-idle:
			return nil
		case <-freed:
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errStalled
		}
	}
}

// close waits until the last message is sent, unless the stream has failed
// already. The goroutine may outlive the call only when the client is gone or
// does not read; the end of the stream then ends it.
func (s *sender) close(ctx context.Context, failed error) error {
	if s.out == nil {
		return failed
	}
	close(s.out)
	if failed != nil {
		return failed
	}
	timer := time.NewTimer(s.stall)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errStalled
	}
}
