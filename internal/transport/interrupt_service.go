package transport

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// interruptService lists, watches and updates interrupts.
type interruptService struct {
	graphdv1.UnimplementedInterruptServiceServer
	*service

	followInterrupts func(q checkpoint.InterruptQuery, after uint64) InterruptFollower
}

// ListInterrupts lists interrupts of all threads.
func (s *interruptService) ListInterrupts(
	ctx context.Context, req *graphdv1.ListInterruptsRequest,
) (*graphdv1.ListInterruptsResponse, error) {
	recordSubject(ctx, req.GetThreadId(), "")
	b := s.newValidator()
	thread := b.checkOptionalID("thread_id", req.GetThreadId())
	size := pageSize(b, req.GetPageSize())
	q := interruptQueryFromFilter(b, req.GetFilter(), thread, checkpoint.InterruptOpen)
	if err := b.err(); err != nil {
		return nil, err
	}
	list := digestList("interrupts", thread, req.GetFilter())
	if err := s.tokens.decodeToken(req.GetPageToken(), list, &q.After); err != nil {
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
	found, resp.NextPageToken, err = cutPage(s.tokens, list, found, size, (*checkpoint.Interrupt).Size, at)
	if err != nil {
		return nil, err
	}
	cut := newPageBudget(s.maxMessageBytes)
	for i := range found {
		out := interruptToProto(found[i])
		if !cut.tryAdd(out) {
			resp.NextPageToken, err = s.tokens.encodeToken(list, at(found[i-1]))
			break
		}
		resp.Interrupts = append(resp.Interrupts, out)
	}
	return resp, cmp.Or(err, s.checkAnswerSize(resp, "read the question with GetInterrupt"))
}

// GetInterrupt returns an interrupt.
func (s *interruptService) GetInterrupt(
	ctx context.Context, req *graphdv1.GetInterruptRequest,
) (*graphdv1.Interrupt, error) {
	recordSubject(ctx, req.GetThreadId(), "")
	b := s.newValidator()
	thread, id := b.checkID("thread_id", req.GetThreadId()), b.checkID("interrupt_id", req.GetInterruptId())
	if err := b.err(); err != nil {
		return nil, err
	}
	found, err := s.engine.Interrupt(ctx, thread, id)
	if err != nil {
		return nil, err
	}
	return interruptToProto(found), nil
}

// UpdateInterrupt extends or assigns an open interrupt.
func (s *interruptService) UpdateInterrupt(
	ctx context.Context, req *graphdv1.UpdateInterruptRequest,
) (*graphdv1.Interrupt, error) {
	recordSubject(ctx, req.GetInterrupt().GetThreadId(), "")
	b := s.newValidator()
	change := interruptChangeFromProto(b, req)
	if err := b.err(); err != nil {
		return nil, err
	}
	change.By = s.callerOf(ctx)
	changed, err := s.engine.UpdateInterrupt(ctx, change)
	if err != nil {
		return nil, err
	}
	return interruptToProto(changed), nil
}

const maskAssignees = "assignees"

func interruptChangeFromProto(b *validator, req *graphdv1.UpdateInterruptRequest) runtime.UpdateInterruptRequest {
	q := req.GetInterrupt()
	b.requireSet("interrupt", q != nil)
	c := runtime.UpdateInterruptRequest{
		Thread:    b.checkID("interrupt.thread_id", q.GetThreadId()),
		Interrupt: b.checkID("interrupt.interrupt_id", q.GetInterruptId()),
		Etag:      b.parseEtag("interrupt.etag", q.GetEtag()),
	}
	assignees := b.checkNames("interrupt.assignees", q.GetAssignees())
	expires := b.convertTime("interrupt.expire_time", q.GetExpireTime())
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
		b.addViolation("update_mask", "is empty and interrupt sets nothing that can be changed: expire_time, assignees")
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
			b.addViolation("update_mask", "%q is not among *, expire_time, assignees", reason.ClipText(path, maxNameLength))
		}
	}
	return c
}
