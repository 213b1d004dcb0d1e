// Package session is the part of a worker that speaks with the server: it takes tasks, holds their
// leases, and hands over their results, over broken connections and through servers that go down.
package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/node/function"
	"github.com/graphd-dev/graphd/internal/telemetry/sloglines"
	"github.com/graphd-dev/graphd/worker/internal/task"
)

// Options are those of a session. All fields must be set, except where a comment says otherwise.
type Options struct {
	WorkerID     string
	Manifest     *graphdv1.WorkerManifest
	Labels       map[string]string // may be nil
	Slots        int               // tasks at a time
	KeptBytes    int64             // of values that are kept for later tasks; 0 = none
	DrainTimeout time.Duration
	// Find returns the code of a task, and false when there is none.
	Find func(*graphdv1.TaskAssignment) (task.Code, bool)
	// Welcomed sees each welcome. The error ends the session.
	Welcomed func(*graphdv1.Welcome) error
	// Unfinished makes the error of a worker that leaves before some tasks have ended, Stopped the cause
	// of a task that the server stops for a reason.
	Unfinished func(tasks int) error
	Stopped    func(reason string) error
	Tracers    trace.TracerProvider // nil = tasks have no spans
	Log        *slog.Logger         // nil = nothing is logged
}

// ErrLeaving is the cause with which the contexts of tasks end when a worker leaves.
var ErrLeaving = errors.New("the worker leaves")

// ErrLost is the error of a task that another worker has.
var ErrLost = errors.New("the task was given to another worker")

// Session serves tasks of a server.
type Session struct {
	o      Options
	log    *zap.Logger
	conn   *Connection
	runner *task.Runner

	work     context.Context //nolint:containedctx // ends when nothing goes on any more
	stopWork context.CancelCauseFunc
	wake     chan struct{} // there is something to send; its capacity is 1

	mu            sync.Mutex
	changed       chan struct{} // is closed and replaced when something may be certain, or has ended
	attempts      map[string]*attempt
	stray         int // functions that still run though their tasks are lost
	refusals      []*graphdv1.Nack
	released      [][]byte                        // leases that are given back when the worker leaves
	results       []*graphdv1.CompleteTaskRequest // to be sent on the stream
	lastEmit      time.Time                       // when events were sent on a stream last
	certainty     certainty
	kept          keptValues
	terms         terms
	revision      uint64 // of the credit
	isBeatDue     bool
	isDraining    bool
	isLeaving     bool // the stream is closed once all is sent
	isWelcomed    bool
	sender        *sender // of the present stream, nil = there is none
	announcements announcements
	// takesResults says that the present stream takes results.
	takesResults bool
}

// terms are those of the server.
type terms struct {
	beat, longestPause time.Duration
	limits             task.Limits
	emitPause          time.Duration // between two sends of events
}

// New makes a session on a connection.
func New(conn *Connection, o Options) *Session {
	log := sloglines.NewLogger(o.Log)
	return &Session{
		o: o, log: log, conn: conn, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		attempts: make(map[string]*attempt), terms: terms{beat: time.Second, longestPause: longestPause}, kept: make(keptValues),
		runner: task.NewRunner(function.Options{Logger: log}, task.NewTracer(o.Tracers)),
	}
}

// Run serves tasks until ctx ends or the server refuses the worker. When ctx ends, it lets its tasks
// end. It is called once.
func (s *Session) Run(ctx context.Context) error {
	s.work, s.stopWork = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.conn.Close()
	ended := make(chan error, 1)
	go contain.Func(func() { ended <- s.serveStreams() }, func(p *contain.PanicError) { ended <- p })()
	select {
	case err := <-ended:
		s.stopWork(err)
		return err
	case <-ctx.Done():
	}
	err := s.drain()
	s.leave(ended)
	return err
}

// drain lets the tasks end, for a time.
func (s *Session) drain() error {
	s.mu.Lock()
	s.isDraining = true
	s.revision++
	s.mu.Unlock()
	s.wakeSender()
	if s.waitUntilIdle(s.o.DrainTimeout) {
		return nil
	}
	s.mu.Lock()
	unfinished := s.o.Unfinished(len(s.attempts))
	for _, a := range s.attempts {
		a.isReleased = true
		a.stop(ErrLeaving)
	}
	s.mu.Unlock()
	s.waitUntilIdle(graceOfStopped)
	return unfinished
}

// leave closes the stream in order.
func (s *Session) leave(ended <-chan error) {
	s.mu.Lock()
	s.isLeaving = true
	s.mu.Unlock()
	s.wakeSender()
	timer := time.NewTimer(graceOfStream)
	defer timer.Stop()
	select {
	case err := <-ended:
		s.stopWork(ErrLeaving)
		s.log.Debug("the stream of a worker has ended", zap.Error(err))
	case <-timer.C:
		s.stopWork(ErrLeaving)
		err := <-ended
		s.log.Debug("the stream of a worker was ended", zap.Error(err))
	}
}

// Times for the end of a worker.
const (
	graceOfStopped = 2 * time.Second // for functions whose contexts have ended
	graceOfStream  = 2 * time.Second // for the server to end the stream
)

// waitUntilIdle waits until there is no task, and reports whether that was in time.
func (s *Session) waitUntilIdle(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(s.work, limit)
	defer cancel()
	return s.waitFor(ctx, func() bool { return len(s.attempts) == 0 }) == nil
}

// waitFor waits until a condition holds, which is asked under the lock. The error is the cause of
// ctx.
func (s *Session) waitFor(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		isMet, changed := holds(), s.changed
		s.mu.Unlock()
		if isMet {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// announceChange wakes all who wait. The caller holds the lock.
func (s *Session) announceChange() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wakeSender has what waits sent.
func (s *Session) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// askLeases has the server say at once which leases are lost.
func (s *Session) askLeases() {
	s.mu.Lock()
	s.isBeatDue = true
	s.mu.Unlock()
	s.wakeSender()
}

// longestPause is the longest time between two attempts to connect.
const longestPause = 5 * time.Second

// serveStreams opens one stream after the other. It returns when the worker leaves, or with the
// error of a server that refuses it.
func (s *Session) serveStreams() error {
	for failures := 1; ; failures++ {
		hasWelcome, err := s.serveStream(s.work)
		s.closeResults()
		if hasWelcome {
			failures = 1
		}
		s.mu.Lock()
		s.certainty.disconnect()
		isOver, isWelcomed, pause := s.isLeaving || s.work.Err() != nil, s.isWelcomed, s.terms.longestPause
		s.mu.Unlock()
		if isOver {
			return nil
		}
		if refusal := refusalIn(err, isWelcomed); refusal != nil {
			return refusal
		}
		policy := backoff.Policy{First: 50 * time.Millisecond, Max: pause, Jitter: 50 * time.Millisecond}
		delay := policy.Delay(failures)
		s.log.Warn("the stream of a worker has ended; it connects again", zap.String("worker", s.o.WorkerID),
			zap.Int("failures", failures), zap.Duration("pause", delay), zap.Error(err))
		if s.waitToConnect(delay) {
			return nil
		}
	}
}

// waitToConnect waits, and reports whether the worker leaves.
func (s *Session) waitToConnect(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(s.work, d)
	defer cancel()
	_ = s.waitFor(ctx, func() bool { return s.isLeaving })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLeaving || s.work.Err() != nil
}
