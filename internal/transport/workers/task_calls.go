package workers

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// CompleteTask records the result of a task. Errors: those of Validator.Err,
// TASK_LEASE_LOST, and WAIT_TIMEOUT.
func (s *Service) CompleteTask(
	ctx context.Context, req *graphdv1.CompleteTaskRequest,
) (*graphdv1.CompleteTaskResponse, error) {
	v := s.newValidator(ctx)
	c := s.completionFromProto(v, "", req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, c.Token); err != nil {
		return nil, err
	}
	receipt, err := s.hub.CompleteTask(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.receiptToProto(receipt, false), nil
}

func (s *Service) completionFromProto(v *wire.Validator, at string, req *graphdv1.CompleteTaskRequest) worker.Completion {
	c := worker.Completion{
		Token: wire.LeaseTokenFromProto(v, at+"lease_token", req.GetLeaseToken()), EventsOnStream: req.GetEmitted(), WantsNext: req.GetTakeNext(),
	}
	if v.Err() == nil {
		c.Result, c.IsRefused = wire.TaskResultFromProto(s.limits, req.GetResult())
		c.Events, c.DroppedEvents = wire.EmissionsFromProto(s.limits, req.GetEmit())
	}
	return c
}

// receiptToProto converts the answer to a result. isOrdered is true when it goes on the stream of
// the worker.
func (s *Service) receiptToProto(r worker.Receipt, isOrdered bool) *graphdv1.CompleteTaskResponse {
	return &graphdv1.CompleteTaskResponse{Duplicate: r.IsDuplicate, Next: s.assignmentOrFail(r.Next, isOrdered)}
}

// messageToProto converts a message to a worker. It returns nil for a task that
// can't be sent, and fails that task.
func (s *Service) messageToProto(m worker.Message) *graphdv1.ConnectResponse {
	switch m := m.(type) {
	case worker.Assignment:
		if task := s.assignmentOrFail(&m, true); task != nil {
			return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Task{Task: task}}
		}
		return nil
	case worker.CompletionReply:
		out := &graphdv1.Completed{LeaseToken: []byte(m.Token)}
		if m.Err != nil {
			out.Reason, out.Message = errorToProto(m.Err)
		} else {
			out.Response = s.receiptToProto(m.Receipt, true)
		}
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Completed{Completed: out}}
	}
	return wire.ControlMessageToProto(m)
}

// errorToProto returns the name and the message of an error.
func errorToProto(err error) (name, message string) {
	if refused := reason.ToClientError(err); refused != nil {
		return refused.Reason, refused.Message
	}
	return runtime.ReasonInternal, "the result could not be taken; call CompleteTask"
}

// assignmentOrFail converts the next task of a worker. It fails a task that is too
// large to send, and returns nil.
func (s *Service) assignmentOrFail(a *worker.Assignment, isOrdered bool) *graphdv1.TaskAssignment {
	if a == nil {
		return nil
	}
	out, size := assignmentToProto(a, isOrdered)
	if size > s.maxMessageBytes {
		s.hub.FailTask(a.Token, wire.TooLargeTaskResult(size, s.maxMessageBytes))
		return nil
	}
	if isOrdered {
		noteKeptValues(a, out)
	}
	return out
}

// RecordMemo records the value of a memo. Errors: those of Validator.Err, and those
// of Hub.RecordMemo.
func (s *Service) RecordMemo(
	ctx context.Context, req *graphdv1.RecordMemoRequest,
) (*graphdv1.RecordMemoResponse, error) {
	v := s.newValidator(ctx)
	token := wire.LeaseTokenFromProto(v, "lease_token", req.GetLeaseToken())
	v.RequireSet("key", req.GetKey() != "")
	v.RequireSet("value", req.GetValue() != nil)
	memo := checkpoint.Memo{
		Scope: v.CheckName("scope", req.GetScope()), Key: v.CheckName("key", req.GetKey()), Index: int(req.GetIndex()),
		Value: v.ConvertPayload("value", req.GetValue()),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, token); err != nil {
		return nil, err
	}
	value, existed, err := s.hub.RecordMemo(ctx, token, memo)
	if err != nil {
		return nil, err
	}
	return &graphdv1.RecordMemoResponse{Value: wire.JSONToProto(value), Existed: existed}, nil
}

// CallGraph runs a graph inside a task. Errors: those of Validator.Err, ACCESS_DENIED for a
// graph that the caller may not serve, and those of Hub.CallGraph.
func (s *Service) CallGraph(
	ctx context.Context, req *graphdv1.CallGraphRequest,
) (*graphdv1.CallGraphResponse, error) {
	v := s.newValidator(ctx)
	token := wire.LeaseTokenFromProto(v, "lease_token", req.GetLeaseToken())
	v.RequireSet("graph", req.GetGraph() != "")
	call := runtime.GraphCall{
		Index: v.ConvertLimit("call_index", req.GetCallIndex()),
		Graph: v.CheckGraphName("graph", req.GetGraph()), Version: v.CheckName("graph_version", req.GetGraphVersion()),
		Input:           v.ConvertPayload("input", req.GetInput()),
		InterruptBefore: v.CheckNames("interrupt_before", req.GetInterruptBefore()),
		InterruptAfter:  v.CheckNames("interrupt_after", req.GetInterruptAfter()), Persistence: wire.PersistenceFromProto(req.GetPersistence()),
		Context: v.ConvertPayload("context", req.GetContext()), StepLimit: v.ConvertLimit("step_limit", req.GetStepLimit()),
	}
	if call.Input == "" && call.Persistence != wire.PersistencePersist {
		v.RequireSet("input", false)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, token); err != nil {
		return nil, err
	}
	// The lease gives the task, and not every graph of the tenant.
	if err := s.access.CheckGraph(ctx, graphdv1.WorkerService_CallGraph_FullMethodName, call.Graph); err != nil {
		return nil, err
	}
	r, err := s.hub.CallGraph(ctx, token, call)
	if err != nil {
		return nil, err
	}
	return wire.CallResultToProto(r), nil
}
