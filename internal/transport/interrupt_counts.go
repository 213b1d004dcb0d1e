package transport

import (
	"context"
	"slices"
	"strconv"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
)

// Limits of a call that counts: the filters, and those of a caller who may see only some
// interrupts, which are read to be counted.
const (
	maxCountedFilters = 32
	maxShownFilters   = 4
)

// CountInterrupts counts open interrupts of all threads by filter. Errors: INVALID_FIELD, and
// those of engine.Engine.CountInterrupts and Interrupts.
func (s *interruptService) CountInterrupts(
	ctx context.Context, req *graphdv1.CountInterruptsRequest,
) (*graphdv1.CountInterruptsResponse, error) {
	v := s.newValidator(ctx)
	isRestricted := s.access.NewItemFilter(ctx, graphdv1.InterruptService_CountInterrupts_FullMethodName) != nil
	most := maxCountedFilters
	if isRestricted {
		most = maxShownFilters
	}
	if n := len(req.GetFilters()); n > most {
		v.AddViolation("filters", "has %d entries; at most %d are allowed", n, most)
		return nil, v.Err()
	}
	views := make([]countedView, 0, len(req.GetFilters()))
	for i, text := range req.GetFilters() {
		f := listing.ParseInterruptFilter(v, "filters["+strconv.Itoa(i)+"]", text, "", interceptor.ActorOf(ctx), checkpoint.InterruptOpen)
		views = append(views, countedView{filter: f, tags: f.CountedTags(v)})
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if isRestricted {
		return s.countShown(ctx, views)
	}
	return s.countTagged(ctx, v.Tenant(), views)
}

// countedView is a filter with the tags of which one is counted, none = all open interrupts are.
type countedView struct {
	filter listing.InterruptFilter
	tags   []string
}

// countTagged counts by the counters of the store.
func (s *interruptService) countTagged(ctx context.Context, owner string, views []countedView) (*graphdv1.CountInterruptsResponse, error) {
	var tags []string
	for i := range views {
		if tags = append(tags, views[i].tags...); len(views[i].tags) == 0 {
			tags = append(tags, checkpoint.OpenTag)
		}
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	counts, err := s.engine.CountInterrupts(ctx, owner, tags)
	if err != nil {
		return nil, err
	}
	byTag := make(map[string]int, len(tags))
	for i, tag := range tags {
		byTag[tag] = counts[i]
	}
	resp := &graphdv1.CountInterruptsResponse{}
	for i := range views {
		resp.Counts = append(resp.Counts, views[i].sumCounts(byTag))
	}
	return resp, nil
}

// sumCounts adds the counts of the tags of a view.
func (w *countedView) sumCounts(byTag map[string]int) *graphdv1.CountInterruptsResponse_Count {
	if len(w.tags) == 0 {
		return &graphdv1.CountInterruptsResponse_Count{
			Count: int64(byTag[checkpoint.OpenTag]), Precision: graphdv1.CountInterruptsResponse_PRECISION_EXACT,
		}
	}
	sum, parts := 0, 0
	for _, tag := range w.tags {
		if n := byTag[tag]; n > 0 {
			sum, parts = sum+n, parts+1
		}
	}
	precision := graphdv1.CountInterruptsResponse_PRECISION_EXACT
	if parts > 1 || parts > 0 && w.filter.CountsClaims() {
		precision = graphdv1.CountInterruptsResponse_PRECISION_AT_MOST
	}
	return &graphdv1.CountInterruptsResponse_Count{Count: int64(sum), Precision: precision}
}

// countShown counts the interrupts that the caller may see, which no counter has, as far as a
// page looks.
func (s *interruptService) countShown(ctx context.Context, views []countedView) (*graphdv1.CountInterruptsResponse, error) {
	resp := &graphdv1.CountInterruptsResponse{}
	for i := range views {
		found, more, err := s.readInterruptPage(
			ctx, graphdv1.InterruptService_CountInterrupts_FullMethodName, &views[i].filter, "", listing.MaxPageSize)
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
