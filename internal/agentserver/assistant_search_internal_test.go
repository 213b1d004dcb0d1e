package agentserver

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// manyAssistants is a service with assistants, the newest first: a0 was made last.
type manyAssistants struct {
	graphdv1.AssistantServiceClient
	graphdv1.RegistryServiceClient

	n      int
	inside func(isFirst bool) // nil = nothing is done in a page

	mu     sync.Mutex
	listed int
}

func (m *manyAssistants) ListGraphs(context.Context, *graphdv1.ListGraphsRequest, ...grpc.CallOption) (*graphdv1.ListGraphsResponse, error) {
	made := &timestamppb.Timestamp{Seconds: int64(m.n) - 3, Nanos: 1} // between a2 and a3
	return &graphdv1.ListGraphsResponse{Graphs: []*graphdv1.Graph{{Graph: "g", CreateTime: made}}}, nil
}

func (m *manyAssistants) ListAssistants(_ context.Context, r *graphdv1.ListAssistantsRequest, _ ...grpc.CallOption) (*graphdv1.ListAssistantsResponse, error) {
	if m.inside != nil {
		m.inside(r.GetPageToken() == "")
	}
	from, _ := strconv.Atoi(r.GetPageToken())
	page := &graphdv1.ListAssistantsResponse{}
	for i := from; i < min(from+int(r.GetPageSize()), m.n); i++ {
		made := &timestamppb.Timestamp{Seconds: int64(m.n - i)}
		page.Assistants = append(page.Assistants, &graphdv1.Assistant{AssistantId: fmt.Sprint("a", i), Graph: "g", Name: fmt.Sprint("n", i), CreateTime: made, UpdateTime: made})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed += len(page.GetAssistants())
	if next := from + int(r.GetPageSize()); next < m.n {
		page.NextPageToken = strconv.Itoa(next)
	}
	return page, nil
}

func (m *manyAssistants) newCall(ctx context.Context, s *Server) *call {
	return &call{ctx: ctx, server: s, assistants: m, registry: m}
}

func idsOf(list []listedAssistant) (ids []string) {
	for _, one := range list {
		ids = append(ids, one.id)
	}
	return ids
}

func TestAPageOfAssistantsCostsThePage(t *testing.T) {
	m := &manyAssistants{n: 10_000}
	list, err := (&assistantSearch{}).findFirst(m.newCall(t.Context(), &Server{}), 6)
	require.NoError(t, err)
	require.Equal(t, []string{"a0", "a1", "a2", defaultAssistant("g"), "a3", "a4"}, idsOf(list))
	require.Equal(t, 6, m.listed)
	m.listed = 0
	list, err = (&assistantSearch{Name: "N9"}).findFirst(m.newCall(t.Context(), &Server{}), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"a9", "a90"}, idsOf(list))
	require.Equal(t, graphsPage, m.listed)
}

func TestASearchKeepsThePageAlone(t *testing.T) {
	for by, want := range map[string][]string{
		"created_at": {"a9999", "a9998", "a9997"}, "assistant_id": {defaultAssistant("g"), "a0", "a1"}, "name": {defaultAssistant("g"), "a0", "a1"},
	} {
		m := &manyAssistants{n: 10_000}
		list, err := (&assistantSearch{SortBy: by, SortOrder: "asc"}).findFirst(m.newCall(t.Context(), &Server{scans: newScanSlots()}), 3)
		require.NoError(t, err)
		require.Equal(t, want, idsOf(list), by)
		require.LessOrEqual(t, cap(list), 4*graphsPage, "what is not on the page is not kept")
	}
}

func TestSearchesThatLookAtAllAreFew(t *testing.T) {
	s := &Server{scans: newScanSlots()}
	var mu sync.Mutex
	running, most := 0, 0
	arrived := make(chan struct{}, 100)
	m := &manyAssistants{n: 3 * graphsPage, inside: func(isFirst bool) {
		if isFirst {
			return
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		arrived <- struct{}{}
		mu.Lock()
		running--
		mu.Unlock()
	}}
	var all sync.WaitGroup
	for range 4 * maxScans {
		all.Go(func() {
			_, err := (&assistantSearch{SortBy: "name"}).findFirst(m.newCall(t.Context(), s), 3)
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.LessOrEqual(t, most, maxScans)
	require.Empty(t, s.scans)

	for range maxScans {
		require.NoError(t, s.scans.takeSlot(t.Context()))
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := (&assistantSearch{SortBy: "name"}).findFirst(m.newCall(ended, s), 3)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
