package transport

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// streamRegistry is what all open streams share: when they have to end and how many
// there may be. A call that waits for a run counts as one.
type streamRegistry struct {
	heartbeatInterval   time.Duration
	stallTimeout        time.Duration
	maxStreams          int64 // 0 = any number
	maxThreadStreams    int   // of one thread, 0 = any number
	maxInterruptStreams int64 // that follow the interrupts of all threads, 0 = any number
	maxMessageBytes     int   // of one message
	maxLifetime         time.Duration
	directBytes         int // bytes of a stream that are sent without a goroutine
	draining            chan struct{}
	openingSlots        chan struct{} // holds one value for each watch that reads the store to begin; nil = any number
	openCount           atomic.Int64
	openInterruptCount  atomic.Int64

	mu           sync.Mutex
	drainHooks   map[*func()]struct{} // called when the server drains
	threadCounts map[string]int       // watches of each thread
}

// addStream counts a new stream. The caller calls removeStream.
func (s *streamRegistry) addStream() error {
	if s.isDraining() {
		return drainingError()
	}
	return addIfBelow(&s.openCount, s.maxStreams, "max-streams", "the server has %d open streams, its limit (--max-streams)")
}

func (s *streamRegistry) removeStream() { s.openCount.Add(-1) }

// addInterruptStream counts a new stream of the interrupts of all threads, which
// polls the store. The caller calls removeInterruptStream.
func (s *streamRegistry) addInterruptStream() error {
	if err := s.addStream(); err != nil {
		return err
	}
	err := addIfBelow(&s.openInterruptCount, s.maxInterruptStreams, "max-inbox-streams", "the server has %d open streams of all questions, its limit (--max-inbox-streams)")
	if err != nil {
		s.removeStream()
	}
	return err
}

func (s *streamRegistry) removeInterruptStream() {
	s.openInterruptCount.Add(-1)
	s.removeStream()
}

func addIfBelow(n *atomic.Int64, limit int64, option, message string) error {
	if n.Add(1) > limit && limit > 0 {
		n.Add(-1)
		return tooManyStreamsError(option, message, limit)
	}
	return nil
}

// tooManyStreamsError refuses a stream because of a limit, which an option sets unless that is "".
func tooManyStreamsError(option, message string, limit int64) error {
	e := runtime.Errorf(runtime.ReasonTooManySubscribers, message, limit).
		With("limit", strconv.FormatInt(limit, 10)) // the reason is older than Error.Beyond
	if option != "" {
		e = e.With("option", option)
	}
	return e
}

// addThreadStream counts a new watch of a thread. The caller calls
// removeThreadStream.
func (s *streamRegistry) addThreadStream(thread string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maxThreadStreams > 0 && s.threadCounts[thread] >= s.maxThreadStreams {
		return tooManyStreamsError("max-thread-streams", "the thread has %d watches on this server, its limit (--max-thread-streams)", int64(s.maxThreadStreams))
	}
	if s.threadCounts == nil {
		s.threadCounts = make(map[string]int)
	}
	s.threadCounts[thread]++
	return nil
}

func (s *streamRegistry) removeThreadStream(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.threadCounts[thread]--; s.threadCounts[thread] == 0 {
		delete(s.threadCounts, thread)
	}
}

// openingTimeout is how long a watch waits for an opening slot.
const openingTimeout = 10 * time.Second

// acquireOpeningSlot waits for a slot to read what a watch begins with, so that
// many watches at once leave the store to others as well. The holder must not send:
// its client may not read.
func (s *streamRegistry) acquireOpeningSlot(ctx context.Context) (begun func(), err error) {
	if s.openingSlots == nil {
		return func() {}, nil
	}
	select {
	case s.openingSlots <- struct{}{}:
		return s.openingSlotRelease(), nil
	default:
	}
	timer := time.NewTimer(openingTimeout)
	defer timer.Stop()
	select {
	case s.openingSlots <- struct{}{}:
		return s.openingSlotRelease(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.draining:
		return nil, drainingError()
	case <-timer.C:
		return nil, tooManyStreamsError("", "the server opens %d streams already, its limit, and none of them was done in time", int64(cap(s.openingSlots)))
	}
}

func (s *streamRegistry) openingSlotRelease() func() {
	return sync.OnceFunc(func() { <-s.openingSlots })
}

func (s *streamRegistry) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

func drainingError() error {
	return runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
}

// newLifetime is ctx that also ends, with errDraining as its cause, when the
// server drains or the connection has grown so old that it is about to be
// closed: a stream must end in order before the transport cuts it.
func (s *streamRegistry) newLifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	life, end := context.WithCancelCause(ctx)
	over := func() { end(errDraining) }
	s.addDrainHook(&over)
	var old *time.Timer
	if born, ok := ctx.Value(connectionStartKey{}).(time.Time); ok && s.maxLifetime > 0 {
		old = time.AfterFunc(time.Until(born.Add(s.maxLifetime)), contain.Func(over, func(*contain.PanicError) {}))
	}
	return life, func() {
		s.removeDrainHook(&over)
		if old != nil {
			old.Stop()
		}
		end(context.Canceled)
	}
}

// addDrainHook has a function called when the server drains, or now if it does.
func (s *streamRegistry) addDrainHook(f *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining() {
		(*f)()
		return
	}
	if s.drainHooks == nil {
		s.drainHooks = make(map[*func()]struct{})
	}
	s.drainHooks[f] = struct{}{}
}

func (s *streamRegistry) removeDrainHook(f *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.drainHooks, f)
}

// drainStreams ends the lifetime of all streams. It is called once.
func (s *streamRegistry) drainStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.draining)
	for f := range s.drainHooks {
		(*f)()
	}
}

// heartbeatWait is the wait of one stream for events. Its waits share a context
// until a heartbeat is due.
type heartbeatWait struct {
	lifetime context.Context //nolint:containedctx // lives as long as the stream
	interval time.Duration

	mu       sync.Mutex
	lastSent time.Time       // when something was sent last
	ctx      context.Context //nolint:containedctx // of the current wait
	cancel   context.CancelCauseFunc
	timer    *time.Timer
}

func (s *streamRegistry) newHeartbeatWait(life context.Context) *heartbeatWait {
	return &heartbeatWait{lifetime: life, interval: s.heartbeatInterval}
}

// nextContext returns the context of the next wait: it ends with errWaitElapsed as
// its cause when a heartbeat is due.
func (t *heartbeatWait) nextContext(last time.Time) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastSent = last
	if t.ctx != nil && t.ctx.Err() == nil {
		return t.ctx
	}
	t.ctx, t.cancel = context.WithCancelCause(t.lifetime)
	if left := time.Until(last.Add(t.interval)); t.timer == nil {
		t.timer = time.AfterFunc(left, contain.Func(t.endWaitIfDue, func(*contain.PanicError) {}))
	} else {
		t.timer.Reset(left)
	}
	return t.ctx
}

// endWaitIfDue ends the wait, unless something was sent since the timer was set.
func (t *heartbeatWait) endWaitIfDue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(t.lastSent.Add(t.interval)); left > 0 {
		t.timer.Reset(left)
		return
	}
	t.cancel(errWaitElapsed)
}

// stopWaiting ends the last wait.
func (t *heartbeatWait) stopWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.cancel(context.Canceled)
	}
}

type connectionStartKey struct{}

// connectionStart records when a connection was made; its streams read that.
type connectionStart struct{}

// TagConn notes the time.
func (connectionStart) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionStartKey{}, time.Now())
}

// HandleConn does nothing.
func (connectionStart) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC does nothing.
func (connectionStart) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (connectionStart) HandleRPC(context.Context, stats.RPCStats) {}
