package transport

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// threadService keeps threads.
type threadService struct {
	graphdv1.UnimplementedThreadServiceServer
	*service
}

// CreateThread makes a thread.
func (s *threadService) CreateThread(
	ctx context.Context, req *graphdv1.CreateThreadRequest,
) (*graphdv1.Thread, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	create := newThreadIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	var err error
	if create.Digest, err = digestOf(req); err != nil {
		return nil, err
	}
	create.By = s.by(ctx)
	head, err := s.engine.CreateThread(ctx, create)
	if err != nil {
		return nil, err
	}
	return threadOut(head), nil
}

// GetThread returns a thread.
func (s *threadService) GetThread(ctx context.Context, req *graphdv1.GetThreadRequest) (*graphdv1.Thread, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	thread := b.id("thread_id", req.GetThreadId())
	if err := b.err(); err != nil {
		return nil, err
	}
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	return s.view(ctx, head, req.GetView())
}

// view converts a thread, with its state if that is asked for.
func (s *threadService) view(
	ctx context.Context, head checkpoint.Head, view graphdv1.ThreadView,
) (*graphdv1.Thread, error) {
	out := threadOut(head)
	if view != graphdv1.ThreadView_THREAD_VIEW_FULL {
		return out, nil
	}
	state, err := s.engine.State(ctx, runtime.StateRequest{Thread: head.Thread, Bytes: s.maxBytes})
	if err != nil {
		return nil, err
	}
	out.Values = jsonOut(state.Values)
	for _, q := range state.Interrupts {
		if q.State == checkpoint.InterruptOpen {
			out.Interrupts = append(out.Interrupts, interruptOut(q))
		}
	}
	return out, s.fits(out, "take THREAD_VIEW_BASIC and read the state with GetState")
}

// ListThreads lists threads.
func (s *threadService) ListThreads(
	ctx context.Context, req *graphdv1.ListThreadsRequest,
) (*graphdv1.ListThreadsResponse, error) {
	b := s.border()
	size := pageSize(b, req.GetPageSize())
	q := threadQueryIn(b, req.GetFilter())
	if err := b.err(); err != nil {
		return nil, err
	}
	list := listed("threads", req.GetFilter())
	if err := s.tokens.read(req.GetPageToken(), list, &q.Before); err != nil {
		return nil, err
	}
	q.Limit = size + 1
	heads, err := s.engine.Threads(ctx, q)
	if err != nil {
		return nil, err
	}
	at := func(h checkpoint.Head) any {
		return checkpoint.ThreadPosition{Updated: h.Updated, Thread: h.Thread}
	}
	resp := &graphdv1.ListThreadsResponse{}
	heads, resp.NextPageToken, err = page(s.tokens, list, heads, size, (*checkpoint.Head).Size, at)
	if err != nil {
		return nil, err
	}
	cut := newCut(s.maxBytes)
	for i, h := range heads {
		t, err := s.view(ctx, h, req.GetView())
		if deleted(err) {
			continue // since it was listed
		}
		if err != nil {
			return nil, err
		}
		if !cut.fits(t) {
			if resp.NextPageToken, err = s.tokens.make(list, at(heads[i-1])); err != nil {
				return nil, err
			}
			break
		}
		resp.Threads = append(resp.Threads, t)
	}
	return resp, s.fits(resp, "ask for THREAD_VIEW_BASIC")
}

// UpdateThread changes labels and expiration.
func (s *threadService) UpdateThread(
	ctx context.Context, req *graphdv1.UpdateThreadRequest,
) (*graphdv1.Thread, error) {
	note(ctx, req.GetThread().GetThreadId(), "")
	b := s.border()
	change := threadChangeIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	change.By = s.by(ctx)
	head, err := s.engine.UpdateThread(ctx, change)
	if err != nil {
		return nil, err
	}
	return threadOut(head), nil
}

// DeleteThread deletes a thread.
func (s *threadService) DeleteThread(
	ctx context.Context, req *graphdv1.DeleteThreadRequest,
) (*emptypb.Empty, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	thread, etag := b.id("thread_id", req.GetThreadId()), b.etag("etag", req.GetEtag())
	if err := b.err(); err != nil {
		return nil, err
	}
	if err := s.engine.DeleteThread(ctx, thread, etag, req.GetForce()); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// ForkThread copies a thread up to a checkpoint.
func (s *threadService) ForkThread(ctx context.Context, req *graphdv1.ForkThreadRequest) (*graphdv1.Thread, error) {
	note(ctx, req.GetSourceThreadId(), "")
	b := s.border()
	id, namespace := checkpointIn(b, "at", req.GetAt())
	if namespace != "" {
		b.refuse("at.namespace", "must be empty: a thread is forked at a checkpoint of its root graph")
	}
	fork := runtime.ForkRequest{
		Source: b.id("source_thread_id", req.GetSourceThreadId()), Checkpoint: id,
		Thread:    b.optionalID("thread_id", req.GetThreadId()),
		Metadata:  b.labels("metadata", req.GetMetadata()),
		RequestID: b.optionalID("request_id", req.GetRequestId()),
		By:        s.by(ctx),
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	var err error
	if fork.Digest, err = digestOf(req); err != nil {
		return nil, err
	}
	head, err := s.engine.ForkThread(ctx, fork)
	if err != nil {
		return nil, err
	}
	return threadOut(head), nil
}

// CopyThread copies a thread as it is.
func (s *threadService) CopyThread(ctx context.Context, req *graphdv1.CopyThreadRequest) (*graphdv1.Thread, error) {
	note(ctx, req.GetSourceThreadId(), "")
	b := s.border()
	c := runtime.CopyRequest{
		Source:    b.id("source_thread_id", req.GetSourceThreadId()),
		Thread:    b.optionalID("thread_id", req.GetThreadId()),
		Metadata:  b.labels("metadata", req.GetMetadata()),
		RequestID: b.optionalID("request_id", req.GetRequestId()),
		By:        s.by(ctx),
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	var err error
	if c.Digest, err = digestOf(req); err != nil {
		return nil, err
	}
	head, err := s.engine.CopyThread(ctx, c)
	if err != nil {
		return nil, err
	}
	return threadOut(head), nil
}

// PruneThread removes the oldest part of a history.
func (s *threadService) PruneThread(ctx context.Context, req *graphdv1.PruneThreadRequest) (*graphdv1.Thread, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	p := runtime.PruneRequest{
		Thread: b.id("thread_id", req.GetThreadId()), Keep: int(req.GetKeepCheckpoints()),
		Etag: b.etag("etag", req.GetEtag()), By: s.by(ctx),
	}
	if p.Keep < 1 {
		b.refuse("keep_checkpoints", "is %d, want 1 or more", p.Keep)
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	head, err := s.engine.PruneThread(ctx, p)
	if err != nil {
		return nil, err
	}
	return threadOut(head), nil
}
