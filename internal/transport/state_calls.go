package transport

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// GetState returns the state at a checkpoint. Errors: INVALID_FIELD,
// PAYLOAD_TOO_LARGE, and those of engine.Engine.State.
func (s *threadService) GetState(
	ctx context.Context, req *graphdv1.GetStateRequest,
) (*graphdv1.StateSnapshot, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	id, namespace := wire.CheckpointRefFromProto(v, "at", req.GetAt())
	q := runtime.StateRequest{
		Thread: v.CheckThread("thread_id", req.GetThreadId()), Namespace: namespace, Checkpoint: id,
		Keys: v.CheckNames("keys", req.GetKeys()), WithSubgraphs: req.GetSubgraphs(), MaxBytes: s.maxMessageBytes, Memory: interceptor.CallMemoryOf(ctx),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	state, err := s.engine.State(ctx, q)
	if err != nil {
		return nil, err
	}
	out := wire.SnapshotToProto(state)
	return out, s.checkAnswerSize(out, "ask for fewer keys")
}

// UpdateState writes to a state. Errors: those of Validator.Err, and those of
// engine.Engine.UpdateState.
func (s *threadService) UpdateState(
	ctx context.Context, req *graphdv1.UpdateStateRequest,
) (*graphdv1.StateSnapshot, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	update := wire.UpdateStateFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if update.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	update.By, update.Memory = callerNameOf(ctx), interceptor.CallMemoryOf(ctx)
	state, err := s.engine.UpdateState(ctx, update)
	if err != nil {
		return nil, err
	}
	return s.updatedState(state), nil
}

// BulkUpdateState writes several supersteps to a state. Errors: those of
// Validator.Err, and those of engine.Engine.BulkUpdateState.
func (s *threadService) BulkUpdateState(
	ctx context.Context, req *graphdv1.BulkUpdateStateRequest,
) (*graphdv1.StateSnapshot, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	update := wire.BulkUpdateStateFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if update.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	update.By, update.Memory = callerNameOf(ctx), interceptor.CallMemoryOf(ctx)
	state, err := s.engine.BulkUpdateState(ctx, update)
	if err != nil {
		return nil, err
	}
	return s.updatedState(state), nil
}

// updatedState returns the answer to an update. It leaves out values that are too
// large; a client reads them by keys.
func (s *threadService) updatedState(state runtime.Snapshot) *graphdv1.StateSnapshot {
	out := wire.SnapshotToProto(state)
	if proto.Size(out) > s.maxMessageBytes {
		out.Values = nil
	}
	return out
}

// ListCheckpoints lists the history of a namespace. Errors: INVALID_FIELD,
// INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, ctx's error, and those of
// engine.Engine.States.
func (s *threadService) ListCheckpoints(
	ctx context.Context, req *graphdv1.ListCheckpointsRequest,
) (*graphdv1.ListCheckpointsResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	size := listing.PageSize(v, req.GetPageSize())
	q := runtime.HistoryQuery{
		Thread:    v.CheckThread("thread_id", req.GetThreadId()),
		Namespace: wire.NamespaceFromProto(v, "namespace", req.GetNamespace()),
		Limit:     size, WithValues: req.GetIncludeValues(), MaxBytes: s.maxMessageBytes, Memory: interceptor.CallMemoryOf(ctx),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "checkpoints", q.Thread, q.Namespace)
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &q.Before); err != nil {
		return nil, err
	}
	leave, err := s.acquireReadSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	states, more, err := s.engine.States(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListCheckpointsResponse{}
	cut := listing.NewPageBudget(s.maxMessageBytes)
	for i := range states {
		out := wire.SnapshotToProto(states[i])
		if !cut.TryAdd(out) {
			more = true
			break
		}
		resp.Checkpoints = append(resp.Checkpoints, out)
		q.Before = states[i].Checkpoint.Seq
	}
	if more {
		resp.NextPageToken, err = s.tokens.EncodeToken(list, q.Before)
	}
	return resp, cmp.Or(err, s.checkAnswerSize(resp, "ask without include_values, or for this state with GetState and some keys"))
}
