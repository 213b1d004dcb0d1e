package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// putForTenant stores a graph for a tenant, as a server has put it that knows the tenant.
func putForTenant(t *testing.T, store *memory.Store, owner, name, document string) {
	t.Helper()
	scratch := memory.New(memory.Options{})
	putGraph(t, openRegistry(t, scratch), document)
	all, err := scratch.GraphRecords(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	all[0].Name, err = tenant.Qualify(owner, name)
	require.NoError(t, err)
	require.NoError(t, store.PutGraph(t.Context(), all[0]))
}

func listNames(t *testing.T, r *registry.Registry, owner string) []string {
	t.Helper()
	list, more, err := r.ListGraphs(t.Context(), owner, "", 100)
	require.NoError(t, err)
	require.False(t, more)
	names := []string{}
	for _, e := range list {
		names = append(names, e.Graph.Name)
	}
	return names
}

// A tenant sees its graphs alone: in lists, in what is suggested for a name, in what keeps a
// graph from being deleted, and as subgraphs.
func TestGraphsOfTenants(t *testing.T) {
	store := memory.New(memory.Options{})
	putForTenant(t, store, "acme", "g", graphText("g", "v1", "2"))
	putForTenant(t, store, "acme", "secretive", graphText("secretive", "v1", "1"))
	o := newOptions(t, store)
	o.Threads = store
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	putGraph(t, r, graphText("g", "v1", "1"))
	putGraph(t, r, graphText("h", "v1", "1"))

	require.Equal(t, []string{"g", "h"}, listNames(t, r, tenant.Default))
	require.Equal(t, []string{"acme@g", "acme@secretive"}, listNames(t, r, "acme"))
	for _, none := range []string{"b", "acm", ""} {
		require.Empty(t, listNames(t, r, none), none)
	}
	page, more, err := r.ListGraphs(t.Context(), "acme", "acme@g", 1)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, "acme@secretive", page[0].Graph.Name)

	_, err = r.Graph("secretiv", "")
	require.NotContains(t, requireRefused(t, err, runtime.ReasonGraphNotFound).Error(), "acme")
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: wrappingGraph("outer", "v1", "acme@g", "v1")})
	require.ErrorContains(t, err, `unknown graph "acme@g" version "v1"`)
	_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: wrappingGraph("outer", "v1", "acme@g", `""`)})
	require.ErrorContains(t, err, `unknown graph "acme@g"`)

	_, err = store.Apply(t.Context(), &checkpoint.Change{
		Thread: "acme@t", Head: checkpoint.Head{Thread: "acme@t", Graph: "acme@g", Version: "v1"},
	})
	require.NoError(t, err)
	_, err = r.DeleteGraph(t.Context(), "acme@g", "", false)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphInUse})
	gone, err := r.DeleteGraph(t.Context(), "g", "", false)
	require.NoError(t, err)
	require.Equal(t, []string{"v1"}, gone)
	require.Equal(t, []string{"h"}, listNames(t, r, tenant.Default))
	require.Equal(t, []string{"acme@g", "acme@secretive"}, listNames(t, r, "acme"))
	_, err = r.DeleteGraph(t.Context(), "h", "", false)
	require.NoError(t, err)
	require.Empty(t, listNames(t, r, tenant.Default))
}
