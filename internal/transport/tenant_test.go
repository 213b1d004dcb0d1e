package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/wire"
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

// callersOfTenants knows the token "TENANT,TENANT…" of a caller with these tenants, the first
// of which is its own; "-" stands for a caller with none.
type callersOfTenants struct{}

func (callersOfTenants) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	switch given.Token {
	case "":
		return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
	case "-":
		return identity.Principal{Name: "ana", How: identity.HowJWT}, nil
	}
	all := strings.Split(given.Token, ",")
	return identity.Principal{Name: "ana", How: identity.HowJWT, Tenant: all[0], Tenants: all}, nil
}

func withTenants(o *transport.Options) { o.Authenticator = callersOfTenants{} }

// inTenant returns the context of a call of a caller with tenants that sends each value as
// a header.
func inTenant(ctx context.Context, tenants string, headers ...string) context.Context {
	md := metadata.MD{"graphd-tenant": headers}
	if tenants != "" {
		md.Set("authorization", "Bearer "+tenants)
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// The tenant of a call is that of its caller, or one that its header chooses among the
// caller's.
func TestTheTenantOfACall(t *testing.T) {
	const denied, invalid = "ACCESS_DENIED tenant", "INVALID_FIELD graphd-tenant"
	long := strings.Repeat("n", 65)
	for name, c := range map[string]struct {
		tenants string // "" = the server does not know its callers
		headers []string
		want    string // the thread that is read, or the refusal
	}{
		"its own":                      {"acme,zen", nil, "acme@t"},
		"chosen":                       {"acme,zen", []string{"zen"}, "zen@t"},
		"its own by name":              {"acme", []string{"acme"}, "acme@t"},
		"none":                         {"-", nil, "t"},
		"none by name":                 {"-", []string{"default"}, "t"},
		"not its own":                  {"acme", []string{"zen"}, denied},
		"one that nobody has":          {"acme", []string{"nobody"}, denied},
		"the default":                  {"acme", []string{"default"}, denied},
		"a part of its own":            {"acme,zen", []string{"acm"}, denied},
		"in another case":              {"acme", []string{"ACME"}, denied},
		"none of those without one":    {"-", []string{"acme"}, denied},
		"twice":                        {"acme,zen", []string{"zen", "zen"}, invalid},
		"two":                          {"acme,zen", []string{"acme", "zen"}, invalid},
		"empty":                        {"acme", []string{""}, invalid},
		"two in one":                   {"acme,zen", []string{"acme,zen"}, invalid},
		"with a separator":             {"acme,zen", []string{"acme@zen"}, invalid},
		"a whole id":                   {"acme", []string{"acme@t"}, invalid},
		"with a space":                 {"acme", []string{"acme zen"}, invalid},
		"too long":                     {"acme", []string{long}, invalid},
		"credentials that name no one": {"a b", nil, denied},
		"of unknown callers":           {"", nil, "t"},
		"of unknown callers by name":   {"", []string{"default"}, "t"},
		"others of unknown callers":    {"", []string{"acme"}, denied},
		"two of unknown callers":       {"", []string{"default", "default"}, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			var options []func(*transport.Options)
			if c.tenants != "" {
				options = append(options, withTenants)
			}
			client := startServer(t, e, options...)
			ctx := inTenant(t.Context(), c.tenants, c.headers...)
			_, unary := client.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: "t"})
			streamed := callMethod(ctx, t, client.conn, graphdv1.InterruptService_WatchInterrupts_FullMethodName)
			if !strings.Contains(c.want, " ") {
				require.NoError(t, unary)
				require.NoError(t, streamed)
				e.mu.Lock()
				defer e.mu.Unlock()
				require.Equal(t, runtime.StateRequest{Thread: c.want, MaxBytes: wire.DefaultMaxMessage}, e.requests[0])
				owner, _ := tenant.Split(c.want)
				for _, q := range e.requests[1:] {
					query, ok := q.(checkpoint.InterruptQuery)
					require.True(t, ok)
					require.Equal(t, owner, query.Tenant)
				}
				return
			}
			for _, err := range []error{unary, streamed} {
				told := requireErrorInfo(t, err)
				meta := told.GetMetadata()
				require.Equal(t, c.want, told.GetReason()+" "+meta["rule"]+meta["field"])
				require.Empty(t, e.requests)
			}
		})
	}
}

// Whether a tenant exists does not show, and a caller without credentials learns nothing
// about its header. Health checks have no tenant.
func TestTheHeaderTellsNothingOfTenants(t *testing.T) {
	c := startServer(t, newFakeEngine(), withTenants)
	_, there := c.GetThread(inTenant(t.Context(), "acme", "zen"), &graphdv1.GetThreadRequest{ThreadId: "t"})
	_, absent := c.GetThread(inTenant(t.Context(), "acme", "nil"), &graphdv1.GetThreadRequest{ThreadId: "t"})
	require.Equal(t, status.Convert(there).Proto().String(),
		strings.ReplaceAll(status.Convert(absent).Proto().String(), "nil", "zen"), "but for the name that the caller has sent")
	for _, header := range []string{"zen", "a b"} {
		_, err := c.GetThread(inTenant(t.Context(), "", header), &graphdv1.GetThreadRequest{ThreadId: "t"})
		require.Equal(t, "NO_CREDENTIALS", requireErrorInfo(t, err).GetReason())
		_, err = healthpb.NewHealthClient(c.conn).Check(inTenant(t.Context(), "", header), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
	}
}

// Quotas, records and lines of the log have the tenant that a call has chosen.
func TestTheChosenTenantCounts(t *testing.T) {
	a := &fakeAuditor{}
	core, lines := observer.New(zap.InfoLevel)
	_, quotas := withQuotas(t, "tenant: {calls: {per_second: 0.01, burst: 1}}\n")
	c := startServer(t, newFakeEngine(), withTenants, quotas, func(o *transport.Options) { o.Auditor, o.Log = a, zap.New(core) })
	remove := func(header string) error {
		_, err := c.DeleteThread(inTenant(t.Context(), "acme,zen", header), &graphdv1.DeleteThreadRequest{ThreadId: "t"})
		return err
	}
	require.NoError(t, remove("zen"))
	requireQuota(t, remove("zen"), "RATE_LIMITED", "tenant:zen/calls", map[string]string{"limit": "0.01", "option": "calls", "of": "tenant"})
	require.NoError(t, remove("acme"))
	require.Equal(t, "ACCESS_DENIED", requireErrorInfo(t, remove("other")).GetReason())
	var recorded []string
	for _, r := range a.take() {
		require.Equal(t, "t", r.Thread)
		recorded = append(recorded, r.Tenant+" "+string(r.Outcome)+" "+r.Rule)
	}
	require.Equal(t, []string{"zen ok ", "zen failed ", "acme ok ", "acme refused tenant"}, recorded)
	var logged []string
	for _, line := range lines.FilterMessage("finished call").All() {
		name, _ := line.ContextMap()["tenant"].(string)
		logged = append(logged, name)
		require.NotContains(t, fmt.Sprint(line.ContextMap()), "@")
	}
	require.Equal(t, []string{"zen", "zen", "acme", ""}, logged)
}

// A filter is no field of an id, and names what is in the tenant of the call all the same.
func TestFiltersAreOfTheCallersTenant(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e, withTenants)
	ctx := inTenant(t.Context(), "acme")
	_, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `thread_id = "t" AND graph = "g"`, ThreadId: "t"})
	require.NoError(t, err)
	require.Equal(t, checkpoint.InterruptQuery{
		Tenant: "acme", Thread: "acme@t", Tags: []string{checkpoint.GraphTag("acme@g")}, Limit: 51, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	}, e.lastRequest(t))
	_, err = c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `graph = "g"`})
	require.NoError(t, err)
	require.Equal(t, checkpoint.ThreadQuery{Tenant: "acme", Graph: "acme@g", Limit: 51}, e.lastRequest(t))
	e.runs = []checkpoint.Run{{ID: "r1", Thread: "acme@t", Graph: "acme@g"}, {ID: "r2", Thread: "acme@t", Graph: "acme@h"}}
	runs, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "t", Filter: `graph = "g"`})
	require.NoError(t, err)
	require.Len(t, runs.GetRuns(), 1)
	require.Equal(t, "r1 t g", runs.GetRuns()[0].GetRunId()+" "+runs.GetRuns()[0].GetThreadId()+" "+runs.GetRuns()[0].GetGraph())

	for _, filter := range []string{`thread_id = "zen@t"`, `graph = "zen@g"`, `graph = "acme@g"`} {
		_, err = c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: filter})
		requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
	}
}

// The tokens of a list belong to the tenant in which it was read. Those of the tenant
// default are as they were before others.
func TestTokensAreOfOneTenant(t *testing.T) {
	e := newFakeEngine()
	for i := range 3 {
		id := fmt.Sprintf("t%d", i)
		e.heads = append(e.heads, checkpoint.Head{Thread: id})
		e.runs = append(e.runs, checkpoint.Run{ID: id})
		e.states = append(e.states, runtime.Snapshot{Checkpoint: &checkpoint.Checkpoint{ID: id}})
		e.interrupts = append(e.interrupts, checkpoint.Interrupt{ID: id, Thread: "t", State: checkpoint.InterruptOpen})
	}
	graphs := &fakeRegistry{}
	for _, name := range []string{"a", "b", "c"} {
		graphs.entries = append(graphs.entries, runtime.GraphEntry{Graph: &graph.Graph{Name: name}})
	}
	c := startServer(t, e, withTenants, func(o *transport.Options) { o.Registry = graphs })
	page := map[string]func(ctx context.Context, token string) (string, error){
		"threads": func(ctx context.Context, token string) (string, error) {
			r, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 1, PageToken: token})
			return r.GetNextPageToken(), err
		},
		"runs": func(ctx context.Context, token string) (string, error) {
			r, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: "t", PageSize: 1, PageToken: token})
			return r.GetNextPageToken(), err
		},
		"checkpoints": func(ctx context.Context, token string) (string, error) {
			r, err := c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t", PageSize: 1, PageToken: token})
			return r.GetNextPageToken(), err
		},
		"interrupts": func(ctx context.Context, token string) (string, error) {
			r, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{PageSize: 1, PageToken: token})
			return r.GetNextPageToken(), err
		},
		"graphs": func(ctx context.Context, token string) (string, error) {
			r, err := c.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: 1, PageToken: token})
			return r.GetNextPageToken(), err
		},
	}
	for name, read := range page {
		tokens := map[string]string{}
		for _, owner := range []string{"acme", "zen", "-"} {
			token, err := read(inTenant(t.Context(), owner), "")
			require.NoError(t, err, name)
			require.NotEmpty(t, token, name)
			tokens[owner] = token
		}
		for owner, token := range tokens {
			for _, by := range []string{"acme", "zen", "-"} {
				_, err := read(inTenant(t.Context(), by), token)
				if by == owner {
					require.NoError(t, err, name)
				} else {
					requireReason(t, err, codes.InvalidArgument, "INVALID_PAGE_TOKEN")
				}
			}
		}
	}
}
