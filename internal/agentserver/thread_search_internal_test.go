package agentserver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// endlessThreads is a service with threads without end.
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
		f := &threadFilter{text: onlyUUIDs}
		err := c.visitThreads(f, 0, graphdv1.ThreadView_THREAD_VIEW_BASIC, size, func(*graphdv1.Thread) bool { return true })
		require.Equal(t, "SEARCH_TOO_BROAD", reasonOf(err))
		require.GreaterOrEqual(t, threads.listed, mostSearched)
		require.LessOrEqual(t, threads.listed, mostSearched+2*searchedPage)
	}
}

// recordedThreads is a service with some threads, which says what it was asked for.
type recordedThreads struct {
	graphdv1.ThreadServiceClient

	total   *int32
	threads []*graphdv1.Thread
	asked   []*graphdv1.ListThreadsRequest
}

func (r *recordedThreads) ListThreads(_ context.Context, q *graphdv1.ListThreadsRequest, _ ...grpc.CallOption) (*graphdv1.ListThreadsResponse, error) {
	r.asked = append(r.asked, q)
	return &graphdv1.ListThreadsResponse{Threads: r.threads[min(int(q.GetOffset()), len(r.threads)):], TotalSize: r.total}, nil
}

func TestAnIndexPassesOverWhatItFinds(t *testing.T) {
	for _, c := range []struct {
		name      string
		metadata  metadata
		isIndexed bool
	}{
		{"nothing", nil, true},
		{"a text", metadata{"user": json.RawMessage(`"ana"`)}, true},
		{"a text with the same label as a number", metadata{"user": json.RawMessage(`"7"`)}, false},
		{"a number", metadata{"user": json.RawMessage(`7`)}, false},
		{"an object", metadata{"user": json.RawMessage(`{"name":"ana"}`)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			threads := &recordedThreads{}
			labels, err := c.metadata.toLabels()
			require.NoError(t, err)
			for range 5 {
				threads.threads = append(threads.threads, &graphdv1.Thread{Metadata: labels})
			}
			call := &call{ctx: t.Context(), threads: threads}
			f, err := (&threadSearch{Metadata: c.metadata, Status: "idle"}).buildFilter(call)
			require.NoError(t, err)
			require.Equal(t, c.isIndexed, len(f.rest) == 0)
			if !c.isIndexed {
				ids, err := call.findThreadIDs(f, 3, 10)
				require.NoError(t, err)
				require.Len(t, ids, 2, "it is compared")
				require.Zero(t, threads.asked[0].GetOffset())
				return
			}
			n := 0
			require.NoError(t, call.visitThreads(f, 3, graphdv1.ThreadView_THREAD_VIEW_BASIC, 10, func(*graphdv1.Thread) bool { n++; return true }))
			require.Equal(t, 2, n)
			require.Len(t, threads.asked, 1)
			require.EqualValues(t, 3, threads.asked[0].GetOffset())
			require.Contains(t, threads.asked[0].GetFilter(), `uuid = "true" AND state = "IDLE"`)
		})
	}
}

func TestACountAsksTheIndex(t *testing.T) {
	for _, c := range []struct {
		total   *int32
		counted int
		refused string
	}{
		{proto.Int32(70_000), 70_000, ""},
		{proto.Int32(0), 0, ""},
		{proto.Int32(mostSearched), mostSearched, ""},
		{proto.Int32(mostSearched + 1), 0, "SEARCH_TOO_BROAD"},
		{nil, 3, ""}, // for a caller who sees only some threads
	} {
		threads := &recordedThreads{total: c.total, threads: make([]*graphdv1.Thread, 3)}
		n, err := new(threadSearch).countThreads(&call{ctx: t.Context(), threads: threads})
		require.Equal(t, c.counted, n)
		require.Equal(t, c.refused, reasonOf(err))
		require.True(t, threads.asked[0].GetCountTotal())
	}
}
