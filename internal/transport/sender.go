package transport

import (
	"context"
	"errors"
	"time"
)

// Why a turn of a stream ended without events, as causes of its context.
var (
	errQuiet    = errors.New("nothing happened for a while")
	errDraining = errors.New("the server drains")
	errStalled  = errors.New("the client does not read")
)

// atHand is how many bytes of a stream are sent without a goroutine: less than
// the 64 KB that gRPC takes before it waits for the client.
const atHand = 48 << 10

// sender hands messages to a stream. Sending has no time limit, so what gRPC
// need not take at once is sent by a goroutine of its own, and a client that
// does not read is noticed. Most streams end before they need one. It holds one
// message at most; what follows stays in the log.
type sender[T any] struct {
	to    func(T) error
	size  func(T) int   // in bytes, or somewhat more
	room  int           // bytes that are taken without waiting
	out   chan T        // to the goroutine; nil = there is none yet
	done  chan struct{} // closed when the goroutine has ended
	err   error         // why it ended early; read after done
	stall time.Duration
	last  time.Time // when a message was handed over last
}

func newSender[T any](to func(T) error, size func(T) int, room int, stall time.Duration) *sender[T] {
	return &sender[T]{to: to, size: size, room: room, stall: stall, last: time.Now()}
}

func (s *sender[T]) loop() {
	defer close(s.done)
	for m := range s.out {
		if s.err = s.to(m); s.err != nil {
			return
		}
	}
}

// send hands a message over. It returns errStalled when the client has not
// taken the one before it in time.
func (s *sender[T]) send(ctx context.Context, m T) error {
	if s.out == nil {
		if s.room -= s.size(m); s.room > 0 {
			s.last = time.Now()
			return s.to(m)
		}
		s.out, s.done = make(chan T), make(chan struct{})
		go s.loop()
	}
	select {
	case s.out <- m: // as a rule the one before it is sent long ago
		s.last = time.Now()
		return nil
	default:
	}
	timer := time.NewTimer(s.stall)
	defer timer.Stop()
	select {
	case s.out <- m:
		s.last = time.Now()
		return nil
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errStalled
	}
}

// close waits until the last message is sent, unless the stream has failed
// already. The goroutine may outlive the call only when the client is gone or
// does not read; the end of the stream then ends it.
func (s *sender[T]) close(ctx context.Context, failed error) error {
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
