package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// Session is one stream of one worker. What follows hello is guarded by the
// hub's mu.
type Session struct {
	hub    *Hub
	id     string
	hello  Hello
	covers *Coverage
	weight int64 // bytes of what the worker says of itself

	credit    Credit
	jobs      map[string]*job // by lease: offered, or started
	blocked   int             // of them, those that wait for graphs that they have called
	refused   int             // tasks that it has refused, of which the delay has not passed
	holds     map[*heldTask]struct{}
	out       []Message
	backlog   backlog
	parked    []*parked     // calls that wait for another task, the latest last
	wake      chan struct{} // takes one
	ended     chan struct{}
	cause     error // why it has ended
	leaving   bool
	silence   *time.Timer
	heard     time.Time
	heldUp    time.Duration // how long events have held up the stream since the last beat
	dropped   uint64        // emits since the last throttle
	throttled time.Time
}

// silentBeats is how many beats may fail to come before a stream counts as dead.
const silentBeats = 3

// errGone says that the stream of a session is closed already.
var errGone = errors.New("the session has ended")

// Open begins a session. An older one of the same worker is ended. The error
// is an *runtime.Error.
func (h *Hub) Open(hello Hello) (*Session, Welcome, error) {
	held, forged := h.readAll(hello.Held)
	covers := NewCoverage(hello.Serves)
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.draining {
		return nil, Welcome{}, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one")
	}
	s := &Session{
		hub: h, id: uuid.NewString(), hello: hello, covers: covers, credit: hello.Credit,
		jobs: make(map[string]*job), holds: make(map[*heldTask]struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		heard: time.Now(),
	}
	older := h.sessions[hello.Worker]
	if err := h.seat(s, older); err != nil {
		return nil, Welcome{}, err
	}
	h.sessions[hello.Worker] = s
	s.silence = time.AfterFunc(silentBeats*h.opts.Beat, h.contained(s.silent))
	w := Welcome{Session: s.id, Beat: h.opts.Beat, LeaseTTL: h.opts.LeaseTTL, Lost: forged}
	for _, g := range held {
		switch h.keep(s, g) {
		case lost:
			w.Lost = append(w.Lost, g.token)
			continue
		case undecided:
			w.Undecided = append(w.Undecided, g.token)
		case granted:
		}
		w.Renewed = append(w.Renewed, g.token)
	}
	if older != nil {
		h.replace(older)
	}
	h.reassign(s)
	h.rescue(s)
	h.offerTo(s)
	h.announce()
	h.log.Info("worker connected", zap.String("worker", hello.Worker), zap.String("session", s.id),
		zap.String("build", hello.Build), zap.Int("kept", len(w.Renewed)), zap.Int("lost", len(w.Lost)))
	return s, w, nil
}

// replace ends a session whose worker has connected anew. mu is held.
func (h *Hub) replace(older *Session) {
	older.finish(runtime.Errorf(runtime.ReasonWorkerReplaced,
		"worker %q has connected again; this stream is closed", older.hello.Worker).With("workerId", older.hello.Worker))
	h.leave(older)
	for held := range older.holds {
		h.giveUp(held)
	}
}

// leave puts back what has not left for a worker whose stream is over, and keeps
// the rest for it. mu is held.
func (h *Hub) leave(s *Session) {
	unsent := s.unsent()
	s.out = nil
	for _, j := range sorted(s.jobs) {
		if unsent[j.token] != nil {
			h.requeue(j)
		} else {
			h.detach(j)
		}
	}
}

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// ID names the session in logs.
func (s *Session) ID() string { return s.id }

// Next waits for the next message to the worker. The error says why the
// session has ended, or is ctx's.
func (s *Session) Next(ctx context.Context) (Message, error) {
	for {
		m, err := s.pop()
		if m != nil || err != nil {
			return m, err
		}
		select {
		case <-s.wake:
		case <-s.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Session) pop() (Message, error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.cause != nil {
		return nil, s.cause
	}
	if len(s.out) == 0 {
		return nil, nil
	}
	m := s.out[0]
	s.out = s.out[1:]
	s.hub.unread -= s.backlog.remove(m)
	return m, nil
}

// send puts a message into the line to the worker. mu is held.
func (s *Session) send(m Message) {
	if s.cause != nil {
		return
	}
	s.hub.unread += s.backlog.add(m, len(s.out) == 0)
	s.out = append(s.out, m)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finish ends the session for a reason. mu is held.
func (s *Session) finish(cause error) {
	if s.cause != nil {
		return
	}
	s.cause = cause
	s.silence.Stop()
	s.hub.said -= s.weight
	s.hub.unread -= s.backlog.bytes
	s.backlog.bytes = 0
	close(s.ended)
}

// Close says that the stream is closed. Tasks that have not left for the worker
// go to others at once; all others wait for it until their lease ends, whether
// it is known that they have begun or not.
func (s *Session) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.sessions[s.hello.Worker] == s {
		delete(h.sessions, s.hello.Worker)
	}
	s.finish(errGone)
	if len(s.holds) > 0 {
		h.changeClaims()
	}
	for held := range s.holds {
		held.attach(nil)
		held.timer.Reset(h.opts.LeaseTTL)
	}
	h.leave(s)
	for r := range h.queues {
		h.notice(r)
	}
	h.announce()
}

// Emit hands on events of a task. What the run cannot take in time is dropped, and
// the worker is told to send less. For events that must be kept it waits while there
// is no room, but not for longer than a beat between two beats of the worker: they
// stand behind the events on the stream, and its leases depend on them.
func (s *Session) Emit(token string, events []runtime.Emission, dropped uint64) {
	s.hub.mu.Lock()
	j := s.own(token)
	if j != nil {
		j.stage = started
	}
	patience := s.hub.opts.Beat - s.heldUp
	s.hub.unlockAndTell()
	if j == nil {
		return
	}
	if patience > 0 && mustKeep(events) && j.lane.room() != nil {
		began, late := time.Now(), make(chan struct{})
		timer := time.AfterFunc(patience, s.hub.contained(func() { close(late) }))
		j.lane.admit(late, events)
		timer.Stop()
		s.hub.mu.Lock()
		s.heldUp += time.Since(began)
		s.hub.mu.Unlock()
	}
	lost, flooded := j.lane.put(events, dropped)
	if lost == 0 && !flooded {
		return
	}
	s.hub.mu.Lock()
	defer s.hub.unlockAndTell()
	if flooded {
		s.hub.finish(j, FloodFailure())
		s.hub.offerTo(s)
	}
	s.throttle(lost)
}

// throttle tells the worker, at most once a second, what was dropped. mu is held.
func (s *Session) throttle(lost uint64) {
	const every = time.Second
	s.dropped += lost
	if s.dropped == 0 || time.Since(s.throttled) < every {
		return
	}
	s.send(Throttle{MinInterval: 100 * time.Millisecond, Dropped: s.dropped})
	s.dropped, s.throttled = 0, time.Now()
}

// Nack takes back a task that the worker did not begin. It goes to others, and
// to this worker not before delay has passed.
func (s *Session) Nack(token, reason string, delay time.Duration) {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	j := s.own(token)
	if j == nil {
		return
	}
	h.log.Info("a worker refused a task", append(j.fields(), zap.String("reason", reason))...)
	h.refuse(j, s, reason, delay)
	h.offerTo(s)
}

// maxRefused bounds how many tasks a worker may have refused at a time. It is given
// none beyond that until a delay has passed: they would be looked through, over and
// over, for one that it has not refused.
const maxRefused = 64

// refuse gives a task that a worker does not want to others. mu is held.
func (h *Hub) refuse(j *job, s *Session, reason string, delay time.Duration) {
	j.nacks++
	if j.nacks >= h.opts.Nacks {
		h.finish(j, failed("Refused", "workers refused the task too often; the last one said: "+reason))
		return
	}
	if j.avoid == nil {
		j.avoid = make(map[*Session]struct{})
	}
	j.avoid[s] = struct{}{}
	s.refused++
	delay = min(max(delay, 10*time.Millisecond), time.Minute)
	time.AfterFunc(delay, h.contained(func() {
		h.mu.Lock()
		defer h.unlockAndTell()
		delete(j.avoid, s)
		if s.refused--; s.refused == maxRefused-1 {
			h.offerTo(s)
		}
		h.dispatchOne(j)
	}))
	h.requeue(j)
}

// Goodbye says that the worker takes nothing new, and gives back what it
// releases. What has not left for it goes to others, too.
func (s *Session) Goodbye(released []string, reason string) {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	if !s.touch() {
		return
	}
	h.log.Info("a worker is leaving", zap.String("worker", s.hello.Worker), zap.String("reason", reason))
	s.leaving = true
	for _, token := range released {
		if j := s.jobs[token]; j != nil {
			h.requeue(j)
		}
	}
	for _, j := range sorted(s.unsent()) {
		s.unsend(j.token)
		h.requeue(j)
	}
	for r := range h.queues {
		h.notice(r)
	}
	h.announce()
}

// sorted lists tasks, the oldest first.
func sorted(jobs map[string]*job) []*job {
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return int(a.order) - int(b.order) })
}
