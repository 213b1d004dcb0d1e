package checkpointtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// RunTagsUnderKeys checks that questions are found by tag before, during and after a change of
// the encryption keys, and that a store keeps no names under a key. open opens the same
// store with keys; readAll returns everything that it keeps.
func RunTagsUnderKeys(t *testing.T, open func(t *testing.T, options seal.Options) Store, readAll func(t *testing.T) string) {
	t.Helper()
	k1 := seal.Key{ID: "k1", Secret: []byte(strings.Repeat("1", seal.KeySize))}
	k2 := seal.Key{ID: "k2", Secret: []byte(strings.Repeat("2", seal.KeySize))}
	tags := []string{checkpoint.UserTag("ana@example.com"), checkpoint.GroupTag("finance-leads")}
	labels := map[string]string{"customer": "ana@example.com"}
	var threads []*threadDriver
	for i, keys := range [][]seal.Key{{k1}, {k2, k1}, {k1, k2}, {k2, k1}} {
		s := open(t, seal.Options{Keys: keys})
		e := &env{T: t, ctx: t.Context(), store: s}
		for _, th := range threads {
			th.env = e
		}
		th := e.newThread(fmt.Sprint("t", i))
		th.head.Metadata = labels
		threads = append(threads, th)
		ask := setAudience([]string{"ana@example.com"}, []string{"finance-leads"})
		th.putInterrupt("q", ask)
		want := make([]string, len(threads))
		for j, th := range threads {
			want[j] = th.id + "/q"
		}
		for _, tag := range tags {
			require.Equal(t, want, e.listInterrupts(checkpoint.InterruptQuery{Tenant: tenant.Default, States: openStates(), Tags: []string{tag}}))
			require.Equal(t, []int{len(want)}, e.countTags(tag))
		}
		require.Equal(t, want, e.listInterrupts(checkpoint.InterruptQuery{Tenant: tenant.Default, States: openStates(), Tags: tags}))
		require.Equal(t, want, e.listInterrupts(checkpoint.InterruptQuery{Tenant: tenant.Default, States: openStates(), AnyTag: tags}), "each once")
		found := e.listThreads(checkpoint.ThreadQuery{Tenant: tenant.Default, Metadata: labels})
		require.Len(t, found, len(want), "threads are found by metadata, too")
		threads[0].putInterrupt("q", ask)
		require.Equal(t, []int{len(want)}, e.countTags(tags[0]), "written anew under another key")
		require.NoError(t, s.Close())
	}
	all := readAll(t)
	require.NotContains(t, all, "ana@example")
	require.NotContains(t, all, "finance-leads")
	s := open(t, seal.Options{Keys: []seal.Key{k2, k1}})
	e := &env{T: t, ctx: t.Context(), store: s}
	for _, th := range threads {
		th.env = e
		th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	}
	require.Equal(t, []int{0, 0}, e.countTags(tags...), "the tags of all keys are removed")
	require.Empty(t, e.listThreads(checkpoint.ThreadQuery{Tenant: tenant.Default, Metadata: labels}))
	require.NoError(t, s.Close())
}
