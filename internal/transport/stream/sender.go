package stream

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// Causes of a wait that ended without events.
var (
	ErrWaitElapsed  = errors.New("nothing happened for a while")
	ErrDraining     = errors.New("the server drains")
	ErrStalled      = errors.New("the client does not read")
	ErrClientBehind = errors.New("the client has not read what it was sent before")
)

// MaxDirectBytes is the number of bytes of a stream that are sent without a
// goroutine. It is less than the 64 KB that gRPC takes before it waits for the
// client.
const MaxDirectBytes = 48 << 10

// Sender sends the messages of a stream. gRPC has no time limit for a send, so a
// goroutine sends messages that gRPC may not take at once, and the stream detects a
// client that does not read. Most streams end before they need the goroutine. It
// holds at most one message; later events stay in the log.
type Sender struct {
	sendFunc     func(*flow.EncodedMessage) error
	unread       *flow.CallUnread          // bytes that the client has not read
	directBytes  int                       // bytes that are taken without waiting
	queue        chan *flow.EncodedMessage // to the goroutine; nil = there is none yet
	idle         chan struct{}
	done         chan struct{} // closed when the goroutine has ended
	err          error         // why it ended early; read after done
	stallTimeout time.Duration
	LastSent     time.Time // when a message was handed over last
}

// NewSender makes the sender of a stream.
func (r *Registry) NewSender(stream grpc.ServerStream) *Sender {
	unread := interceptor.UnreadOfCall(stream.Context())
	return newMessageSender(newSendFunc(stream), unread, r.DirectBytes, r.StallTimeout)
}

func newMessageSender(to func(*flow.EncodedMessage) error, o *flow.CallUnread, memory int, stall time.Duration) *Sender {
	return &Sender{sendFunc: to, unread: o, directBytes: memory, stallTimeout: stall, LastSent: time.Now()}
}

func (s *Sender) sendQueued() {
	defer close(s.done)
	for {
		select {
		case m, more := <-s.queue:
			if !more {
				return
			}
			if s.err = s.sendOne(m); s.err != nil {
				return
			}
		case s.idle <- struct{}{}:
		}
	}
}

// offerTimeout returns the time that a stream holds events which it has read while
// its client does not read.
func (s *Sender) offerTimeout() time.Duration {
	return min(100*time.Millisecond, s.stallTimeout/4)
}

// sendOne sends one message and turns a panic into an error of the stream. After
// the send gRPC has the message, or will never have it, so an admitted message
// counts there from then on.
func (s *Sender) sendOne(f *flow.EncodedMessage) (err error) {
	p := contain.Call(func() { err = s.sendFunc(f) })
	s.releaseAdmitted(f)
	if p != nil {
		return p
	}
	return err
}

// releaseAdmitted stops counting an admitted message.
func (s *Sender) releaseAdmitted(f *flow.EncodedMessage) {
	if f.IsLarge() {
		s.unread.ReleaseMessage(f)
	}
}

// SendMessage hands a message over. It returns ErrStalled when the client has not
// taken the previous message in time.
func (s *Sender) SendMessage(ctx context.Context, f *flow.EncodedMessage) error {
	return s.enqueueMessage(ctx, f, s.stallTimeout, ErrStalled)
}

// OfferMessage is SendMessage for messages that can be read again. It returns
// ErrClientBehind after a short wait.
func (s *Sender) OfferMessage(ctx context.Context, f *flow.EncodedMessage) error {
	return s.enqueueMessage(ctx, f, s.offerTimeout(), ErrClientBehind)
}

// enqueueMessage admits a message and queues it, or sends it at once while no goroutine
// sends. It returns late when there is no room within a time.
func (s *Sender) enqueueMessage(ctx context.Context, f *flow.EncodedMessage, within time.Duration, late error) error {
	memory, freed := s.unread.AdmitMessage(f)
	if s.queue == nil {
		if s.directBytes -= f.SendSize(); s.directBytes > 0 && memory {
			s.LastSent = time.Now()
			return s.sendOne(f)
		}
		s.startSending()
	}
	if memory {
		select {
		case s.queue <- f: // as a rule the previous message was sent long ago
			s.LastSent = time.Now()
			return nil
		default:
		}
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		out := s.queue
		if !memory {
			out = nil
		}
		var err error
		select {
		case out <- f:
			s.LastSent = time.Now()
			return nil
		case <-freed:
			memory, freed = s.unread.AdmitMessage(f)
			continue
		case <-s.done:
			err = s.err
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = late
		}
		if memory {
			s.releaseAdmitted(f)
		}
		return err
	}
}

// waitReady returns when the queued messages are sent and there is room for size
// bytes. It returns ErrClientBehind after a short wait.
func (s *Sender) waitReady(ctx context.Context, size int) error {
	return s.waitIdle(ctx, size, s.offerTimeout(), ErrClientBehind)
}

// WaitForRoom is waitReady with the time limit of the client. It returns ErrStalled
// when that has passed.
func (s *Sender) WaitForRoom(ctx context.Context, size int) error {
	return s.waitIdle(ctx, size, s.stallTimeout, ErrStalled)
}

// waitIdle waits until the queued messages are sent and there is room for size bytes.
// It returns late when that takes longer than within.
func (s *Sender) waitIdle(ctx context.Context, size int, within time.Duration, late error) error {
	if s.queue == nil {
		s.startSending()
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		memory, freed := s.unread.HasRoom(size)
		idle := s.idle
		if !memory {
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

// startSending starts the goroutine that sends queued messages.
func (s *Sender) startSending() {
	s.queue, s.idle, s.done = make(chan *flow.EncodedMessage), make(chan struct{}), make(chan struct{})
	go contain.Func(s.sendQueued, func(*contain.PanicError) {})()
}

// WaitUntilRead waits until the client has read all messages. It returns ErrStalled when
// that takes too long, the error of the stream when a message was not sent, and that of
// ctx.
func (s *Sender) WaitUntilRead(ctx context.Context) error {
	timer := time.NewTimer(s.stallTimeout - s.offerTimeout())
	defer timer.Stop()
	for {
		drained, freed := s.unread.IsDrained()
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
			return ErrStalled
		}
	}
}

// FinishSending waits until the last message is sent, unless the stream has failed
// already. The goroutine may outlive the call only when the client is gone or
// does not read; the end of the stream then ends it.
func (s *Sender) FinishSending(ctx context.Context, failed error) error {
	if s.queue == nil {
		return failed
	}
	close(s.queue)
	if failed != nil {
		return failed
	}
	timer := time.NewTimer(s.stallTimeout)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrStalled
	}
}

// newSendFunc returns the function that sends encoded messages.
func newSendFunc(stream grpc.ServerStream) func(*flow.EncodedMessage) error {
	return func(f *flow.EncodedMessage) error { return stream.SendMsg(f) }
}
