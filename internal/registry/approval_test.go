package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// comparison is an approval that notes which version it compares with. While it decides,
// another server makes the next one of the changes.
type comparison struct {
	t       *testing.T
	graphs  *registry.Registry
	changes []func()
	refusal error // after the last change

	compared []string
}

func (c *comparison) approveChange(ctx context.Context) error {
	e, err := c.graphs.GetGraph(ctx, "g", "")
	if !errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphNotFound}) {
		require.NoError(c.t, err)
		c.compared = append(c.compared, e.Graph.Version)
	} else {
		c.compared = append(c.compared, "none")
	}
	if len(c.changes) == 0 {
		return c.refusal
	}
	change := c.changes[0]
	c.changes = c.changes[1:]
	change()
	return nil
}

func (c *comparison) approvePut(ctx context.Context, _ *graph.Graph) error {
	return c.approveChange(ctx)
}

func listVersions(t *testing.T, store checkpoint.Graphs) (versions []string) {
	t.Helper()
	records, err := store.GraphRecords(t.Context())
	require.NoError(t, err)
	for _, r := range records {
		versions = append(versions, r.Name+"@"+r.Version)
	}
	return versions
}

// A version is stored beside the versions with which its approval has compared, and a
// version is deleted from among them.
func TestApprovalsAreForTheVersionsThatThereAre(t *testing.T) {
	refusal := errors.New("refused")
	for name, change := range map[string]func(r *registry.Registry, c *comparison) error{
		"put": func(r *registry.Registry, c *comparison) error {
			_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v9", "9"), Approve: c.approvePut})
			return err
		},
		"delete": func(r *registry.Registry, c *comparison) error {
			_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v0", Approve: c.approveChange})
			return err
		},
		"delete all": func(r *registry.Registry, c *comparison) error {
			_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Approve: c.approveChange})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []error{nil, refusal} {
				store := memory.New(memory.Options{})
				one, two := openRegistry(t, store), openRegistry(t, store)
				putGraph(t, one, graphText("g", "v0", "0"))
				c := &comparison{t: t, graphs: one, refusal: end, changes: []func(){
					func() { putGraph(t, two, graphText("g", "v1", "1")) },
					func() {
						_, err := two.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v1"})
						require.NoError(t, err)
						putGraph(t, two, graphText("g", "v2", "2"))
					},
				}}
				err := change(one, c)
				require.ErrorIs(t, err, end)
				require.Equal(t, []string{"v0", "v1", "v2"}, c.compared)
				want := []string{"g@v0", "g@v2"}
				if end == nil {
					want = map[string][]string{"put": {"g@v0", "g@v2", "g@v9"}, "delete": {"g@v2"}}[name]
				}
				require.Equal(t, want, listVersions(t, store))
			}
		})
	}
}

// Versions of other graphs change no decision, and a version that the server has needs none.
func TestApprovalsAreMadeOnce(t *testing.T) {
	for name, store := range map[string]checkpoint.Graphs{"stored": memory.New(memory.Options{}), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			r := openRegistry(t, store)
			c := &comparison{t: t, graphs: r, changes: []func(){func() { putGraph(t, r, graphText("h", "v1", "1")) }}}
			for range 2 {
				_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "1"), Approve: c.approvePut})
				require.NoError(t, err)
			}
			require.Equal(t, []string{"none"}, c.compared)

			c.changes = []func(){func() { putGraph(t, r, graphText("g", "v2", "2")) }}
			_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v3", "3"), Approve: c.approvePut})
			require.NoError(t, err)
			require.Equal(t, []string{"none", "v1", "v2"}, c.compared)
		})
	}
}

// A version that another call has deleted meanwhile is gone.
func TestDeletionsMeet(t *testing.T) {
	store := memory.New(memory.Options{})
	one, two := openRegistry(t, store), openRegistry(t, store)
	putGraph(t, one, graphText("g", "v1", "1"))
	c := &comparison{t: t, graphs: one, changes: []func(){func() {
		_, err := two.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g"})
		require.NoError(t, err)
	}}}
	_, err := one.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Approve: c.approveChange})
	require.NoError(t, err, "it was deleted meanwhile")
	_, err = one.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Approve: c.approveChange})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphNotFound})
}
