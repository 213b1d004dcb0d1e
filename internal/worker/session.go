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

// Session is one stream of one worker. What follows outbox is guarded by the
// hub's mu.
type Session struct {
	hub          *Hub
	id           string
	hello        Hello
	outbox       *outbox
	profileBytes int64 // bytes of what the worker says of itself

	capacity      capacity
	waitingCalls  waitingCalls // for another task
	hasEnded      bool
	isLeaving     bool
	silenceTimer  *time.Timer
	lastHeard     time.Time
	heldUp        time.Duration // how long events have held up the stream since the last beat
	droppedEvents uint64        // emits since the last throttle
	lastThrottle  time.Time
}

// maxMissedHeartbeats is how many heartbeats may be missed before a stream counts
// as dead.
const maxMissedHeartbeats = 3

// errSessionEnded says that the stream of a session is closed already.
var errSessionEnded = errors.New("the session has ended")

// OpenSession begins a session. An older one of the same worker is ended. The error
// is an *runtime.Error.
func (h *Hub) OpenSession(hello Hello) (*Session, Welcome, error) {
	held, forged := h.signer.ParseTokens(hello.HeldLeases)
	covers := NewCoverage(hello.Capabilities)
	h.mu.Lock()
	defer h.unlockAndNotify()
	if h.isDraining {
		return nil, Welcome{}, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one")
	}
	s := &Session{
		hub: h, id: uuid.NewString(), hello: hello, outbox: newOutbox(&h.unreadBytes),
		lastHeard: time.Now(),
	}
	s.capacity = capacity{session: s, coverage: covers, credit: hello.Credit, jobs: make(map[string]*job)}
	older, err := h.sessions.addSession(s)
	if err != nil {
		return nil, Welcome{}, err
	}
	s.silenceTimer = time.AfterFunc(maxMissedHeartbeats*h.opts.HeartbeatInterval, h.containPanics(s.endSilentSession))
	w := Welcome{SessionID: s.id, HeartbeatInterval: h.opts.HeartbeatInterval, LeaseTTL: h.opts.LeaseTTL, LostLeases: forged}
	for _, g := range held {
		switch h.claimLease(s, g) {
		case claimLost:
			w.LostLeases = append(w.LostLeases, g.Token)
			continue
		case claimUndecided:
			w.UndecidedLeases = append(w.UndecidedLeases, g.Token)
		case claimGranted:
		}
		w.RenewedLeases = append(w.RenewedLeases, g.Token)
	}
	if older != nil {
		h.replaceSession(older)
	}
	h.requeueDetached(s)
	h.clearStranded(s)
	h.offerOldestTo(s)
	h.publishCapabilities()
	h.log.Info("worker connected", zap.String("worker", hello.Worker), zap.String("session", s.id),
		zap.String("build", hello.BuildID), zap.Int("kept", len(w.RenewedLeases)), zap.Int("lost", len(w.LostLeases)))
	return s, w, nil
}

// replaceSession ends a session whose worker has connected anew. mu is held.
func (h *Hub) replaceSession(older *Session) {
	older.endSession(runtime.Errorf(runtime.ReasonWorkerReplaced,
		"worker %q has connected again; this stream is closed", older.hello.Worker).With("workerId", older.hello.Worker))
	h.releaseJobs(older)
	h.reclaims.RejectOf(older)
}

// releaseJobs requeues what has not left for a worker whose stream is over, and
// keeps the rest for it. mu is held.
func (h *Hub) releaseJobs(s *Session) {
	unsent := s.unsentJobs()
	for _, j := range sortedByAge(s.capacity.jobs) {
		if unsent[j.token] != nil {
			h.requeueJob(j)
		} else {
			h.detachJob(j)
		}
	}
}

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.outbox.ended }

// ID names the session in logs.
func (s *Session) ID() string { return s.id }

// NextMessage waits for the next message to the worker. The error says why the
// session has ended, or is ctx's.
func (s *Session) NextMessage(ctx context.Context) (Message, error) {
	return s.outbox.waitForMessage(ctx)
}

// endSession ends the session for a reason. mu is held.
func (s *Session) endSession(cause error) {
	if s.hasEnded {
		return
	}
	s.hasEnded = true
	s.silenceTimer.Stop()
	s.hub.sessions.releaseProfile(s)
	s.outbox.endDelivery(cause)
}

// Close says that the stream is closed. Tasks that have not left for the worker
// go to others at once; all others wait for it until their lease ends, whether
// it is known that they have begun or not.
func (s *Session) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndNotify()
	h.sessions.removeSession(s)
	s.endSession(errSessionEnded)
	h.reclaims.Detach(s, h.opts.LeaseTTL)
	h.releaseJobs(s)
	for r := range h.queue.Routes() {
		h.noticeUnserved(r)
	}
	h.publishCapabilities()
}

// HandleEvents queues events of a task. Events that the run does not take in time
// are dropped, and the worker is told to send less. For durable events it waits
// while the budget is used up, one heartbeat interval at most between two heartbeats
// of the worker: they stand behind the events on the stream, and its leases depend
// on them.
func (s *Session) HandleEvents(token string, events []runtime.Emission, dropped uint64) {
	s.hub.mu.Lock()
	j := s.jobOfLease(token)
	if j != nil {
		j.stage = stageStarted
	}
	timeout := s.hub.opts.HeartbeatInterval - s.heldUp
	s.hub.unlockAndNotify()
	if j == nil {
		return
	}
	if timeout > 0 && hasDurable(events) && j.events.roomSignal() != nil {
		began, late := time.Now(), make(chan struct{})
		timer := time.AfterFunc(timeout, s.hub.containPanics(func() { close(late) }))
		j.events.waitForRoom(late, events)
		timer.Stop()
		s.hub.mu.Lock()
		s.heldUp += time.Since(began)
		s.hub.mu.Unlock()
	}
	lost, flooded := j.events.addEvents(events, dropped)
	if lost == 0 && !flooded {
		return
	}
	s.hub.mu.Lock()
	defer s.hub.unlockAndNotify()
	if flooded {
		s.hub.finishJob(j, EmitFloodFailure())
		s.hub.offerOldestTo(s)
	}
	s.throttleWorker(lost)
}

// throttleWorker tells the worker, at most once a second, what was dropped. mu is held.
func (s *Session) throttleWorker(lost uint64) {
	const every = time.Second
	s.droppedEvents += lost
	if s.droppedEvents == 0 || time.Since(s.lastThrottle) < every {
		return
	}
	s.outbox.addMessage(ThrottleNotice{MinInterval: 100 * time.Millisecond, DroppedEvents: s.droppedEvents})
	s.droppedEvents, s.lastThrottle = 0, time.Now()
}

// HandleNack takes back a task that the worker did not begin. It goes to others, and
// to this worker not before delay has passed.
func (s *Session) HandleNack(token, reason string, delay time.Duration) {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndNotify()
	j := s.jobOfLease(token)
	if j == nil {
		return
	}
	h.log.Info("a worker refused a task", append(j.deliveryFields(), zap.String("reason", reason))...)
	h.refuseJob(j, s, reason, delay)
	h.offerOldestTo(s)
}

// refuseJob gives a task that a worker does not want to others. mu is held.
func (h *Hub) refuseJob(j *job, s *Session, reason string, delay time.Duration) {
	j.nacks++
	if j.nacks >= h.opts.MaxNacks {
		h.finishJob(j, nodeFailure("Refused", "workers refused the task too often; the last one said: "+reason))
		return
	}
	if j.refusedBy == nil {
		j.refusedBy = make(map[*Session]struct{})
	}
	j.refusedBy[s] = struct{}{}
	s.capacity.recentRefusals++
	delay = min(max(delay, 10*time.Millisecond), time.Minute)
	time.AfterFunc(delay, h.containPanics(func() {
		h.mu.Lock()
		defer h.unlockAndNotify()
		delete(j.refusedBy, s)
		if s.capacity.recentRefusals--; s.capacity.recentRefusals == maxRecentRefusals-1 {
			h.offerOldestTo(s)
		}
		h.dispatchJob(j)
	}))
	h.requeueJob(j)
}

// HandleGoodbye says that the worker takes nothing new, and gives back what it
// releases. What has not left for it goes to others, too.
func (s *Session) HandleGoodbye(released []string, reason string) {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndNotify()
	if !s.recordSignOfLife() {
		return
	}
	h.log.Info("a worker is leaving", zap.String("worker", s.hello.Worker), zap.String("reason", reason))
	s.isLeaving = true
	for _, token := range released {
		if j := s.capacity.jobs[token]; j != nil {
			h.requeueJob(j)
		}
	}
	for _, j := range sortedByAge(s.unsentJobs()) {
		if s.outbox.removeTask(j.token) {
			h.requeueJob(j)
		}
	}
	for r := range h.queue.Routes() {
		h.noticeUnserved(r)
	}
	h.publishCapabilities()
}

// sortedByAge lists tasks, the oldest first.
func sortedByAge(jobs map[string]*job) []*job {
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return int(a.order) - int(b.order) })
}
