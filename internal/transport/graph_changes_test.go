package transport_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/permission"
)

// interleavedRegistry is a registry with another call in the middle of the first change:
// after a version was read to compare with.
type interleavedRegistry struct {
	*registry.Registry

	inBetween func()
}

func (r *interleavedRegistry) GetGraph(ctx context.Context, name, version string) (runtime.GraphEntry, error) {
	entry, err := r.Registry.GetGraph(ctx, name, version)
	if call := r.inBetween; call != nil {
		r.inBetween = nil
		call()
	}
	return entry, err
}

// noThreads has no threads.
type noThreads struct{}

func (noThreads) ReadGraph(_ context.Context, thread string) (string, error) {
	return "", runtime.ThreadNotFoundError(thread)
}

// startGraphServer starts a server whose graphs ana may put, without approve-changes.
func startGraphServer(t *testing.T) (testClient, *interleavedRegistry) {
	t.Helper()
	compiler, err := expr.New(expr.Options{})
	require.NoError(t, err)
	graphs, err := registry.New(t.Context(), registry.Options{
		Store: memory.New(memory.Options{}), Env: graph.Env{Expressions: compiler},
	})
	require.NoError(t, err)
	policy, err := access.Parse("policy.yaml", []byte("bindings: [{roles: [author], principals: [ana]}]"))
	require.NoError(t, err)
	authorizer, err := permission.New(permission.Options{
		Policy: func() *access.Policy { return policy }, Threads: noThreads{}, Now: time.Now,
	})
	require.NoError(t, err)
	r := &interleavedRegistry{Registry: graphs}
	return startServer(t, newFakeEngine(), withCallers, func(o *transport.Options) {
		o.Access, o.Registry, o.TokenKey = authorizer, r, make([]byte, 32)
	}), r
}

// stoppingGraph returns a version of a graph that stops before its node, if asks.
func stoppingGraph(version string, asks bool) string {
	text := "graph: g\nversion: " + version + "\nchannels: {x: {}}\nnodes:\n  n: {expr: {update: {x: '1'}}}\nedges: [START -> n]\n"
	if asks {
		text += "interrupt_before: [n]\n"
	}
	return text
}

func (c testClient) putDocument(ctx context.Context, document string) error {
	_, err := c.PutGraph(ctx, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: document}})
	return err
}

// Of two versions that are put at the same time, the second one is compared with the
// first one.
func TestPutsAtTheSameTimeRemoveNoQuestion(t *testing.T) {
	c, graphs := startGraphServer(t)
	ana := withHeaders(t, "Bearer token-of-ana")
	require.NoError(t, c.putDocument(ana, stoppingGraph("v1", false)))
	graphs.inBetween = func() { require.NoError(t, c.putDocument(ana, stoppingGraph("v2", true))) }
	err := c.putDocument(ana, stoppingGraph("v3", false))
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	require.ErrorContains(t, err, `the breakpoint before "n"`)
	g, err := c.GetGraph(ana, &graphdv1.GetGraphRequest{Graph: "g"})
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, g.GetVersions())
}

// Of two deletions at the same time, each of which leaves a version that asks, one leaves
// it.
func TestDeletionsAtTheSameTimeRemoveNoQuestion(t *testing.T) {
	c, graphs := startGraphServer(t)
	ana := withHeaders(t, "Bearer token-of-ana")
	remove := func(version string) error {
		_, err := c.DeleteGraphVersion(ana, &graphdv1.DeleteGraphVersionRequest{Graph: "g", Version: version})
		return err
	}
	require.NoError(t, c.putDocument(ana, stoppingGraph("v1", true)))
	require.NoError(t, c.putDocument(ana, stoppingGraph("v2", true)))
	graphs.inBetween = func() { require.NoError(t, remove("v2")) }
	err := remove("v1")
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	g, err := c.GetGraph(ana, &graphdv1.GetGraphRequest{Graph: "g"})
	require.NoError(t, err)
	require.Equal(t, []string{"v1"}, g.GetVersions())
}
