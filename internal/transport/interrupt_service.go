package transport

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// interruptService is the inbox.
type interruptService struct {
	graphdv1.UnimplementedInterruptServiceServer
	*service

	followAll func(q checkpoint.InterruptQuery, after uint64) InterruptFollower
}

// ListInterrupts lists questions over all threads.
func (s *interruptService) ListInterrupts(
	ctx context.Context, req *graphdv1.ListInterruptsRequest,
) (*graphdv1.ListInterruptsResponse, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	thread := b.optionalID("thread_id", req.GetThreadId())
	size := pageSize(b, req.GetPageSize())
	q := interruptQueryIn(b, req.GetFilter(), thread, checkpoint.InterruptOpen)
	if err := b.err(); err != nil {
		return nil, err
	}
	list := listed("interrupts", thread, req.GetFilter())
	if err := s.tokens.read(req.GetPageToken(), list, &q.After); err != nil {
		return nil, err
	}
	q.Limit = size + 1
	found, err := s.engine.Interrupts(ctx, q)
	if err != nil {
		return nil, err
	}
	at := func(i checkpoint.Interrupt) any {
		return checkpoint.InterruptPosition{Created: i.Created, Thread: i.Thread, ID: i.ID}
	}
	resp := &graphdv1.ListInterruptsResponse{}
	found, resp.NextPageToken, err = page(s.tokens, list, found, size, (*checkpoint.Interrupt).Size, at)
	if err != nil {
		return nil, err
	}
	cut := newCut(s.maxBytes)
	for i := range found {
		out := interruptOut(found[i])
		if !cut.fits(out) {
			resp.NextPageToken, err = s.tokens.make(list, at(found[i-1]))
			break
		}
		resp.Interrupts = append(resp.Interrupts, out)
	}
	return resp, cmp.Or(err, s.fits(resp, "read the question with GetInterrupt"))
}

// GetInterrupt returns a question.
func (s *interruptService) GetInterrupt(
	ctx context.Context, req *graphdv1.GetInterruptRequest,
) (*graphdv1.Interrupt, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	thread, id := b.id("thread_id", req.GetThreadId()), b.id("interrupt_id", req.GetInterruptId())
	if err := b.err(); err != nil {
		return nil, err
	}
	found, err := s.engine.Interrupt(ctx, thread, id)
	if err != nil {
		return nil, err
	}
	return interruptOut(found), nil
}

// UpdateInterrupt extends or assigns an open question.
func (s *interruptService) UpdateInterrupt(
	ctx context.Context, req *graphdv1.UpdateInterruptRequest,
) (*graphdv1.Interrupt, error) {
	note(ctx, req.GetInterrupt().GetThreadId(), "")
	b := s.border()
	change := interruptChangeIn(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	change.By = s.by(ctx)
	changed, err := s.engine.UpdateInterrupt(ctx, change)
	if err != nil {
		return nil, err
	}
	return interruptOut(changed), nil
}

const maskAssignees = "assignees"

func interruptChangeIn(b *border, req *graphdv1.UpdateInterruptRequest) runtime.InterruptChange {
	q := req.GetInterrupt()
	b.must("interrupt", q != nil)
	c := runtime.InterruptChange{
		Thread:    b.id("interrupt.thread_id", q.GetThreadId()),
		Interrupt: b.id("interrupt.interrupt_id", q.GetInterruptId()),
		Etag:      b.etag("interrupt.etag", q.GetEtag()),
	}
	assignees := b.names("interrupt.assignees", q.GetAssignees())
	expires := b.instant("interrupt.expire_time", q.GetExpireTime())
	paths := req.GetUpdateMask().GetPaths()
	if len(paths) == 0 {
		if q.GetExpireTime() != nil {
			paths = append(paths, maskExpire)
		}
		if len(assignees) > 0 {
			paths = append(paths, maskAssignees)
		}
	}
	if len(paths) == 0 {
		b.refuse("update_mask", "is empty and interrupt sets nothing that can be changed: expire_time, assignees")
	}
	for _, path := range paths {
		switch path {
		case maskAll:
			c.Expires, c.Assignees = &expires, &assignees
		case maskExpire:
			c.Expires = &expires
		case maskAssignees:
			c.Assignees = &assignees
		default:
			b.refuse("update_mask", "%q is not among *, expire_time, assignees", clip(path, maxName))
		}
	}
	return c
}
