package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// ListThreads lists threads. Errors: INVALID_FIELD, INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, those
// of engine.Engine.Threads, SkipThreads and CountThreads, and with states those of
// engine.Engine.State.
func (s *threadService) ListThreads(
	ctx context.Context, req *graphdv1.ListThreadsRequest,
) (*graphdv1.ListThreadsResponse, error) {
	v := s.newValidator(ctx)
	l := threadList{
		digest: digestList(ctx, "threads", req.GetFilter()), size: listing.PageSize(v, req.GetPageSize()),
		query: listing.ThreadQueryFromFilter(v, req.GetFilter()), shown: s.access.NewItemFilter(ctx, graphdv1.ThreadService_ListThreads_FullMethodName),
	}
	place := threadPlace{Skip: listing.Offset(v, req.GetOffset(), req.GetPageToken())}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.tokens.DecodeToken(req.GetPageToken(), l.digest, &place); err != nil {
		return nil, err
	}
	resp := &graphdv1.ListThreadsResponse{}
	if err := s.countTotal(ctx, &l, req, resp); err != nil {
		return nil, err
	}
	heads, next, err := s.readThreadPage(ctx, &l, place)
	if err != nil {
		return nil, err
	}
	resp.NextPageToken = next
	cut := listing.NewPageBudget(s.maxMessageBytes)
	for i, h := range heads {
		t, err := s.buildThreadView(ctx, h, req.GetView())
		if stream.IsThreadDeleted(err) {
			continue // the thread was deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		if !cut.TryAdd(t) {
			if resp.NextPageToken, err = s.tokens.EncodeToken(l.digest, l.query.PositionOf(&heads[i-1])); err != nil {
				return nil, err
			}
			break
		}
		resp.Threads = append(resp.Threads, t)
	}
	return resp, s.checkAnswerSize(resp, "ask for THREAD_VIEW_BASIC")
}

// threadList is a list of threads of which a caller asks for a page.
type threadList struct {
	digest string
	size   int // of the page
	query  checkpoint.ThreadQuery
	shown  *permission.ItemFilter // nil = the caller gets all
}

// threadPlace is where a page begins: behind a thread, or at the start, and so many threads
// further.
type threadPlace struct {
	checkpoint.ThreadPosition

	Skip int `json:",omitzero"` // of the threads that the caller gets
}

// countTotal counts the threads of a list if the caller asks for it and gets all of them.
func (s *threadService) countTotal(
	ctx context.Context, l *threadList, req *graphdv1.ListThreadsRequest, resp *graphdv1.ListThreadsResponse,
) error {
	if !req.GetCountTotal() || l.shown != nil {
		return nil
	}
	n, err := s.engine.CountThreads(ctx, l.query, listing.MaxOffset+1)
	if err != nil {
		return err
	}
	total := int32(n)
	resp.TotalSize = &total
	return nil
}

// readThreadPage reads the threads of a page that the caller gets, and makes the token of
// the next page.
func (s *threadService) readThreadPage(ctx context.Context, l *threadList, place threadPlace) (heads []checkpoint.Head, token string, err error) {
	q := l.query
	q.Before = place.ThreadPosition
	if l.shown != nil {
		return s.readShownPage(ctx, l, q, place.Skip)
	}
	if place.Skip > 0 {
		q.Before, err = s.engine.SkipThreads(ctx, q, place.Skip)
		if err != nil || q.Before == (checkpoint.ThreadPosition{}) {
			return nil, "", err
		}
	}
	q.Limit = l.size + 1
	if heads, err = s.engine.Threads(ctx, interceptor.CallMemoryOf(ctx), q); err != nil {
		return nil, "", err
	}
	return listing.CutPage(s.tokens, l.digest, heads, l.size, (*checkpoint.Head).Size, func(h checkpoint.Head) any { return q.PositionOf(&h) })
}

// readShownPage reads a page for a caller who gets only some of the threads.
func (s *threadService) readShownPage(
	ctx context.Context, l *threadList, q checkpoint.ThreadQuery, skip int,
) (heads []checkpoint.Head, token string, err error) {
	shows := func(h *checkpoint.Head) bool { return l.shown.Shows(h.Graph, h.Thread) }
	read := func(limit int, after *checkpoint.Head) ([]checkpoint.Head, bool, error) {
		if after != nil {
			q.Before = q.PositionOf(after)
		}
		q.Limit = limit
		found, err := s.engine.Threads(ctx, interceptor.CallMemoryOf(ctx), q)
		return found, checkpoint.IsPart(found, limit, (*checkpoint.Head).Size), err
	}
	passed, last, more, err := listing.SkipShown(skip, shows, read)
	switch {
	case err != nil || !more:
		return nil, "", err
	case passed < skip:
		token, err = s.tokens.EncodeToken(l.digest, threadPlace{ThreadPosition: q.PositionOf(last), Skip: skip - passed})
		return nil, token, err
	case last != nil:
		q.Before = q.PositionOf(last)
	}
	heads, next, err := listing.CollectPage(l.size, shows, read)
	if err != nil || next == nil {
		return heads, "", err
	}
	token, err = s.tokens.EncodeToken(l.digest, q.PositionOf(next))
	return heads, token, err
}
