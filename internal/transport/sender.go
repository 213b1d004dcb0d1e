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

// sender hands messages to a stream from a goroutine of its own, so that a
// client that does not read is noticed: Send itself has no time limit. It holds
// one message at most; what follows stays in the log.
type sender[T any] struct {
	out   chan T
	done  chan struct{} // closed when the goroutine has ended
	err   error         // why it ended early; read after done
	stall time.Duration
	last  time.Time // when a message was handed over last
}

func newSender[T any](send func(T) error, stall time.Duration) *sender[T] {
	s := &sender[T]{out: make(chan T), done: make(chan struct{}), stall: stall, last: time.Now()}
	go s.loop(send)
	return s
}

func (s *sender[T]) loop(send func(T) error) {
	defer close(s.done)
	for m := range s.out {
		if s.err = send(m); s.err != nil {
			return
		}
	}
}

// send hands a message over. It returns errStalled when the client has not
// taken the one before it in time.
func (s *sender[T]) send(ctx context.Context, m T) error {
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
