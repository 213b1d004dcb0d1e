package agentserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// endlessThreads is a service with threads without end, of which none has the ids of this API.
type endlessThreads struct {
	graphdv1.ThreadServiceClient

	listed int
}

func (e *endlessThreads) ListThreads(_ context.Context, r *graphdv1.ListThreadsRequest, _ ...grpc.CallOption) (*graphdv1.ListThreadsResponse, error) {
	page := &graphdv1.ListThreadsResponse{NextPageToken: "more"}
	for range r.GetPageSize() {
		page.Threads = append(page.Threads, &graphdv1.Thread{ThreadId: "other"})
	}
	e.listed += len(page.GetThreads())
	return page, nil
}

func TestASearchLooksAtABoundedNumberOfThreads(t *testing.T) {
	for _, size := range []int{1, 10, searchedPage} {
		threads := &endlessThreads{}
		c := &call{ctx: t.Context(), threads: threads}
		err := new(threadSearch).visitThreads(c, graphdv1.ThreadView_THREAD_VIEW_BASIC, size, func(*graphdv1.Thread) bool { return true })
		require.Equal(t, "SEARCH_TOO_BROAD", reasonOf(err))
		require.GreaterOrEqual(t, threads.listed, mostSearched)
		require.LessOrEqual(t, threads.listed, mostSearched+2*searchedPage)
	}
}
