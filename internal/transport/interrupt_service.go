package transport

import (
	"cmp"
	"context"
	"strconv"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// interruptService lists, watches and updates interrupts.
type interruptService struct {
	graphdv1.UnimplementedInterruptServiceServer
	*service

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
	f := listing.ParseInterruptFilter(v, req.GetFilter(), thread, interceptor.ActorOf(ctx), checkpoint.InterruptOpen)
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
	found, next, err := s.readInterruptPage(ctx, &f, list, size)
	if err != nil {
		return nil, err
	}
	resp.NextPageToken = next
	cut := listing.NewPageBudget(s.maxMessageBytes)
	for i := range found {
		out := wire.InterruptToProto(found[i])
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
	ctx context.Context, f *listing.InterruptFilter, list string, size int,
) (found []checkpoint.Interrupt, token string, err error) {
	q := f.Query
	q.Limit = size + 1
	memory := interceptor.CallMemoryOf(ctx)
	filter := s.access.NewItemFilter(ctx, graphdv1.InterruptService_ListInterrupts_FullMethodName)
	if filter == nil && !f.Compares() {
		if found, err = s.engine.Interrupts(ctx, memory, q); err != nil {
			return nil, "", err
		}
		return listing.CutPage(s.tokens, list, found, size, (*checkpoint.Interrupt).Size,
			func(i checkpoint.Interrupt) any { return q.PositionOf(&i) })
	}
	now := time.Now()
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

// maxCountedFilters is the number of filters that a call counts.
const maxCountedFilters = 32

// CountInterrupts counts open interrupts of all threads by filter. Errors: INVALID_FIELD, and
// those of engine.Engine.CountInterrupts and Interrupts.
func (s *interruptService) CountInterrupts(
	ctx context.Context, req *graphdv1.CountInterruptsRequest,
) (*graphdv1.CountInterruptsResponse, error) {
	v := s.newValidator(ctx)
	if n := len(req.GetFilters()); n > maxCountedFilters {
		v.AddViolation("filters", "has %d entries; at most %d are allowed", n, maxCountedFilters)
		return nil, v.Err()
	}
	var filters []listing.InterruptFilter
	var tags []string
	var views []int // how many of the tags each filter has
	for i, text := range req.GetFilters() {
		f := listing.ParseInterruptFilter(v, text, "", interceptor.ActorOf(ctx), checkpoint.InterruptOpen)
		own := f.CountedTags(v, "filters["+strconv.Itoa(i)+"]")
		filters, tags, views = append(filters, f), append(tags, own...), append(views, len(own))
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if s.access.NewItemFilter(ctx, graphdv1.InterruptService_CountInterrupts_FullMethodName) != nil {
		return s.countShown(ctx, filters)
	}
	open, tagged, err := s.engine.CountInterrupts(ctx, v.Tenant(), tags)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.CountInterruptsResponse{}
	for i, n := range views {
		c := &graphdv1.CountInterruptsResponse_Count{Precision: graphdv1.CountInterruptsResponse_PRECISION_EXACT}
		if n == 0 {
			c.Count = int64(open)
		}
		for _, count := range tagged[:n] {
			if c.GetCount() > 0 && count > 0 {
				c.Precision = graphdv1.CountInterruptsResponse_PRECISION_AT_MOST
			}
			c.Count += int64(count)
		}
		if c.GetCount() > 0 && filters[i].CountsClaims() {
			c.Precision = graphdv1.CountInterruptsResponse_PRECISION_AT_MOST
		}
		tagged = tagged[n:]
		resp.Counts = append(resp.Counts, c)
	}
	return resp, nil
}

// countShown counts the interrupts that the caller may see, which no counter has, up to the
// size of a page.
func (s *interruptService) countShown(
	ctx context.Context, filters []listing.InterruptFilter,
) (*graphdv1.CountInterruptsResponse, error) {
	resp := &graphdv1.CountInterruptsResponse{}
	for i := range filters {
		found, more, err := s.readInterruptPage(ctx, &filters[i], "", listing.MaxPageSize)
		if err != nil {
			return nil, err
		}
		c := &graphdv1.CountInterruptsResponse_Count{Count: int64(len(found)), Precision: graphdv1.CountInterruptsResponse_PRECISION_EXACT}
		if more != "" {
			c.Precision = graphdv1.CountInterruptsResponse_PRECISION_AT_LEAST
		}
		resp.Counts = append(resp.Counts, c)
		interceptor.CallMemoryOf(ctx).Release()
	}
	return resp, nil
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
	return wire.InterruptToProto(found), nil
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
	return wire.InterruptToProto(changed), nil
}
