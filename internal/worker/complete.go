package worker

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Completion is how a task ended, in the words of its worker.
type Completion struct {
	Token   string
	Result  pregel.Result
	Refused bool               // the worker does not have the node; Result says why
	Events  []runtime.Emission // the last ones
	Dropped uint64
	Emitted uint64 // sent on the stream
	Next    bool   // the worker waits a moment for another task
	Bytes   int    // of all that
}

// Receipt is the answer to a completion.
type Receipt struct {
	Duplicate bool        // the lease had its result already
	Next      *Assignment // another task for the worker, nil for none
}

// Complete takes the result of a task. The error is an *runtime.Error:
// TASK_LEASE_LOST, or WAIT_TIMEOUT when the call should be repeated.
func (h *Hub) Complete(ctx context.Context, c Completion) (Receipt, error) {
	if r, known := h.again(c); known {
		return r, nil
	}
	for {
		r, over, err := h.tryComplete(ctx, c)
		if over {
			return r, err
		}
	}
}

// tryComplete takes the result for the task as it is asked for now. It reports
// false when the run has gone elsewhere meanwhile and may come back.
func (h *Hub) tryComplete(ctx context.Context, c Completion) (r Receipt, over bool, err error) {
	j, err := h.find(ctx, c.Token)
	if err != nil {
		if r, known := h.again(c); known {
			return r, true, nil
		}
		return Receipt{}, true, err
	}
	if j.lent {
		return Receipt{}, true, leaseLost(j.task.ID)
	}
	if c.Emitted > 0 && h.connected(j) {
		j.lane.await(ctx, c.Emitted)
	}
	j.lane.admit(ctx.Done(), c.Events)
	s, waiting, taken := h.settle(j, c)
	switch {
	case taken && waiting != nil:
		return Receipt{Next: h.following(ctx, s, waiting)}, true, nil
	case taken:
		return Receipt{}, true, nil
	}
	if r, known := h.again(c); known {
		return r, true, nil
	}
	return Receipt{}, h.standing(j, c.Token) == lost, leaseLost(j.task.ID)
}

// connected reports whether events of a task may still be on their way: they
// don't outlive the stream that they were sent on.
func (h *Hub) connected(j *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return j.session != nil
}

// again answers a completion whose result was taken before, with the task that
// it was answered with then, as long as nothing was heard of it.
func (h *Hub) again(c Completion) (Receipt, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settled.has(c.Token) {
		return Receipt{}, false
	}
	r := Receipt{Duplicate: true}
	if !c.Next {
		return r, true
	}
	for _, j := range h.jobs {
		if j.via == c.Token && j.stage == offered && !j.last {
			a := j.assignment(h.opts.LeaseTTL)
			r.Next, j.byCall = &a, true
		}
	}
	return r, true
}

// settle ends a task with what its worker says, unless the lease is lost.
func (h *Hub) settle(j *job, c Completion) (s *Session, waiting *parked, taken bool) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.jobs[c.Token] != j {
		return nil, nil, false
	}
	s = j.session
	if c.Next && s != nil && !c.Refused {
		waiting = &parked{token: c.Token, thread: j.task.Thread, task: make(chan Assignment, 1)}
	}
	h.conclude(j, c, waiting)
	return s, waiting, true
}

// conclude ends a task with what its worker says. waiting, if set, is to be
// given what follows. mu is held.
func (h *Hub) conclude(j *job, c Completion, waiting *parked) {
	s := j.session
	switch {
	case c.Refused && s != nil:
		h.refuse(j, s, c.Result.Failure.Message, 0)
	case c.Refused:
		h.requeue(j)
	default:
		if _, flooded := j.lane.put(c.Events, c.Dropped); flooded {
			c.Result = FloodFailure()
		}
		h.finish(j, c.Result)
		if waiting != nil {
			s.parked = append(s.parked, waiting)
		}
	}
	if s != nil {
		h.offerTo(s)
	}
}

// Complete takes a result that came on the stream, as Hub.Complete does, and
// answers on the stream. It does not wait: what has to is done beside the
// stream.
func (s *Session) Complete(ctx context.Context, c Completion) {
	if s.completeNow(c) {
		return
	}
	if !s.hub.holdResult(c) {
		s.reply(Reply{Token: c.Token, Err: runtime.Errorf(runtime.ReasonTooManyRequests,
			"the server holds as many bytes of results that wait as it may, %d; call CompleteTask", s.hub.opts.Results).Beyond("max-waiting-results", s.hub.opts.Results, 0)})
		return
	}
	go contain.Func(func() {
		defer s.hub.dropResult(c)
		r, err := s.hub.Complete(ctx, c)
		s.reply(Reply{Token: c.Token, Receipt: r, Err: err})
	}, func(p *contain.PanicError) {
		s.hub.log.Error("taking a result panicked", p.Fields()...)
		s.reply(Reply{Token: c.Token, Err: runtime.Errorf(runtime.ReasonInternal, "the result could not be taken").Because(p)})
	})()
}

// holdResult counts a result that waits beside its stream, if there is room.
func (h *Hub) holdResult(c Completion) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.results > 0 && h.results+int64(c.Bytes) > h.opts.Results {
		return false
	}
	h.results += int64(c.Bytes) + resultOverhead
	return true
}

func (h *Hub) dropResult(c Completion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.results -= int64(c.Bytes) + resultOverhead
}

// resultOverhead is about how many bytes a result takes that waits, besides its own.
const resultOverhead = 8 << 10

// reply answers on the stream.
func (s *Session) reply(r Reply) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.send(r)
}

// completeNow takes the result of a task that this session has, if there is
// nothing to wait for but the next task.
func (s *Session) completeNow(c Completion) bool {
	h := s.hub
	h.mu.Lock()
	defer h.unlockAndTell()
	j := s.jobs[c.Token]
	if j == nil || c.Emitted > 0 || mustKeep(c.Events) && j.lane.room() != nil {
		return false
	}
	if !c.Next || c.Refused {
		h.conclude(j, c, nil)
		s.send(Reply{Token: c.Token})
		return true
	}
	p := &parked{token: c.Token, thread: j.task.Thread}
	p.timer = time.AfterFunc(nextWithin, h.contained(func() { s.nothingFollows(p) }))
	h.conclude(j, c, p)
	return true
}

// nothingFollows answers a result whose worker has waited long enough.
func (s *Session) nothingFollows(p *parked) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.unpark(p) {
		s.send(Reply{Token: p.token})
	}
}

// unpark takes a waiting call out. It reports false when the call has been
// given a task. mu is held.
func (s *Session) unpark(p *parked) bool {
	at := slices.Index(s.parked, p)
	if at < 0 {
		return false
	}
	s.parked = slices.Delete(s.parked, at, at+1)
	return true
}

// parked is a call of a worker that has handed over a result and can take
// another task with the answer. That saves the task the way over the stream.
type parked struct {
	token  string // of the lease whose result it brought
	thread string
	task   chan Assignment // takes one; nil for a result that came on the stream
	timer  *time.Timer     // ends the waiting of such a result
}

// nextWithin is how long a call waits for another task: about as long as a
// superstep takes to be stored. It keeps nothing from being done, because what
// the worker is given meanwhile goes to the calls that wait.
const nextWithin = 20 * time.Millisecond

// give hands a task to a call that waits for one, or else sends it on the
// stream. mu is held.
func (s *Session) give(j *job, a Assignment) {
	last := len(s.parked) - 1
	if last < 0 {
		j.via, j.byCall = "", false
		s.send(a)
		return
	}
	p := s.parked[last]
	s.parked[last] = nil
	s.parked = s.parked[:last]
	j.via, j.byCall = p.token, p.task != nil
	if p.task == nil {
		p.timer.Stop()
		s.send(Reply{Token: p.token, Receipt: Receipt{Next: &a}})
		return
	}
	p.task <- a
}

// awaits reports whether a call that has just ended a task of the thread waits
// for another. mu is held.
func (s *Session) awaits(thread string) bool {
	return slices.ContainsFunc(s.parked, func(p *parked) bool { return p.thread == thread })
}

// before reports whether a task is better given to s than to other. mu is held.
func (s *Session) before(other *Session, j *job) bool {
	if mine, theirs := s.awaits(j.task.Thread), other.awaits(j.task.Thread); mine != theirs {
		return mine
	}
	return s.free() > other.free()
}

// following waits a moment for the task that follows. One that was given to a
// call whose caller has gone is not lost: it goes to whoever repeats the call,
// or to another worker when the lease ends.
func (h *Hub) following(ctx context.Context, s *Session, p *parked) *Assignment {
	timer := time.NewTimer(nextWithin)
	defer timer.Stop()
	select {
	case a := <-p.task:
		return &a
	case <-timer.C:
	case <-s.ended:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.unpark(p)
	select {
	case a := <-p.task:
		if h.jobs[a.Token] != nil {
			return &a
		}
	default:
	}
	return nil
}
