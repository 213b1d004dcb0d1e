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

// streams is what all open streams share: when they have to end and how many
// there may be. A call that waits for a run counts as one.
type streams struct {
	heartbeat time.Duration
	stall     time.Duration
	max       int64 // 0 = any number
	maxThread int   // of one thread, 0 = any number
	maxInbox  int64 // that follow the questions of all threads, 0 = any number
	maxBytes  int   // of one message
	life      time.Duration
	room      int // bytes of a stream that are sent without a goroutine
	draining  chan struct{}
	opening   chan struct{} // holds one value for each watch that reads the store to begin; nil = any number
	open      atomic.Int64
	inboxes   atomic.Int64

	mu      sync.Mutex
	ends    map[*func()]struct{} // called when the server drains
	threads map[string]int       // watches of each thread
}

// enter counts a stream in. The caller must leave.
func (s *streams) enter() error {
	if s.isDraining() {
		return draining()
	}
	return countIn(&s.open, s.max, "max-streams", "the server has %d open streams, its limit (--max-streams)")
}

func (s *streams) leave() { s.open.Add(-1) }

// enterInbox counts in a stream of the questions of all threads, which looks at
// the store over and over. The caller must leaveInbox.
func (s *streams) enterInbox() error {
	if err := s.enter(); err != nil {
		return err
	}
	err := countIn(&s.inboxes, s.maxInbox, "max-inbox-streams", "the server has %d open streams of all questions, its limit (--max-inbox-streams)")
	if err != nil {
		s.leave()
	}
	return err
}

func (s *streams) leaveInbox() {
	s.inboxes.Add(-1)
	s.leave()
}

func countIn(n *atomic.Int64, limit int64, option, message string) error {
	if n.Add(1) > limit && limit > 0 {
		n.Add(-1)
		return tooMany(option, message, limit)
	}
	return nil
}

// tooMany refuses a stream because of a limit, which an option sets unless that is "".
func tooMany(option, message string, limit int64) error {
	e := runtime.Errorf(runtime.ReasonTooManySubscribers, message, limit).
		With("limit", strconv.FormatInt(limit, 10)) // the reason is older than Error.Beyond
	if option != "" {
		e = e.With("option", option)
	}
	return e
}

// enterThread counts in a watch of a thread. The caller must leaveThread.
func (s *streams) enterThread(thread string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maxThread > 0 && s.threads[thread] >= s.maxThread {
		return tooMany("max-thread-streams", "the thread has %d watches on this server, its limit (--max-thread-streams)", int64(s.maxThread))
	}
	if s.threads == nil {
		s.threads = make(map[string]int)
	}
	s.threads[thread]++
	return nil
}

func (s *streams) leaveThread(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.threads[thread]--; s.threads[thread] == 0 {
		delete(s.threads, thread)
	}
}

// openingWait is how long a watch waits for its turn to read what it begins with.
const openingWait = 10 * time.Second

// begin waits for its turn to read what a watch begins with, so that a crowd
// that comes at once leaves the store to others as well. A caller that holds the
// turn must not send: its client may not read.
func (s *streams) begin(ctx context.Context) (begun func(), err error) {
	if s.opening == nil {
		return func() {}, nil
	}
	select {
	case s.opening <- struct{}{}:
		return s.turnOver(), nil
	default:
	}
	timer := time.NewTimer(openingWait)
	defer timer.Stop()
	select {
	case s.opening <- struct{}{}:
		return s.turnOver(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.draining:
		return nil, draining()
	case <-timer.C:
		return nil, tooMany("", "the server opens %d streams already, its limit, and none of them was done in time", int64(cap(s.opening)))
	}
}

func (s *streams) turnOver() func() { return sync.OnceFunc(func() { <-s.opening }) }

func (s *streams) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

func draining() error {
	return runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
}

// lifetime is ctx that also ends, with errDraining as its cause, when the
// server drains or the connection has grown so old that it is about to be
// closed: a stream must end in order before the transport cuts it.
func (s *streams) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	life, end := context.WithCancelCause(ctx)
	over := func() { end(errDraining) }
	s.onDrain(&over)
	var old *time.Timer
	if born, ok := ctx.Value(bornKey{}).(time.Time); ok && s.life > 0 {
		old = time.AfterFunc(time.Until(born.Add(s.life)), contain.Func(over, func(*contain.PanicError) {}))
	}
	return life, func() {
		s.forget(&over)
		if old != nil {
			old.Stop()
		}
		end(context.Canceled)
	}
}

// onDrain has a function called when the server drains, or now if it does.
func (s *streams) onDrain(f *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining() {
		(*f)()
		return
	}
	if s.ends == nil {
		s.ends = make(map[*func()]struct{})
	}
	s.ends[f] = struct{}{}
}

func (s *streams) forget(f *func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, f)
}

// drain ends the lifetime of all streams. It is called once.
func (s *streams) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.draining)
	for f := range s.ends {
		(*f)()
	}
}

// turns are the waits of one stream for events. They share a context until
// nothing has happened for so long that a heartbeat is due.
type turns struct {
	life  context.Context //nolint:containedctx // lives as long as the stream
	every time.Duration

	mu   sync.Mutex
	last time.Time       // when something was sent last
	ctx  context.Context //nolint:containedctx // of the present turn
	end  context.CancelCauseFunc
	bell *time.Timer
}

func (s *streams) turns(life context.Context) *turns {
	return &turns{life: life, every: s.heartbeat}
}

// next is the context for a wait: it ends with errQuiet as its cause when a
// heartbeat is due.
func (t *turns) next(last time.Time) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = last
	if t.ctx != nil && t.ctx.Err() == nil {
		return t.ctx
	}
	t.ctx, t.end = context.WithCancelCause(t.life)
	if left := time.Until(last.Add(t.every)); t.bell == nil {
		t.bell = time.AfterFunc(left, contain.Func(t.ring, func(*contain.PanicError) {}))
	} else {
		t.bell.Reset(left)
	}
	return t.ctx
}

// ring ends the turn, unless something was sent since the bell was set.
func (t *turns) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(t.last.Add(t.every)); left > 0 {
		t.bell.Reset(left)
		return
	}
	t.end(errQuiet)
}

// close ends the last turn.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bell != nil {
		t.bell.Stop()
		t.end(context.Canceled)
	}
}

type bornKey struct{}

// births remembers when a connection was made; its streams inherit that.
type births struct{}

// TagConn notes the time.
func (births) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, bornKey{}, time.Now())
}

// HandleConn does nothing.
func (births) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC does nothing.
func (births) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (births) HandleRPC(context.Context, stats.RPCStats) {}
