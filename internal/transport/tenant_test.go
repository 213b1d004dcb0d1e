package transport_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// A client can't name a thread or a graph of another tenant, in any field.
func TestNamesOfOtherTenantsAreRefused(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	for name, call := range map[string]func(ctx context.Context) error{
		"thread": func(ctx context.Context) error {
			_, err := c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "acme@t"})
			return err
		},
		"graph": func(ctx context.Context) error {
			_, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "acme@g"})
			return err
		},
		"deleted graph": func(ctx context.Context) error {
			_, err := c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "acme@g"})
			return err
		},
		"deleted version": func(ctx context.Context) error {
			_, err := c.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: "acme@g", Version: "v1"})
			return err
		},
		"graph of a run": func(ctx context.Context) error {
			_, err := c.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{ThreadId: "t", Graph: "acme@g"}})
			return err
		},
		"graph of a thread": func(ctx context.Context) error {
			_, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{Thread: &graphdv1.Thread{Graph: "acme@g"}})
			return err
		},
		"graph of workers": func(ctx context.Context) error {
			_, err := c.ListWorkers(ctx, &graphdv1.ListWorkersRequest{Graph: "acme@g"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context())
			requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
			require.ErrorContains(t, err, "'@'")
		})
	}
}

// A filter is no field of an id, but it finds nothing of another tenant: the query names
// the caller's.
func TestFiltersAreOfTheCallersTenant(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	_, err := c.ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{Filter: `thread_id = "acme@t"`})
	require.NoError(t, err)
	require.Equal(t, checkpoint.InterruptQuery{
		Tenant: tenant.Default, Thread: "acme@t", Limit: 51, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	}, e.lastRequest(t))
	_, err = c.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{Filter: `graph = "acme@g"`})
	require.NoError(t, err)
	require.Equal(t, checkpoint.ThreadQuery{Tenant: tenant.Default, Graph: "acme@g", Limit: 51}, e.lastRequest(t))
}
