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

// putForTenant puts a graph for a tenant.
func putForTenant(t *testing.T, r *registry.Registry, owner, document string) runtime.GraphEntry {
	t.Helper()
	e, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Tenant: owner, Document: document})
	require.NoError(t, err)
	return e
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
	o := newOptions(t, store)
	o.Threads = store
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "acme@g", putForTenant(t, r, "acme", graphText("g", "v1", "2")).Graph.Name)
	putForTenant(t, r, "acme", graphText("secretive", "v1", "1"))
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
	_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "acme@g"})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphInUse})
	require.ErrorContains(t, err, `graph "g" can't be deleted: threads are pinned to it, among them t;`)
	gone, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g"})
	require.NoError(t, err)
	require.Equal(t, []string{"v1"}, gone)
	require.Equal(t, []string{"h"}, listNames(t, r, tenant.Default))
	require.Equal(t, []string{"acme@g", "acme@secretive"}, listNames(t, r, "acme"))
	_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "h"})
	require.NoError(t, err)
	require.Empty(t, listNames(t, r, tenant.Default))
}

// A graph of a tenant and its subgraphs have the names of the tenant in their sources, and
// those of the store when they are compiled, in this server and in the next.
func TestSubgraphsOfTenants(t *testing.T) {
	store := memory.New(memory.Options{})
	r := openRegistry(t, store)
	for owner, value := range map[string]string{tenant.Default: "1", "acme": "2"} {
		putForTenant(t, r, owner, graphText("inner", "v"+value, value))
		putForTenant(t, r, owner, wrappingGraph("outer", "v1", "inner", `""`))
	}
	for _, server := range []*registry.Registry{r, openRegistry(t, store)} {
		for owner, want := range map[string][]string{
			tenant.Default: {"outer", "inner", "v1"}, "acme": {"acme@outer", "acme@inner", "v2"},
		} {
			name, err := tenant.Qualify(owner, "outer")
			require.NoError(t, err)
			g, err := server.Graph(name, "v1")
			require.NoError(t, err)
			require.Equal(t, "outer", g.Spec.Name)
			for _, n := range g.Nodes {
				if n.Sub != nil {
					require.Equal(t, want, []string{g.Name, n.Sub.Name, n.Sub.Version})
				}
			}
		}
		_, err := server.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "acme@inner"})
		require.ErrorContains(t, err, `graph "inner" can't be deleted: other graphs contain it: outer@v1`)
	}
	_, err := r.Graph("acme@iner", "")
	require.Equal(t, `unknown graph "iner"; did you mean "inner"?; known: inner, outer`, requireRefused(t, err, runtime.ReasonGraphNotFound).Message)
}

func TestPutForTenantsThatCannotBe(t *testing.T) {
	r := openRegistry(t, memory.New(memory.Options{}))
	_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Tenant: "a b", Document: graphText("g", "v1", "1")})
	requireRefusedField(t, err, "tenant")
	for _, owner := range []string{"", "acme"} {
		_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Tenant: owner, Document: graphText("acme@g", "v1", "1")})
		require.ErrorContains(t, err, "contains '@'")
		_, err = r.PutGraph(t.Context(), runtime.PutGraphRequest{Tenant: owner, Document: wrappingGraph("outer", "v1", "acme@g", "v1")})
		require.ErrorContains(t, err, `unknown graph "acme@g" version "v1"`)
	}
	require.Empty(t, listNames(t, r, tenant.Default))
	require.Empty(t, listNames(t, r, "acme"))
}

func requireRefusedField(t *testing.T, err error, field string) {
	t.Helper()
	require.Equal(t, field, requireRefused(t, err, runtime.ReasonInvalidField).Meta["field"])
}

// graphLimits are how many graphs each tenant may have.
type graphLimits map[string]int64

func (l graphLimits) FindTenantLimit(tenant string, of runtime.Holding) int64 {
	if most, ok := l[tenant]; ok && of == runtime.HoldingGraphs {
		return most
	}
	return runtime.NoTenantLimit
}

// A tenant has as many graphs as its own limit says, with any number of versions, also when
// the server starts again. Others have theirs.
func TestTenantsHaveALimitOfGraphs(t *testing.T) {
	store := memory.New(memory.Options{})
	o := newOptions(t, store)
	limits := graphLimits{"acme": 2}
	o.Tenants = limits
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	refuse := func(r *registry.Registry, name string) {
		t.Helper()
		_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Tenant: "acme", Document: graphText(name, "v1", "1")})
		refused := requireRefused(t, err, runtime.ReasonQuotaExceeded)
		require.Equal(t, map[string]string{"limit": "graphs", "most": "2", "of": "tenant"}, refused.Meta)
		require.Equal(t, "tenant:acme/graphs", refused.Quota)
		require.Contains(t, refused.Message, `the tenant "acme" has 2 graphs already, its limit`)
	}
	putForTenant(t, r, "acme", graphText("a", "v1", "1"))
	putForTenant(t, r, "acme", graphText("b", "v1", "1"))
	refuse(r, "c")
	putForTenant(t, r, "acme", graphText("b", "v1", "1"))
	putForTenant(t, r, "acme", graphText("b", "v2", "2"))
	for _, name := range []string{"a", "b", "c"} {
		putForTenant(t, r, "other", graphText(name, "v1", "1"))
		putGraph(t, r, graphText(name, "v1", "1"))
	}

	again, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	refuse(again, "c")
	_, err = again.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "acme@a"})
	require.NoError(t, err)
	putForTenant(t, again, "acme", graphText("c", "v1", "1"))
	limits["acme"] = 1
	putForTenant(t, again, "acme", graphText("c", "v2", "2"))
	require.Equal(t, []string{"acme@b", "acme@c"}, listNames(t, again, "acme"), "a lower limit removes nothing")
}
