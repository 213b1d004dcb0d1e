package transport

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// Causes of a wait that ended without events.
var (
	errWaitElapsed  = errors.New("nothing happened for a while")
	errDraining     = errors.New("the server drains")
	errStalled      = errors.New("the client does not read")
	errClientBehind = errors.New("the client has not read what it was sent before")
)

// maxDirectBytes is how many bytes of a stream are sent without a goroutine: less
// than the 64 KB that gRPC takes before it waits for the client.
const maxDirectBytes = 48 << 10

// messageSender sends the messages of a stream. Sending has no time limit, so a
// goroutine sends what gRPC may not take at once, and a client that does not read
// is noticed. Most streams end before they need the goroutine. It holds one message
// at most; what follows stays in the log.
type messageSender struct {
	sendFunc     func(*flow.EncodedMessage) error
	unread       *flow.CallUnread          // what the client has not read
	directBytes  int                       // bytes that are taken without waiting
	queue        chan *flow.EncodedMessage // to the goroutine; nil = there is none yet
	idle         chan struct{}
	done         chan struct{} // closed when the goroutine has ended
	err          error         // why it ended early; read after done
	stallTimeout time.Duration
	lastSent     time.Time // when a message was handed over last
}

func newMessageSender(to func(*flow.EncodedMessage) error, o *flow.CallUnread, memory int, stall time.Duration) *messageSender {
	return &messageSender{sendFunc: to, unread: o, directBytes: memory, stallTimeout: stall, lastSent: time.Now()}
}

func (s *messageSender) sendQueued() {
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

// offerTimeout is how long a stream holds events that it has read while its client
// does not read.
func (s *messageSender) offerTimeout() time.Duration {
	return min(100*time.Millisecond, s.stallTimeout/4)
}

// sendOne sends one message; a panic is an error of the stream. gRPC has a message,
// or will never have it, when it is sent: what was admitted counts there from then on.
func (s *messageSender) sendOne(f *flow.EncodedMessage) (err error) {
	p := contain.Call(func() { err = s.sendFunc(f) })
	s.releaseAdmitted(f)
	if p != nil {
		return p
	}
	return err
}

// releaseAdmitted ends the counting of an admitted message.
func (s *messageSender) releaseAdmitted(f *flow.EncodedMessage) {
	if f.IsLarge() {
		s.unread.ReleaseMessage(f)
	}
}

// sendMessage hands a message over. It returns errStalled when the client has not
// taken the one before it in time.
func (s *messageSender) sendMessage(ctx context.Context, f *flow.EncodedMessage) error {
	return s.enqueueMessage(ctx, f, s.stallTimeout, errStalled)
}

// offerMessage is sendMessage for messages that can be read again: it returns
// errClientBehind soon.
func (s *messageSender) offerMessage(ctx context.Context, f *flow.EncodedMessage) error {
	return s.enqueueMessage(ctx, f, s.offerTimeout(), errClientBehind)
}

func (s *messageSender) enqueueMessage(ctx context.Context, f *flow.EncodedMessage, within time.Duration, late error) error {
	memory, freed := s.unread.AdmitMessage(f)
	if s.queue == nil {
		if s.directBytes -= f.SendSize(); s.directBytes > 0 && memory {
			s.lastSent = time.Now()
			return s.sendOne(f)
		}
		s.startSending()
	}
	if memory {
		select {
		case s.queue <- f: // as a rule the one before it is sent long ago
			s.lastSent = time.Now()
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
			s.lastSent = time.Now()
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
// bytes:
func (s *messageSender) waitReady(ctx context.Context, size int) error {
	return s.waitForRoom(ctx, size, s.offerTimeout(), errClientBehind)
}

func (s *messageSender) waitForRoom(ctx context.Context, size int, within time.Duration, late error) error {
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

func (s *messageSender) startSending() {
	s.queue, s.idle, s.done = make(chan *flow.EncodedMessage), make(chan struct{}), make(chan struct{})
	go contain.Func(s.sendQueued, func(*contain.PanicError) {})()
}

// waitUntilRead returns when the client has taken all that was handed over, or errStalled
// when that takes too long.
func (s *messageSender) waitUntilRead(ctx context.Context) error {
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
			return errStalled
		}
	}
}

// finishSending waits until the last message is sent, unless the stream has failed
// already. The goroutine may outlive the call only when the client is gone or
// does not read; the end of the stream then ends it.
func (s *messageSender) finishSending(ctx context.Context, failed error) error {
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
		return errStalled
	}
}
