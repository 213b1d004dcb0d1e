package stream

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// Settings hold for all streams of a server.
type Settings struct {
	HeartbeatInterval   time.Duration
	StallTimeout        time.Duration // how long a client may leave a message unread
	MaxStreams          int64         // 0 = any number
	MaxThreadStreams    int           // of one thread, 0 = any number
	MaxInterruptStreams int64         // that follow the interrupts of all threads, 0 = any number
	MaxOpening          int           // that read the store to begin, 0 = any number
	MaxMessageBytes     int           // of one message
	MaxLifetime         time.Duration // since the connection was made, 0 = any
	DirectBytes         int           // of a stream that are sent without a goroutine, see MaxDirectBytes
}

// Registry counts all open streams, and ends them when the server drains. A call
// that waits for a run counts as a stream.
type Registry struct {
	Settings

	draining           chan struct{}
	openingSlots       chan struct{} // holds one value for each watch that reads the store to begin; nil = any number
	openCount          atomic.Int64
	openInterruptCount atomic.Int64

	mu           sync.Mutex
	drainHooks   map[*func()]struct{} // called when the server drains
	threadCounts map[string]int       // watches of each thread
}

// NewRegistry makes a Registry without streams.
func NewRegistry(settings Settings) *Registry {
	s := &Registry{Settings: settings, draining: make(chan struct{})}
	if settings.MaxOpening > 0 {
		s.openingSlots = make(chan struct{}, settings.MaxOpening)
	}
	return s
}

// AddStream counts a new stream of a call. The caller calls RemoveStream. It returns an
// error while the server drains, beyond the limit, and beyond a quota of the caller.
func (r *Registry) AddStream(ctx context.Context) error {
	if r.IsDraining() {
		return DrainingError()
	}
	if err := interceptor.HoldStream(ctx); err != nil {
		return err
	}
	return addIfBelow(&r.openCount, r.MaxStreams, "max-streams", "the server has %d open streams, its limit (--max-streams)")
}

// RemoveStream removes a stream from the count.
func (r *Registry) RemoveStream() { r.openCount.Add(-1) }

// AddInterruptStream counts a new stream of the interrupts of all threads, which
// polls the store. The caller calls RemoveInterruptStream. The errors are those of
// AddStream.
func (r *Registry) AddInterruptStream(ctx context.Context) error {
	if err := r.AddStream(ctx); err != nil {
		return err
	}
	err := addIfBelow(&r.openInterruptCount, r.MaxInterruptStreams, "max-inbox-streams",
		"the server has %d open streams of all questions, its limit (--max-inbox-streams)")
	if err != nil {
		r.RemoveStream()
	}
	return err
}

// RemoveInterruptStream removes a stream of interrupts from the count.
func (r *Registry) RemoveInterruptStream() {
	r.openInterruptCount.Add(-1)
	r.RemoveStream()
}

func addIfBelow(n *atomic.Int64, limit int64, option, message string) error {
	if n.Add(1) > limit && limit > 0 {
		n.Add(-1)
		return tooManyStreamsError(option, message, limit)
	}
	return nil
}

// tooManyStreamsError returns the refusal of a stream because of a limit. option is
// the option that sets the limit, "" if there is none.
func tooManyStreamsError(option, message string, limit int64) error {
	e := runtime.Errorf(runtime.ReasonTooManySubscribers, message, limit).
		With("limit", strconv.FormatInt(limit, 10)) // the reason is older than Error.Beyond
	if option != "" {
		e = e.With("option", option)
	}
	return e
}

// AddThreadStream counts a new watch of a thread. The caller calls
// RemoveThreadStream. The error is a *runtime.Error TOO_MANY_SUBSCRIBERS.
func (r *Registry) AddThreadStream(thread string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.MaxThreadStreams > 0 && r.threadCounts[thread] >= r.MaxThreadStreams {
		return tooManyStreamsError("max-thread-streams",
			"the thread has %d watches on this server, its limit (--max-thread-streams)", int64(r.MaxThreadStreams))
	}
	if r.threadCounts == nil {
		r.threadCounts = make(map[string]int)
	}
	r.threadCounts[thread]++
	return nil
}

// RemoveThreadStream removes a watch of a thread from the count.
func (r *Registry) RemoveThreadStream(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.threadCounts[thread]--; r.threadCounts[thread] == 0 {
		delete(r.threadCounts, thread)
	}
}

// openingTimeout bounds the wait of a watch for an opening slot.
const openingTimeout = 10 * time.Second

// AcquireOpeningSlot waits for a slot to read the first messages of a watch, so
// that many watches at once do not occupy the store. The holder must not send while
// it has the slot, because its client may not read. Errors: ctx's error,
// SERVER_DRAINING, and TOO_MANY_SUBSCRIBERS.
func (r *Registry) AcquireOpeningSlot(ctx context.Context) (begun func(), err error) {
	if r.openingSlots == nil {
		return func() {}, nil
	}
	select {
	case r.openingSlots <- struct{}{}:
		return r.openingSlotRelease(), nil
	default:
	}
	timer := time.NewTimer(openingTimeout)
	defer timer.Stop()
	select {
	case r.openingSlots <- struct{}{}:
		return r.openingSlotRelease(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.draining:
		return nil, DrainingError()
	case <-timer.C:
		return nil, tooManyStreamsError("", "the server opens %d streams already, its limit, and none of them was done in time", int64(cap(r.openingSlots)))
	}
}

func (r *Registry) openingSlotRelease() func() {
	return sync.OnceFunc(func() { <-r.openingSlots })
}

// IsDraining reports whether the server drains.
func (r *Registry) IsDraining() bool {
	select {
	case <-r.draining:
		return true
	default:
		return false
	}
}

// DrainingError returns the error of a call that the server refuses because it
// drains.
func DrainingError() error {
	return runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
}

// NewLifetime returns a context that also ends, with ErrDraining as its cause, when
// the server drains or the connection is about to be closed for its age. A stream
// must end in order before the transport cuts it.
func (r *Registry) NewLifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	life, end := context.WithCancelCause(ctx)
	over := func() { end(ErrDraining) }
	r.addDrainHook(&over)
	var old *time.Timer
	if born, ok := ctx.Value(connectionStartKey{}).(time.Time); ok && r.MaxLifetime > 0 {
		old = time.AfterFunc(time.Until(born.Add(r.MaxLifetime)), contain.Func(over, func(*contain.PanicError) {}))
	}
	return life, func() {
		r.removeDrainHook(&over)
		if old != nil {
			old.Stop()
		}
		end(context.Canceled)
	}
}

// addDrainHook registers a function that the server calls when it drains. It calls
// the function at once if the server drains already.
func (r *Registry) addDrainHook(f *func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.IsDraining() {
		(*f)()
		return
	}
	if r.drainHooks == nil {
		r.drainHooks = make(map[*func()]struct{})
	}
	r.drainHooks[f] = struct{}{}
}

func (r *Registry) removeDrainHook(f *func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.drainHooks, f)
}

// DrainStreams ends the lifetime of all streams. It is called once.
func (r *Registry) DrainStreams() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.draining)
	for f := range r.drainHooks {
		(*f)()
	}
}

// HeartbeatWait is the wait of one stream for events. Its waits share a context
// until a heartbeat is due.
type HeartbeatWait struct {
	lifetime context.Context //nolint:containedctx // lives as long as the stream
	interval time.Duration

	mu       sync.Mutex
	lastSent time.Time       // when something was sent last
	ctx      context.Context //nolint:containedctx // of the current wait
	cancel   context.CancelCauseFunc
	timer    *time.Timer
}

// NewHeartbeatWait makes the wait of a stream. life is the lifetime of the stream.
func (r *Registry) NewHeartbeatWait(life context.Context) *HeartbeatWait {
	return &HeartbeatWait{lifetime: life, interval: r.HeartbeatInterval}
}

// NextContext returns the context of the next wait. It ends with ErrWaitElapsed as
// its cause when a heartbeat is due.
func (h *HeartbeatWait) NextContext(last time.Time) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastSent = last
	if h.ctx != nil && h.ctx.Err() == nil {
		return h.ctx
	}
	h.ctx, h.cancel = context.WithCancelCause(h.lifetime)
	if left := time.Until(last.Add(h.interval)); h.timer == nil {
		h.timer = time.AfterFunc(left, contain.Func(h.endWaitIfDue, func(*contain.PanicError) {}))
	} else {
		h.timer.Reset(left)
	}
	return h.ctx
}

// endWaitIfDue ends the wait, unless a message was sent since the timer was set.
func (h *HeartbeatWait) endWaitIfDue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := time.Until(h.lastSent.Add(h.interval)); left > 0 {
		h.timer.Reset(left)
		return
	}
	h.cancel(ErrWaitElapsed)
}

// StopWaiting ends the last wait.
func (h *HeartbeatWait) StopWaiting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.cancel(context.Canceled)
	}
}

type connectionStartKey struct{}

// ConnectionStart records when a connection was made, for the lifetime of its
// streams.
type ConnectionStart struct{}

// TagConn adds the present time to the context of a connection.
func (ConnectionStart) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionStartKey{}, time.Now())
}

// HandleConn does nothing.
func (ConnectionStart) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC does nothing.
func (ConnectionStart) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (ConnectionStart) HandleRPC(context.Context, stats.RPCStats) {}
