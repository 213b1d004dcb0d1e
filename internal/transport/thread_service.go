package transport

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// threadService makes, reads, changes and removes threads.
type threadService struct {
	graphdv1.UnimplementedThreadServiceServer
	*service
}

// CreateThread makes a thread. Errors: those of Validator.Err, and those of
// engine.Engine.CreateThread.
func (s *threadService) CreateThread(
	ctx context.Context, req *graphdv1.CreateThreadRequest,
) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	create := wire.NewThreadFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if create.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	create.By = interceptor.ActorOf(ctx)
	head, err := s.engine.CreateThread(ctx, create)
	if err != nil {
		return nil, err
	}
	return wire.ThreadToProto(head), nil
}

// GetThread returns a thread. Errors: INVALID_FIELD, PAYLOAD_TOO_LARGE,
// THREAD_NOT_FOUND, and with the state those of engine.Engine.State.
func (s *threadService) GetThread(ctx context.Context, req *graphdv1.GetThreadRequest) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread := v.CheckThread("thread_id", req.GetThreadId())
	if err := v.Err(); err != nil {
		return nil, err
	}
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	return s.buildThreadView(ctx, head, req.GetView())
}

// buildThreadView converts a thread, with its state if the request asks for it.
func (s *threadService) buildThreadView(
	ctx context.Context, head checkpoint.Head, view graphdv1.ThreadView,
) (*graphdv1.Thread, error) {
	out := wire.ThreadToProto(head)
	if view != graphdv1.ThreadView_THREAD_VIEW_FULL {
		return out, nil
	}
	state, err := s.engine.State(ctx, runtime.StateRequest{Thread: head.Thread, MaxBytes: s.maxMessageBytes, Memory: interceptor.CallMemoryOf(ctx)})
	if err != nil {
		return nil, err
	}
	out.Values = wire.JSONToProto(state.Values)
	for _, q := range state.Interrupts {
		if q.State == checkpoint.InterruptOpen {
			out.Interrupts = append(out.Interrupts, wire.InterruptToProto(q))
		}
	}
	return out, s.checkAnswerSize(out, "take THREAD_VIEW_BASIC and read the state with GetState")
}

// UpdateThread changes labels and expiration. Errors: those of Validator.Err, and
// those of engine.Engine.UpdateThread.
func (s *threadService) UpdateThread(
	ctx context.Context, req *graphdv1.UpdateThreadRequest,
) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetThread().GetThreadId(), "")
	v := s.newValidator(ctx)
	change := wire.ThreadChangeFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	change.By = interceptor.ActorOf(ctx)
	head, err := s.engine.UpdateThread(ctx, change)
	if err != nil {
		return nil, err
	}
	return wire.ThreadToProto(head), nil
}

// DeleteThread deletes a thread. Errors: INVALID_FIELD, and those of
// engine.Engine.DeleteThread.
func (s *threadService) DeleteThread(
	ctx context.Context, req *graphdv1.DeleteThreadRequest,
) (*emptypb.Empty, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread, etag := v.CheckThread("thread_id", req.GetThreadId()), v.ParseEtag("etag", req.GetEtag())
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.engine.DeleteThread(ctx, thread, etag, req.GetForce()); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// ForkThread copies a thread up to a checkpoint. Errors: INVALID_FIELD, and those
// of engine.Engine.ForkThread.
func (s *threadService) ForkThread(ctx context.Context, req *graphdv1.ForkThreadRequest) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetSourceThreadId(), "")
	v := s.newValidator(ctx)
	id, namespace := wire.CheckpointRefFromProto(v, "at", req.GetAt())
	if namespace != "" {
		v.AddViolation("at.namespace", "must be empty: a thread is forked at a checkpoint of its root graph")
	}
	fork := runtime.ForkRequest{
		Source: v.CheckThread("source_thread_id", req.GetSourceThreadId()), Checkpoint: id,
		Thread:    v.CheckOptionalThread("thread_id", req.GetThreadId()),
		Metadata:  v.CheckLabels("metadata", req.GetMetadata()),
		RequestID: v.CheckOptionalID("request_id", req.GetRequestId()),
		By:        interceptor.ActorOf(ctx),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if fork.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	head, err := s.engine.ForkThread(ctx, fork)
	if err != nil {
		return nil, err
	}
	return wire.ThreadToProto(head), nil
}

// CopyThread copies a thread as it is. Errors: INVALID_FIELD, and those of
// engine.Engine.CopyThread.
func (s *threadService) CopyThread(ctx context.Context, req *graphdv1.CopyThreadRequest) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetSourceThreadId(), "")
	v := s.newValidator(ctx)
	c := runtime.CopyRequest{
		Source:    v.CheckThread("source_thread_id", req.GetSourceThreadId()),
		Thread:    v.CheckOptionalThread("thread_id", req.GetThreadId()),
		Metadata:  v.CheckLabels("metadata", req.GetMetadata()),
		RequestID: v.CheckOptionalID("request_id", req.GetRequestId()),
		By:        interceptor.ActorOf(ctx),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if c.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	head, err := s.engine.CopyThread(ctx, c)
	if err != nil {
		return nil, err
	}
	return wire.ThreadToProto(head), nil
}

// PruneThread removes the oldest part of a history. Errors: INVALID_FIELD, and
// those of engine.Engine.PruneThread.
func (s *threadService) PruneThread(ctx context.Context, req *graphdv1.PruneThreadRequest) (*graphdv1.Thread, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	p := runtime.PruneRequest{
		Thread: v.CheckThread("thread_id", req.GetThreadId()), KeepCheckpoints: int(req.GetKeepCheckpoints()),
		Etag: v.ParseEtag("etag", req.GetEtag()), By: interceptor.ActorOf(ctx),
	}
	if p.KeepCheckpoints < 1 {
		v.AddViolation("keep_checkpoints", "is %d, want 1 or more", p.KeepCheckpoints)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	head, err := s.engine.PruneThread(ctx, p)
	if err != nil {
		return nil, err
	}
	return wire.ThreadToProto(head), nil
}
