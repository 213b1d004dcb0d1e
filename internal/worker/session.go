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

// Served is what a worker runs: a node of a graph; an empty version or node
// means all of them.
type Served struct{ Graph, Version, Node string }

// Hello is how a worker introduces itself.
type Hello struct {
	Worker string // unique per start of the process
	Build  string
	Serves []Served
	Held   []string // leases of tasks that it still runs
	Labels map[string]string
	Credit Credit
}

// Credit is how many tasks a worker takes at the same time.
type Credit struct {
	Total    int
	PerNode  map[string]int // by "graph/node"
	Revision uint64
}

// Welcome is what the hub grants.
type Welcome struct {
	Session  string
	Beat     time.Duration
	LeaseTTL time.Duration
	Renewed  []string
	Lost     []string
}

// Message is something to be sent to a worker: an Assignment, Cancel, Ack,
// Drain, Throttle or Reply.
type Message interface{ message() }

// Assignment is a task to run.
type Assignment struct {
	Token    string
	TTL      time.Duration
	Delivery int
	Timeout  time.Duration // left for the attempt, 0 = any time
	Task     *runtime.Task
}

// Cancel is a task to stop.
type Cancel struct {
	Token  string
	Reason string
	Grace  time.Duration
}

// Ack answers a beat.
type Ack struct {
	Number uint64
	Lost   []string
}

// Drain says that the server is about to leave.
type Drain struct {
	Left   time.Duration
	Reason string
}

// Throttle says that emits were dropped.
type Throttle struct {
	MinInterval time.Duration
	Dropped     uint64
}

// Reply answers a Completion that came on the stream.
type Reply struct {
	Token   string
	Receipt Receipt
	Err     error // a *runtime.Error; the completion was not taken
}

func (Assignment) message() {}
func (Cancel) message()     {}
func (Ack) message()        {}
func (Drain) message()      {}
func (Throttle) message()   {}
func (Reply) message()      {}

// Session is one stream of one worker. What follows hello is guarded by the
// hub's mu.
type Session struct {
	hub   *Hub
	id    string
	hello Hello

	credit    Credit
	jobs      map[string]*job // by lease: offered, or started
	out       []Message
	parked    []*parked     // calls that wait for another task, the latest last
	wake      chan struct{} // takes one
	ended     chan struct{}
	cause     error // why it has ended
	leaving   bool
	silence   *time.Timer
	heard     time.Time
	dropped   uint64 // emits since the last throttle
	throttled time.Time
}

// silentBeats is how many beats may fail to come before a stream counts as dead.
const silentBeats = 3

// errGone says that the stream of a session is closed already.
var errGone = errors.New("the session has ended")

// Open begins a session. An older one of the same worker is ended. The error
// is an *runtime.Error.
func (h *Hub) Open(hello Hello) (*Session, Welcome, error) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.draining {
		return nil, Welcome{}, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one")
	}
	s := &Session{
		hub: h, id: uuid.NewString(), hello: hello, credit: hello.Credit,
		jobs: make(map[string]*job), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		heard: time.Now(),
	}
	older := h.sessions[hello.Worker]
	h.sessions[hello.Worker] = s
	s.silence = time.AfterFunc(silentBeats*h.opts.Beat, s.silent)
	w := Welcome{Session: s.id, Beat: h.opts.Beat, LeaseTTL: h.opts.LeaseTTL}
	for _, token := range hello.Held {
		if h.keep(s, token) {
			w.Renewed = append(w.Renewed, token)
		} else {
			w.Lost = append(w.Lost, token)
		}
	}
	if older != nil {
		h.replace(older)
	}
	h.offerTo(s)
	h.log.Info("worker connected", zap.String("worker", hello.Worker), zap.String("session", s.id),
		zap.String("build", hello.Build), zap.Int("kept", len(w.Renewed)), zap.Int("lost", len(w.Lost)))
	return s, w, nil
}

// replace ends a session whose worker has connected anew. What the worker did
// not say that it still holds goes back at once. mu is held.
func (h *Hub) replace(older *Session) {
	older.finish(runtime.Errorf(runtime.ReasonWorkerReplaced,
		"worker %q has connected again; this stream is closed", older.hello.Worker).With("workerId", older.hello.Worker))
	for _, j := range sorted(older.jobs) {
		h.requeue(j)
	}
}

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
	return m, nil
}

// send puts a message into the line to the worker. mu is held.
func (s *Session) send(m Message) {
	if s.cause != nil {
		return
	}
	s.out = append(s.out, m)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// holdsBack reports whether an assignment has not left yet. mu is held.
func (s *Session) holdsBack(token string) bool { return s.waiting(token) >= 0 }

func (s *Session) waiting(token string) int {
	return slices.IndexFunc(s.out, func(m Message) bool {
		a, ok := m.(Assignment)
		return ok && a.Token == token
	})
}

// unsend takes back an assignment that has not left yet. mu is held.
func (s *Session) unsend(token string) bool {
	at := s.waiting(token)
	if at < 0 {
		return false
	}
	s.out = slices.Delete(slices.Clone(s.out), at, at+1)
	return true
}

// finish ends the session for a reason. mu is held.
func (s *Session) finish(cause error) {
	if s.cause != nil {
		return
	}
	s.cause = cause
	s.silence.Stop()
	close(s.ended)
}

// Close says that the stream is closed. Tasks that were offered and not begun
// go to others at once; begun ones, and those that are to be stopped, wait for
// the worker until their lease ends.
func (s *Session) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.sessions[s.hello.Worker] == s {
		delete(h.sessions, s.hello.Worker)
	}
	s.finish(errGone)
	for _, j := range sorted(s.jobs) {
		if j.stage == offered && !j.last {
			h.requeue(j)
		} else {
			delete(s.jobs, j.token)
			j.session = nil
		}
	}
	for r := range h.queues {
		h.notice(r)
	}
}

// silent ends a session whose worker has not been heard of for three beats.
func (s *Session) silent() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.log.Warn("a worker has gone silent", zap.String("worker", s.hello.Worker), zap.String("session", s.id))
	s.finish(runtime.Errorf(runtime.ReasonWorkerSilent, "nothing was heard for %d beats of %s; connect again",
		silentBeats, s.hub.opts.Beat).With("workerId", s.hello.Worker))
}

// touch notes that the worker is alive. It reports false when the session has
// ended. mu is held.
func (s *Session) touch() bool {
	if s.cause != nil {
		return false
	}
	s.heard = time.Now()
	s.silence.Reset(silentBeats * s.hub.opts.Beat)
	return true
}

// Credit sets how much the worker takes. An older one than the last is ignored.
func (s *Session) Credit(c Credit) {
	s.hub.mu.Lock()
	defer s.hub.unlockAndTell()
	if !s.touch() || c.Revision < s.credit.Revision {
		return
	}
	s.credit = c
	s.hub.offerTo(s)
}

// Beat prolongs the leases of the tasks that the worker says it holds.
func (s *Session) Beat(number uint64, running []string) {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	if !s.touch() {
		return
	}
	ack := Ack{Number: number}
	for _, token := range running {
		if !h.keep(s, token) {
			ack.Lost = append(ack.Lost, token)
		}
	}
	s.send(ack)
}

// keep prolongs a lease for its worker, which has begun the task. It reports
// false when the lease is lost. mu is held.
func (h *Hub) keep(s *Session, token string) bool {
	j := h.jobs[token]
	if j == nil {
		return h.hold(s, token)
	}
	if j.lent {
		return false
	}
	if j.session != s {
		if j.session != nil {
			delete(j.session.jobs, token)
		}
		j.session = s
		s.jobs[token] = j
	}
	j.stage = started
	h.renew(j)
	return true
}

// Alive notes that a task has begun or is still worked on.
func (s *Session) Alive(token string) {
	s.hub.mu.Lock()
	j := s.own(token)
	if j != nil {
		j.stage = started
		s.hub.renew(j)
	}
	s.hub.unlockAndTell()
	if j != nil && j.task.Host != nil {
		j.task.Host.Alive()
	}
}

// own returns the task of a lease that this session holds, and notes that the
// worker is alive. mu is held.
func (s *Session) own(token string) *job {
	if !s.touch() {
		return nil
	}
	return s.jobs[token]
}

// Emit hands on events of a task. It never blocks: what the run cannot take in
// time is dropped, and the worker is told to send less.
func (s *Session) Emit(token string, events []runtime.Emission, dropped uint64) {
	s.hub.mu.Lock()
	j := s.own(token)
	if j != nil {
		j.stage = started
	}
	s.hub.unlockAndTell()
	if j == nil {
		return
	}
	lost, flooded := j.lane.put(events, dropped)
	if lost == 0 && !flooded {
		return
	}
	s.hub.mu.Lock()
	defer s.hub.unlockAndTell()
	if flooded {
		s.hub.finish(j, floodFailure())
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
	delay = min(max(delay, 10*time.Millisecond), time.Minute)
	time.AfterFunc(delay, func() {
		h.mu.Lock()
		defer h.unlockAndTell()
		delete(j.avoid, s)
		h.dispatch(j.route)
	})
	h.requeue(j)
}

// Goodbye says that the worker takes nothing new, and gives back what it
// releases.
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
	for r := range h.queues {
		h.notice(r)
	}
}

// serves reports whether the worker runs tasks of a route. A reducer belongs
// to no node: who serves any node of the graph knows it.
func (s *Session) serves(r route) bool {
	return slices.ContainsFunc(s.hello.Serves, func(x Served) bool {
		return x.Graph == r.graph && (x.Version == "" || x.Version == r.version) &&
			(x.Node == "" || x.Node == r.node || r.node == "")
	})
}

// takes reports whether a task may be offered to the worker now.
func (s *Session) takes(j *job) bool {
	if s.leaving || s.cause != nil || s.free() <= 0 || !s.serves(j.route) {
		return false
	}
	if _, refused := j.avoid[s]; refused {
		return false
	}
	limit, ok := s.credit.PerNode[j.route.graph+"/"+j.route.node]
	return !ok || s.busy(j.route) < limit
}

func (s *Session) busy(r route) int {
	n := 0
	for _, j := range s.jobs {
		if j.blocked == 0 && j.route.graph == r.graph && j.route.node == r.node {
			n++
		}
	}
	return n
}

// free is how many more tasks the worker could take.
func (s *Session) free() int {
	if s.leaving || s.cause != nil {
		return 0
	}
	busy := 0
	for _, j := range s.jobs {
		if j.blocked == 0 {
			busy++
		}
	}
	return s.credit.Total - busy
}

func (s *Session) describe() runtime.Worker {
	w := runtime.Worker{
		ID: s.hello.Worker, Slots: s.credit.Total, Free: max(s.free(), 0), Beat: s.heard,
		Labels: maps.Clone(s.hello.Labels), Draining: s.leaving, Build: s.hello.Build,
	}
	for _, x := range s.hello.Serves {
		node := x.Node
		if node == "" {
			node = "*"
		}
		w.Nodes = append(w.Nodes, x.Graph+"/"+node)
	}
	slices.Sort(w.Nodes)
	w.Nodes = slices.Compact(w.Nodes)
	return w
}

// sorted lists tasks, the oldest first.
func sorted(jobs map[string]*job) []*job {
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return int(a.order) - int(b.order) })
}
