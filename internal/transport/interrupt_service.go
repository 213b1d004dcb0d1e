package transport

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// interruptService lists, watches and updates interrupts.
type interruptService struct {
	graphdv1.UnimplementedInterruptServiceServer
	*service

	encoded          *flow.EncodedCache[encodedChangeKey]
	links            LinkMaker // nil = the server makes no links
	followInterrupts func(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) InterruptFollower
}

// ListInterrupts lists interrupts of all threads. Errors: INVALID_FIELD,
// INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, and those of engine.Engine.Interrupts.
func (s *interruptService) ListInterrupts(
	ctx context.Context, req *graphdv1.ListInterruptsRequest,
) (*graphdv1.ListInterruptsResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread := v.CheckOptionalThread("thread_id", req.GetThreadId())
	size := listing.PageSize(v, req.GetPageSize())
	f := listing.ParseInterruptFilter(v, "filter", req.GetFilter(), thread, interceptor.ActorOf(ctx), checkpoint.InterruptOpen)
	f.OrderBy(v, req.GetOrderBy())
	f.RequireIndex(v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "interrupts", thread, req.GetFilter(), req.GetOrderBy())
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &f.Query.After); err != nil {
		return nil, err
	}
	resp := &graphdv1.ListInterruptsResponse{}
	found, next, err := s.readInterruptPage(ctx, graphdv1.InterruptService_ListInterrupts_FullMethodName, &f, list, size)
	if err != nil {
		return nil, err
	}
	resp.NextPageToken = next
	cut := listing.NewPageBudget(s.maxMessageBytes)
	var allowed *actionReader
	if req.GetWithAllowed() {
		allowed = s.newActionReader(ctx)
	}
	for i := range found {
		out := wire.InterruptToProto(found[i])
		out.Allowed = wire.ActionsToProto(allowed.readActions(&found[i], false))
		if !cut.TryAdd(out) {
			resp.NextPageToken, err = s.tokens.EncodeToken(list, f.Query.PositionOf(&found[i-1]))
			break
		}
		resp.Interrupts = append(resp.Interrupts, out)
	}
	return resp, cmp.Or(err, s.checkAnswerSize(resp, "read the question with GetInterrupt"))
}

// readInterruptPage reads the interrupts of a page that the caller gets, and makes the
// token of the next page.
func (s *interruptService) readInterruptPage(
	ctx context.Context, method string, f *listing.InterruptFilter, list string, size int,
) (found []checkpoint.Interrupt, token string, err error) {
	q := f.Query
	q.Limit = size + 1
	memory := interceptor.CallMemoryOf(ctx)
	filter := s.access.NewItemFilter(ctx, method)
	if filter == nil && !f.Compares() {
		if found, err = s.engine.Interrupts(ctx, memory, q); err != nil {
			return nil, "", err
		}
		return listing.CutPage(s.tokens, list, found, size, (*checkpoint.Interrupt).Size,
			func(i checkpoint.Interrupt) any { return q.PositionOf(&i) })
	}
	now := s.engine.CurrentTime()
	found, next, err := listing.CollectPage(size,
		func(i *checkpoint.Interrupt) bool { return filter.Shows(i.Graph, i.Thread) && f.Matches(i, now) },
		func(limit int, after *checkpoint.Interrupt) ([]checkpoint.Interrupt, bool, error) {
			if after != nil {
				q.After = q.PositionOf(after)
			}
			list, err := s.engine.Interrupts(ctx, memory, q)
			return list, checkpoint.IsPart(list, limit, (*checkpoint.Interrupt).Size), err
		})
	if err != nil || next == nil {
		return found, "", err
	}
	token, err = s.tokens.EncodeToken(list, q.PositionOf(next))
	return found, token, err
}

// GetInterrupt returns an interrupt. Errors: INVALID_FIELD, THREAD_NOT_FOUND,
// INTERRUPT_NOT_FOUND, and those of the store.
func (s *interruptService) GetInterrupt(
	ctx context.Context, req *graphdv1.GetInterruptRequest,
) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread, id := v.CheckThread("thread_id", req.GetThreadId()), v.CheckID("interrupt_id", req.GetInterruptId())
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.engine.Interrupt(ctx, thread, id)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &found)
}

// UpdateInterrupt extends or assigns an open interrupt. Errors: those of
// Validator.Err, and those of engine.Engine.UpdateInterrupt.
func (s *interruptService) UpdateInterrupt(
	ctx context.Context, req *graphdv1.UpdateInterruptRequest,
) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetInterrupt().GetThreadId(), "")
	v := s.newValidator(ctx)
	change := wire.InterruptChangeFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	change.By = interceptor.ActorOf(ctx)
	changed, err := s.engine.UpdateInterrupt(ctx, change)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &changed)
}
