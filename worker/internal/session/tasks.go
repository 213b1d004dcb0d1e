package session

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/worker/internal/task"
)

// retryRefused is when the server may offer a refused task again.
const retryRefused = time.Second

// beginTask runs a task, or refuses it. A task that is here already goes on.
func (s *Session) beginTask(assignment *graphdv1.TaskAssignment) {
	token := assignment.GetLease().GetToken()
	code, isServed := s.o.Find(assignment)
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := s.kept.complete(assignment) // also of a task that is refused: the server counts on it
	if s.attempts[string(token)] != nil {
		return
	}
	switch {
	case s.isDraining:
		s.refuseTask(token, "the worker leaves")
		return
	case !isServed:
		s.refuseTask(token, fmt.Sprintf("the worker has no code for node %q, function %q of graph %q",
			assignment.GetNode(), assignment.GetFunction(), assignment.GetGraph()))
		return
	case len(s.attempts)+s.stray >= 2*s.o.Slots: // more than the credit: an answer may be under way for as many
		s.refuseTask(token, "the worker has no slot")
		return
	case len(missing) > 0:
		s.refusals = append(s.refusals, &graphdv1.Nack{LeaseToken: token, Reason: "values are missing", Missing: missing})
		s.wakeSender()
		return
	}
	a := &attempt{session: s, assignment: assignment, token: token, begun: time.Now()}
	a.held, a.drop = context.WithCancelCause(s.work)
	a.ctx, a.stop = context.WithCancelCause(a.held)
	s.attempts[string(token)] = a
	s.scheduleAnnouncement(announceAfter)
	go contain.Func(func() { s.runTask(a, code) }, contain.LogPanic(s.log, "a task could not be run"))()
}

// refuseTask gives a task back. The caller holds the lock. Refusals are as many as tasks that the
// server has sent, which are no more than the credit.
func (s *Session) refuseTask(token []byte, why string) {
	s.refusals = append(s.refusals, &graphdv1.Nack{LeaseToken: token, Reason: why, RetryDelay: durationpb.New(retryRefused)})
	s.wakeSender()
}

// runTask runs a task, and hands over its result.
func (s *Session) runTask(a *attempt, code task.Code) {
	s.mu.Lock()
	limits := s.terms.limits
	s.mu.Unlock()
	result := s.runner.Run(a.ctx, a.assignment, code, a, limits)
	s.mu.Lock()
	a.hasReturned = true
	isWanted := !a.isLost && !a.isReleased
	if a.isReleased && !a.isLost {
		s.released = append(s.released, a.token)
	}
	if a.isStopped && result.GetFailed() != nil {
		result = task.Cancelled("it ended with its context: " + result.GetFailed().GetMessage())
	}
	s.mu.Unlock()
	if !isWanted {
		s.forgetAttempt(a)
		return
	}
	s.logFailure(a.assignment, result.GetFailed())
	s.deliverResult(a, result)
}

func (s *Session) logFailure(a *graphdv1.TaskAssignment, f *graphdv1.TaskFailed) {
	if f == nil {
		return
	}
	s.log.Warn("a task has failed", zap.String("graph", a.GetGraph()), zap.String("node", a.GetNode()), zap.String("thread", a.GetThreadId()),
		zap.String("run", a.GetRunId()), zap.String("reason", f.GetType()), zap.String("message", f.GetMessage()), zap.String("stack", f.GetStack()))
}

// forgetAttempt lets go of a task that has ended.
func (s *Session) forgetAttempt(a *attempt) {
	a.drop(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[string(a.token)] == a {
		delete(s.attempts, string(a.token))
	} else {
		s.stray--
		s.revision++
		s.wakeSender()
	}
	s.announceChange()
}

// loseLease ends the attempt of a lost lease. Its function takes a slot as long as it runs. The
// caller holds the lock.
func (s *Session) loseLease(token []byte) {
	a := s.attempts[string(token)]
	if a == nil {
		return
	}
	a.lose()
	delete(s.attempts, string(token))
	if a.sentResult == nil {
		s.stray++
		s.revision++
		s.wakeSender()
	}
	s.announceChange()
}

// stopTask ends a task whose result the server does not wait for much longer. The caller holds the
// lock.
func (s *Session) stopTask(c *graphdv1.CancelTask) {
	if a := s.attempts[string(c.GetLeaseToken())]; a != nil {
		a.isStopped = true
		a.stop(s.o.Stopped(c.GetReason()))
	}
}
