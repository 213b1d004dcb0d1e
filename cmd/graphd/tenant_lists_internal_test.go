package main

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// TestListsOfTenantsBesideEachOther reads lists of two tenants page by page, in turn, as one
// caller with both. A token or a position of one tenant is refused in the other.
func TestListsOfTenantsBesideEachOther(t *testing.T) {
	s := startAccessServer(t)
	root := s.as(t.Context(), "root")
	inTenant := map[string]context.Context{"default": root, otherTenant: choose(root, otherTenant)}
	runs := graphdv1.NewGraphServiceClient(s.conn)
	want := map[string][]string{"default": {"asking", "hidden", "open"}, otherTenant: {"asking", "hidden", "open"}}
	for i := range 8 {
		for owner, ctx := range inTenant {
			id := fmt.Sprintf("same-%d", i)
			if i%2 > 0 {
				id = owner + "-" + id
			}
			spec := &graphdv1.RunSpec{ThreadId: id, CreateThread: true, Graph: "asking", Start: &graphdv1.RunSpec_Input{Input: jsonPayload("{}")}}
			require.NoError(t, errOf(runs.StartRun(ctx, &graphdv1.StartRunRequest{Run: spec})))
			require.NoError(t, errOf(runs.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: id})))
			want[owner] = append(want[owner], id)
		}
	}
	for name, list := range newLists(s.conn) {
		got := readInTurn(t, list, inTenant)
		for owner := range inTenant {
			expected := want[owner]
			switch name {
			case "graphs":
				expected = expected[:3]
			case "interrupts":
				expected = expected[3:]
			}
			require.ElementsMatch(t, expected, got[owner], "%s of %s", name, owner)
		}
	}
	requirePositionsOfOneTenant(t, s, inTenant)
}

// readPage reads a page of a list: the names of its items, and the token of the next page.
type readPage func(ctx context.Context, token string) (names []string, next string, err error)

// newLists returns the lists that a server has, by what is in them.
func newLists(conn *grpc.ClientConn) map[string]readPage {
	threads, inbox := graphdv1.NewThreadServiceClient(conn), graphdv1.NewInterruptServiceClient(conn)
	registry := graphdv1.NewRegistryServiceClient(conn)
	return map[string]readPage{
		"threads": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 3, PageToken: token})
			for _, th := range page.GetThreads() {
				names = append(names, th.GetThreadId())
			}
			return names, page.GetNextPageToken(), err
		},
		"interrupts": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := inbox.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{PageSize: 3, PageToken: token})
			for _, q := range page.GetInterrupts() {
				names = append(names, q.GetThreadId())
			}
			return names, page.GetNextPageToken(), err
		},
		"graphs": func(ctx context.Context, token string) (names []string, next string, err error) {
			page, err := registry.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: 2, PageToken: token})
			for _, g := range page.GetGraphs() {
				names = append(names, g.GetGraph())
			}
			return names, page.GetNextPageToken(), err
		},
	}
}

// readInTurn reads a list in each tenant to its end, a page at a time. It tries the token of
// each page in the other tenants.
func readInTurn(t *testing.T, read readPage, inTenant map[string]context.Context) map[string][]string {
	t.Helper()
	got, tokens := map[string][]string{}, map[string]string{}
	for owner := range inTenant {
		tokens[owner] = ""
	}
	for len(tokens) > 0 {
		for owner, token := range maps.Clone(tokens) {
			names, next, err := read(inTenant[owner], token)
			require.NoError(t, err)
			got[owner] = append(got[owner], names...)
			if tokens[owner] = next; next == "" {
				delete(tokens, owner)
				continue
			}
			for foreign, ctx := range inTenant {
				if foreign != owner {
					_, _, err := read(ctx, next)
					require.Equal(t, "INVALID_PAGE_TOKEN", reasonOfRefusal(err))
				}
			}
		}
	}
	return got
}

// requirePositionsOfOneTenant continues the watches of a tenant in another one, where the
// thread has the same id.
func requirePositionsOfOneTenant(t *testing.T, s *accessServer, inTenant map[string]context.Context) {
	t.Helper()
	for owner, ctx := range inTenant {
		following, leave := context.WithCancel(ctx)
		inbox, err := graphdv1.NewInterruptServiceClient(s.conn).WatchInterrupts(following, &graphdv1.WatchInterruptsRequest{})
		require.NoError(t, err)
		var token string
		for token == "" {
			change, err := inbox.Recv()
			require.NoError(t, err)
			token = change.GetResumeToken()
		}
		leave()
		thread, err := graphdv1.NewThreadServiceClient(s.conn).GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "same-0"})
		require.NoError(t, err)
		for foreign, other := range inTenant {
			if foreign == owner {
				continue
			}
			_, err = readAll(graphdv1.NewInterruptServiceClient(s.conn).WatchInterrupts(other, &graphdv1.WatchInterruptsRequest{ResumeToken: token}))
			require.Equal(t, "INVALID_CURSOR", reasonOfRefusal(err))
			_, err = readAll(graphdv1.NewGraphServiceClient(s.conn).Watch(other, &graphdv1.WatchRequest{
				ThreadId: "same-0", Start: &graphdv1.WatchRequest_After{After: thread.GetHead()},
			}))
			require.Equal(t, "INVALID_CURSOR", reasonOfRefusal(err))
		}
	}
}
