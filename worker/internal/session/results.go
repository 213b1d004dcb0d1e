package session

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/worker/internal/task"
)

// featureComplete means that the server takes results on the stream.
const featureComplete = "complete"

// Bounds of the results that go on the stream, which saves a call for each. A larger one would hold
// the stream up, and events would hold up the results behind them.
const (
	maxStreamedBytes = 64 << 10
	quietTime        = time.Second // without events
)

// deliverResult hands over a result: on the stream while it is quiet, or else by a call.
func (s *Session) deliverResult(a *attempt, result *graphdv1.TaskResult) {
	size := proto.Size(result)
	s.mu.Lock()
	request := &graphdv1.CompleteTaskRequest{
		LeaseToken: a.token, Result: result, Emit: a.takeEvents(), Emitted: a.sent, TakeNext: !s.isDraining && s.stray == 0,
	}
	isStreamed := s.takesResults && !a.isLost && size+proto.Size(request.GetEmit()) <= maxStreamedBytes && time.Since(s.lastEmit) > quietTime
	if isStreamed {
		a.sentResult = request
		s.results = append(s.results, request)
	}
	s.mu.Unlock()
	if isStreamed {
		s.sendNow()
		return
	}
	s.deliverByCall(a, request)
}

// takeAnswer takes the answer to a result that went on the stream. A result that was not taken goes
// by a call, which tells for good.
func (s *Session) takeAnswer(c *graphdv1.Completed) {
	s.mu.Lock()
	a := s.attempts[string(c.GetLeaseToken())]
	if a == nil || a.sentResult == nil {
		s.mu.Unlock()
		return
	}
	request := a.sentResult
	a.sentResult = nil
	s.mu.Unlock()
	if c.GetReason() != "" {
		s.startDelivery(a, request)
		return
	}
	s.forgetAttempt(a)
	if next := c.GetResponse().GetNext(); next != nil {
		s.beginTask(next)
	}
}

// closeResults has the results that an ended stream did not answer go by calls.
func (s *Session) closeResults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takesResults, s.results = false, nil
	for _, a := range s.attempts {
		if request := a.sentResult; request != nil {
			a.sentResult = nil
			s.startDelivery(a, request)
		}
	}
}

// startDelivery hands over a result by a call, in the background.
func (s *Session) startDelivery(a *attempt, request *graphdv1.CompleteTaskRequest) {
	go contain.Func(func() { s.deliverByCall(a, request) }, contain.LogPanic(s.log, "a result could not be handed over"))()
}

// deliverByCall hands over a result, however long that takes, and begins the next task if the answer
// has one.
func (s *Session) deliverByCall(a *attempt, request *graphdv1.CompleteTaskRequest) {
	next := s.callWithResult(a, request)
	s.forgetAttempt(a)
	if next != nil {
		s.beginTask(next)
	}
}

// callWithResult returns the next task if the answer has one.
func (s *Session) callWithResult(a *attempt, request *graphdv1.CompleteTaskRequest) *graphdv1.TaskAssignment {
	response, err := callUntilAnswered(s, a, request, completeTask)
	if err == nil {
		return response.GetNext()
	}
	if errors.Is(err, ErrLost) || s.work.Err() != nil {
		s.log.Debug("the result of a task was not taken", zap.String("node", a.assignment.GetNode()), zap.Error(err))
		return nil
	}
	s.log.Error("the result of a task was not taken", zap.String("node", a.assignment.GetNode()), zap.Error(err))
	request = &graphdv1.CompleteTaskRequest{LeaseToken: a.token, Result: task.NotTaken(err)}
	if _, err := callUntilAnswered(s, a, request, completeTask); err != nil {
		s.log.Error("the failure of a task was not taken", zap.String("node", a.assignment.GetNode()), zap.Error(err))
	}
	return nil
}

func completeTask(ctx context.Context, c graphdv1.WorkerServiceClient, r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
	return c.CompleteTask(ctx, r, anySize())
}
