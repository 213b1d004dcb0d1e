package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

type fakeWorkers []runtime.Worker

func (w fakeWorkers) Workers(context.Context) ([]runtime.Worker, error) { return w, nil }

func TestListWorkers(t *testing.T) {
	none, err := startServer(t, newFakeEngine()).ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Empty(t, none.GetWorkers())

	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.Workers = fakeWorkers{
			{ID: "w1", Nodes: []string{"g/a"}, Slots: 4, FreeSlots: 1, LastHeartbeat: time.Unix(9, 0), Draining: true, Build: "b"},
			{ID: "w2", Nodes: []string{"gg/a"}},
			{ID: "w3", Nodes: []string{"x/y", "g/b"}},
		}
	})
	page, err := c.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{Graph: "g", PageSize: 1})
	require.NoError(t, err)
	w := page.GetWorkers()[0]
	require.Equal(t, []any{"w1", uint32(4), uint32(1), int64(9), true, "b"}, []any{
		w.GetWorkerId(), w.GetTotalSlots(), w.GetFreeSlots(), w.GetLastBeatTime().GetSeconds(), w.GetDraining(), w.GetBuildId(),
	})
	page, err = c.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{
		Graph: "g", PageSize: 1, PageToken: page.GetNextPageToken(),
	})
	require.NoError(t, err)
	require.Equal(t, "w3", page.GetWorkers()[0].GetWorkerId())
	require.Empty(t, page.GetNextPageToken())
}
