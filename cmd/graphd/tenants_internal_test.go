package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// TestNothingOfATenantLeaves makes every call in one tenant beside another with the same ids,
// and looks at all that comes back: nothing names the tenant itself, nor anything of the
// other one.
func TestNothingOfATenantLeaves(t *testing.T) {
	for name, store := range map[string]string{
		"memory": "memory",
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "graphd.db"),
		"redis":  redistest.Start(t).URL(""),
	} {
		t.Run(name, func(t *testing.T) { testNothingLeaves(t, store) })
	}
}

func testNothingLeaves(t *testing.T, store string) {
	t.Helper()
	clients := startTenants(t, store, "acme", "zenith")
	toEndpoint := newOverheard()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	far := grpc.NewServer(grpc.StatsHandler(toEndpoint))
	graphdv1.RegisterNodeServiceServer(far, &farService{clients: clients})
	go func() { _ = far.Serve(l) }()
	t.Cleanup(far.Stop)
	for _, c := range clients {
		c.setUp(l.Addr().String())
	}
	acme, zenith := clients["acme"], clients["zenith"]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	idle := zenith.connectAs(ctx, "w1", 4)

	acme.readEverything()
	acme.changeEverything()
	acme.runAtEndpoint()
	acme.runAtWorkers(ctx, zenith)
	acme.provokeErrors()
	acme.removeEverything()

	zenith.requireUntouched(idle)
	for _, row := range access.Methods() {
		if row.Scope != access.ScopeEndpoint && !strings.HasPrefix(row.Method, "/grpc.") {
			require.NotEmpty(t, acme.heard.texts[row.Method], "nothing was called: %s", row.Method)
		}
	}
	acme.heard.requireNothingOf(t, "acme@", "zenith")
	zenith.heard.requireNothingOf(t, "zenith@", "acme")
	toEndpoint.requireNothingOf(t, "acme@", "zenith")
	require.Contains(t, strings.Join(acme.heard.texts[graphdv1.GraphService_Watch_FullMethodName], " "), "graphd-thread-id:[t-asking]")
	t.Logf("reasons: %s", slices.Sorted(maps.Keys(acme.heard.reasons)))
	for _, reason := range []string{
		"ACCESS_DENIED", "ASSISTANT_EXISTS", "ASSISTANT_NOT_FOUND", "CHECKPOINT_CONFLICT", "CHECKPOINT_NOT_FOUND", "CRON_EXISTS", "CRON_NOT_FOUND", "ETAG_MISMATCH", "GRAPH_EXISTS", "GRAPH_IN_USE", "GRAPH_NOT_FOUND",
		"GRAPH_VERSION_UNAVAILABLE", "INPUT_SCHEMA_MISMATCH", "INTERRUPT_ALREADY_RESOLVED", "INTERRUPT_NOT_FOUND", "INVALID_CURSOR", "INVALID_FIELD",
		"INVALID_GRAPH", "INVALID_PAGE_TOKEN", "ITEM_NOT_FOUND", "NODE_NOT_FOUND", "REQUEST_ID_CONFLICT", "RESPONSE_AMBIGUOUS", "RUN_EXISTS", "RUN_NOT_FOUND",
		"TASK_LEASE_LOST", "THREAD_BUSY", "THREAD_EXISTS", "THREAD_INTERRUPTED", "THREAD_NOT_FOUND", "THREAD_NOT_INTERRUPTED", "WORKER_REPLACED",
	} {
		require.True(t, acme.heard.reasons[reason], "%s was not provoked", reason)
	}
}

// requireUntouched checks that the tenant has what setUp has made, and that its worker got
// nothing but its own task.
func (c *tenantClient) requireUntouched(worker graphdv1.WorkerService_ConnectClient) {
	t := c.t
	thread, err := c.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: "t-flow", View: graphdv1.ThreadView_THREAD_VIEW_FULL})
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"x": "value of %[1]s", "y": "value of %[1]s"}`, c.name), thread.GetValues().GetJson())
	_, err = c.StartRun(c.ctx, &graphdv1.StartRunRequest{Run: c.newRun("t-remote", "remote")})
	require.NoError(t, err)
	task := nextTask(t, worker)
	require.Equal(t, "t-remote remote", task.GetThreadId()+" "+task.GetGraph())
	require.JSONEq(t, fmt.Sprintf(`"value of %s"`, c.name), task.GetChannels()["x"].GetJson())
	_, err = c.CompleteTask(c.ctx, &graphdv1.CompleteTaskRequest{LeaseToken: task.GetLease().GetToken(), Result: c.completed()})
	require.NoError(t, err)
	_, err = c.WaitRun(c.ctx, &graphdv1.WaitRunRequest{ThreadId: "t-remote"})
	require.NoError(t, err)
}
