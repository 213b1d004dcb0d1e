package worker

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/inbox"
	"github.com/graphd-dev/graphd/internal/worker/kept"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/outbox"
	"github.com/graphd-dev/graphd/internal/worker/profile"
)

// Session is one stream of one worker. The dispatcher's mu guards the fields
// after outbox.
type Session struct {
	hub        *Hub
	dispatcher *dispatcher
	id         string
	outbox     *outbox.Outbox
	profile    *profile.Profile[Session]
	kept       *kept.Table // of values that the worker has been sent, nil = it keeps none

	capacity         capacity
	waitingCalls     outbox.WaitingCalls // for another task
	replyTimer       *time.Timer         // answers those of the stream that get none; nil before the first
	isReplyScheduled bool                // that timer runs
	hasEnded         bool
	silenceTimer     *time.Timer
	lastHeard        time.Time
	heldUp           time.Duration // time for which events have blocked the stream since the last heartbeat
	droppedEvents    uint64        // emits since the last throttle
	lastThrottle     time.Time
}

// maxMissedHeartbeats is the number of missed heartbeats from which a stream
// counts as dead.
const maxMissedHeartbeats = 3

// errSessionEnded refuses a call to a session whose stream is closed.
var errSessionEnded = errors.New("the session has ended")

// NumberHello returns the number of a hello that has come now. Those that come later
// have greater ones.
func (h *Hub) NumberHello() uint64 { return h.helloCount.Add(1) }

// OpenSession begins a session, and ends an older session of the same worker. The
// error is a *runtime.Error.
func (h *Hub) OpenSession(hello message.Hello) (*Session, message.Welcome, error) {
	d := h.dispatcher
	held, forged := d.signer.ParseTokens(hello.HeldLeases, holderOf(&hello))
	s := &Session{
		hub: h, dispatcher: d, id: uuid.NewString(), outbox: outbox.NewOutbox(&h.unreadBytes), lastHeard: time.Now(),
		kept: kept.NewTable(min(hello.KeptBytes, h.opts.MaxKeptBytes), &d.keptCounts),
	}
	s.profile = profile.New(s, hello)
	s.capacity = capacity{session: s, jobs: make(map[string]*job)}
	w := message.Welcome{SessionID: s.id, HeartbeatInterval: h.opts.HeartbeatInterval, LeaseTTL: h.opts.LeaseTTL, LostLeases: forged}
	var err error
	notices := d.runLocked(func() (list []notice) {
		list, err = s.beginSession(&w, held)
		return list
	})
	if err != nil {
		return nil, message.Welcome{}, err
	}
	h.capabilities.PublishCapabilities()
	sendNotices(h.log, notices)
	h.log.Info("worker connected", zap.String("worker", hello.Worker), zap.String("session", s.id),
		zap.String("build", hello.BuildID), zap.Int("kept", len(w.RenewedLeases)), zap.Int("lost", len(w.LostLeases)))
	return s, w, nil
}

// beginSession admits the worker in place of its older session, decides about the
// leases that it holds, and offers it tasks. mu is held.
func (s *Session) beginSession(w *message.Welcome, held []lease.Lease) ([]notice, error) {
	d := s.dispatcher
	if d.placement.isDraining {
		return nil, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one")
	}
	hello := &s.profile.Hello
	if newer := d.profiles.FindProfile(hello.Worker); newer != nil && hello.Number < newer.Hello.Number {
		return nil, replacedError(hello.Worker) // this hello does not know what the newer stream was given
	}
	if err := d.checkWorkerID(hello); err != nil {
		return nil, err
	}
	replaced, err := d.profiles.AddProfile(s.profile)
	if err != nil {
		return nil, err
	}
	s.silenceTimer = time.AfterFunc(maxMissedHeartbeats*s.hub.opts.HeartbeatInterval, d.containPanics(s.endSilentSession))
	list := s.claimHeldLeases(w, held)
	if replaced != nil {
		older := replaced.Session
		older.endSession(replacedError(replaced.Hello.Worker))
		list = append(list, d.releaseJobs(older)...)
		d.reclaims.RejectOf(older)
	}
	list = append(list, d.requeueDetached(s)...)
	d.unserved.clearStranded(s)
	d.offerOldestTo(s)
	return list, nil
}

// checkWorkerID refuses the id of a worker of another principal that is connected, or
// awaited because it holds leases. mu is held.
func (d *dispatcher) checkWorkerID(hello *message.Hello) error {
	known := d.profiles.FindProfile(hello.Worker)
	isTaken := known != nil && known.Hello.Principal != hello.Principal
	for _, j := range d.awaited.detachedOf(hello.Worker) {
		isTaken = isTaken || !j.lease.IsOf(holderOf(hello))
	}
	if !isTaken {
		return nil
	}
	return runtime.Errorf(runtime.ReasonWorkerIDTaken, "worker %q belongs to another principal; choose another id", tenant.ClientName(hello.Worker)).
		With("workerId", tenant.ClientName(hello.Worker))
}

// holderOf returns who holds the leases of a worker.
func holderOf(hello *message.Hello) lease.Holder {
	owner, _ := tenant.Split(hello.Worker)
	return lease.Holder{Tenant: owner, Principal: hello.Principal}
}

func replacedError(worker string) *runtime.Error {
	worker = tenant.ClientName(worker)
	return runtime.Errorf(runtime.ReasonWorkerReplaced, "worker %q has connected again; this stream is closed", worker).With("workerId", worker)
}

// claimHeldLeases decides about the leases that the worker holds. mu is held.
func (s *Session) claimHeldLeases(w *message.Welcome, held []lease.Lease) []notice {
	var list []notice
	for _, l := range held {
		c, more := s.dispatcher.claimLease(s, l)
		list = append(list, more...)
		switch c {
		case claimLost:
			w.LostLeases = append(w.LostLeases, l.Token)
			continue
		case claimUndecided:
			w.UndecidedLeases = append(w.UndecidedLeases, l.Token)
		case claimGranted:
		}
		w.RenewedLeases = append(w.RenewedLeases, l.Token)
	}
	return list
}

// Ended returns a channel that is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.outbox.EndSignal() }

// ID returns the id of the session, for logs.
func (s *Session) ID() string { return s.id }

// NextMessage waits for the next message to the worker. The error is the cause
// with which the session has ended, or that of ctx.
func (s *Session) NextMessage(ctx context.Context) (message.Message, error) {
	return s.outbox.WaitForMessage(ctx)
}

// PollMessage returns the next message to the worker if one waits, nil without one.
func (s *Session) PollMessage() message.Message { return s.outbox.PollMessage() }

// endSession ends the session for a reason. mu is held.
func (s *Session) endSession(cause error) {
	if s.hasEnded {
		return
	}
	s.hasEnded = true
	s.silenceTimer.Stop()
	if s.replyTimer != nil {
		s.replyTimer.Stop()
	}
	s.dispatcher.profiles.ReleaseBytes(s.profile)
	s.outbox.EndDelivery(cause)
}

// Close ends the session because its stream is closed. Tasks that were not sent
// to the worker go to other workers at once. The other tasks wait for the
// worker until their leases end, also those of which no start is known.
func (s *Session) Close() {
	d := s.dispatcher
	notices := d.runLocked(func() []notice {
		d.profiles.RemoveProfile(s.profile)
		s.endSession(errSessionEnded)
		d.reclaims.Detach(s, s.hub.opts.LeaseTTL)
		return append(d.releaseJobs(s), d.unserved.noticeAll(false)...)
	})
	s.hub.capabilities.PublishCapabilities()
	sendNotices(s.hub.log, notices)
}

// HandleEvents queues events of a task. It drops ephemeral events that the run does
// not take in time, and throttles the worker. For durable events it waits while the
// budget is used up, at most one heartbeat interval between two heartbeats of the
// worker. The leases of the worker depend on its heartbeats, which follow the events
// on the stream.
func (s *Session) HandleEvents(token string, events []runtime.Emission, dropped uint64) {
	j, timeout := s.jobOfEvents(token)
	if j == nil {
		return
	}
	if timeout > 0 && inbox.HasDurable(events) && j.events.RoomSignal() != nil {
		s.waitForEventRoom(j, timeout, events)
	}
	lost, flooded := j.events.AddEvents(events, dropped)
	if lost == 0 && !flooded {
		return
	}
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	if flooded {
		s.dispatcher.finishJob(j, EmitFloodFailure())
		s.dispatcher.offerOldestTo(s)
	}
	s.throttleWorker(lost)
}

// jobOfEvents returns the task that events are of, nil for none, and how long they
// may hold up the stream.
func (s *Session) jobOfEvents(token string) (*job, time.Duration) {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	j := s.jobOfLease(token)
	if j != nil {
		j.stage = stageStarted
	}
	return j, s.hub.opts.HeartbeatInterval - s.heldUp
}

// waitForEventRoom blocks the stream until there is room for events of a task.
func (s *Session) waitForEventRoom(j *job, timeout time.Duration, events []runtime.Emission) {
	began, late := time.Now(), make(chan struct{})
	timer := time.AfterFunc(timeout, s.dispatcher.containPanics(func() { close(late) }))
	j.events.WaitForRoom(late, events)
	timer.Stop()
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	s.heldUp += time.Since(began)
}

// throttleWorker reports dropped events to the worker, at most once a second. mu is
// held.
func (s *Session) throttleWorker(lost uint64) {
	const every = time.Second
	s.droppedEvents += lost
	if s.droppedEvents == 0 || time.Since(s.lastThrottle) < every {
		return
	}
	s.outbox.AddMessage(message.ThrottleNotice{MinInterval: 100 * time.Millisecond, DroppedEvents: s.droppedEvents})
	s.droppedEvents, s.lastThrottle = 0, time.Now()
}

// HandleNack takes back a task that the worker did not begin. Other workers may get
// it at once, this worker after delay. A worker that lacks values which it should have
// kept gets the task again at once, with all values.
func (s *Session) HandleNack(token, reason string, delay time.Duration, missing []kept.Digest) {
	d := s.dispatcher
	s.kept.RemoveValues(missing)
	d.updateState(func() []notice {
		j := s.jobOfLease(token)
		if j == nil {
			return nil
		}
		if len(missing) > 0 && !j.needsAllValues { // else it was sent all, and refuses all the same
			j.needsAllValues = true
			d.keptCounts.ResentTasks.Add(1)
			d.log.Debug("a worker lacks values of a task", append(j.deliveryFields(), zap.Int("missing", len(missing)))...)
			list := d.requeueJob(j)
			d.offerOldestTo(s) // another worker may get the task
			return list
		}
		d.log.Info("a worker refused a task", append(j.deliveryFields(), zap.String("reason", reason))...)
		list := d.refuseJob(j, s, reason, delay)
		d.offerOldestTo(s)
		return list
	})
}

// HandleGoodbye stops offers to the worker, and takes back the tasks that it
// releases. Tasks that were not sent to it go to other workers, too.
func (s *Session) HandleGoodbye(released []string, reason string) {
	d, isAlive := s.dispatcher, false
	notices := d.runLocked(func() []notice {
		if isAlive = s.recordSignOfLife(); !isAlive {
			return nil
		}
		d.log.Info("a worker is leaving", zap.String("worker", s.profile.Hello.Worker), zap.String("reason", reason))
		s.profile.IsLeaving = true
		return append(s.requeueReleased(released), d.unserved.noticeAll(false)...)
	})
	if isAlive {
		s.hub.capabilities.PublishCapabilities()
	}
	sendNotices(d.log, notices)
}

// requeueReleased requeues the tasks that the worker releases, and those that were
// not sent to it. mu is held.
func (s *Session) requeueReleased(released []string) []notice {
	var list []notice
	for _, token := range released {
		if j := s.capacity.jobs[token]; j != nil {
			list = append(list, s.dispatcher.requeueJob(j)...)
		}
	}
	for _, j := range sortedByAge(s.unsentJobs()) {
		if s.outbox.RemoveTask(j.token) {
			list = append(list, s.dispatcher.requeueJob(j)...)
		}
	}
	return list
}

// HandleStreamEnd records that the worker has closed its side of the stream in
// order, without losing a message. After a goodbye the worker begins no task any
// more, so tasks without a sign of life go to other workers.
func (s *Session) HandleStreamEnd() {
	s.dispatcher.updateState(func() []notice {
		var list []notice
		for _, j := range sortedByAge(s.capacity.jobs) {
			if s.profile.IsLeaving && j.stage == stageOffered && !j.isInCallAnswer {
				list = append(list, s.dispatcher.requeueJob(j)...)
			}
		}
		return list
	})
}

// unsentJobs lists the tasks that have not left for the worker yet, by lease. mu is
// held.
func (s *Session) unsentJobs() map[string]*job {
	jobs := make(map[string]*job)
	for _, token := range s.outbox.ListTasks() {
		if j := s.capacity.jobs[token]; j != nil {
			jobs[token] = j
		}
	}
	return jobs
}

// deliverAssignment gives a task to a waiting call, or else sends it on the
// stream. mu is held.
func (s *Session) deliverAssignment(j *job, a message.Assignment) {
	p := s.waitingCalls.TakeLatest()
	if p == nil {
		j.answeredLease, j.isInCallAnswer = "", false
		s.outbox.AddMessage(a)
		return
	}
	j.answeredLease, j.isInCallAnswer = p.CompletedLease, p.NextTask != nil
	if p.NextTask == nil {
		s.outbox.AddMessage(message.CompletionReply{Token: p.CompletedLease, Receipt: message.Receipt{Next: &a}})
		return
	}
	p.NextTask <- a
}
