package items_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/holdings"
	"github.com/graphd-dev/graphd/internal/runtime/items"
)

// newKeeper makes the keeper of one server. Each has a name of its own.
func newKeeper(t *testing.T, store checkpoint.Store, limit, searched int) *items.Keeper {
	t.Helper()
	return newKeeperAt(t, store, limit, searched, time.Now)
}

func newKeeperAt(t *testing.T, store checkpoint.Store, limit, searched int, now func() time.Time) *items.Keeper {
	t.Helper()
	return items.New(newOptions(t, store, limit, searched, now))
}

func newKeeperWith(t *testing.T, store checkpoint.Store, change func(o *items.Options)) *items.Keeper {
	t.Helper()
	o := newOptions(t, store, 1000, 1000, time.Now)
	change(&o)
	return items.New(o)
}

func newOptions(t *testing.T, store checkpoint.Store, limit, searched int, now func() time.Time) items.Options {
	t.Helper()
	client := commit.NewStoreClient(store, 3, 5*time.Second, now)
	committer := commit.NewCommitter(commit.Options{
		Store: client, Owner: t.Name() + time.Now().String(), Attempts: 3, Timeout: 5 * time.Second, Now: client.CurrentTime, Observer: runtime.NopObserver{},
		PruneTime: func(*checkpoint.Head) time.Time { return time.Time{} }, Unknown: func(string) {},
		Committed: func(*commit.Tx, checkpoint.Head) {}, Published: func(string, []checkpoint.Event) {},
	})
	start := time.Now()
	counts := holdings.New(holdings.Options{Limits: items.TenantLimit(limit), Store: client, Uptime: func() time.Duration { return time.Since(start) }})
	return items.Options{
		Store: client, Committer: committer, Counts: counts, Limit: limit, Searched: searched, ReserveMemory: reserveNothing,
	}
}

func reserveNothing(context.Context, *runtime.CallMemory, int) error { return nil }

// onEachStore runs a test on each store, and on one that encrypts.
func onEachStore(t *testing.T, test func(t *testing.T, store checkpoint.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, memory.New(memory.Options{})) })
	sealed := seal.Options{Keys: []seal.Key{{ID: "k", Secret: make([]byte, seal.KeySize)}}}
	for name, o := range map[string]seal.Options{"sqlite": {}, "sealed sqlite": sealed} {
		t.Run(name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db"), Seal: o})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			test(t, s)
		})
	}
	for name, o := range map[string]seal.Options{"redis": {}, "sealed redis": sealed} {
		t.Run(name, func(t *testing.T) {
			s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("shared=true"), Seal: o})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			test(t, s)
		})
	}
}

func newItem(place, value string) runtime.Item {
	parts := strings.Split(place, "/")
	return runtime.Item{Tenant: "default", Namespace: parts[:len(parts)-1], Key: parts[len(parts)-1], Value: payload.JSON(value)}
}

func put(t *testing.T, k *items.Keeper, list ...runtime.Item) {
	t.Helper()
	for _, item := range list {
		_, err := k.PutItem(t.Context(), item)
		require.NoError(t, err)
	}
}

func keysOf(list []runtime.Item) []string {
	keys := []string{}
	for _, item := range list {
		keys = append(keys, item.Key)
	}
	return keys
}

func requireReason(t *testing.T, reason string, err error) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: reason})
}

func TestAnItemIsPutReadAndDeleted(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		k := newKeeper(t, store, 100, 100)
		first, err := k.PutItem(t.Context(), newItem("users/ann/k", `{"n": 1.0,  "n2":1e400}`))
		require.NoError(t, err)
		read, err := k.GetItem(t.Context(), "default", []string{"users", "ann"}, "k", true)
		require.NoError(t, err)
		require.Equal(t, payload.JSON(`{"n": 1.0,  "n2":1e400}`), read.Value, "JSON is carried as it came")
		require.Equal(t, []string{"users", "ann"}, read.Namespace)
		require.Equal(t, "default", read.Tenant)
		require.True(t, read.Created.Equal(first.Created) && read.Updated.Equal(first.Updated))
		require.Zero(t, read.Expires)

		second, err := k.PutItem(t.Context(), newItem("users/ann/k", `{"n":2}`))
		require.NoError(t, err)
		require.True(t, second.Created.Equal(first.Created), "a put keeps when the item was made")
		read, err = k.GetItem(t.Context(), "default", []string{"users", "ann"}, "k", false)
		require.NoError(t, err)
		require.Equal(t, payload.JSON(`{"n":2}`), read.Value)
		require.True(t, read.Updated.Equal(second.Updated))

		for _, other := range []runtime.Item{newItem("users/annk", ""), newItem("users/ann/k2", ""), newItem("users/k", ""), {Tenant: "acme", Namespace: []string{"users", "ann"}, Key: "k"}} {
			_, err = k.GetItem(t.Context(), other.Tenant, other.Namespace, other.Key, false)
			requireReason(t, runtime.ReasonItemNotFound, err)
		}
		require.NoError(t, k.DeleteItem(t.Context(), "acme", []string{"users", "ann"}, "k"), "there is none")
		require.NoError(t, k.DeleteItem(t.Context(), "default", []string{"users", "ann"}, "k"))
		_, err = k.GetItem(t.Context(), "default", []string{"users", "ann"}, "k", false)
		requireReason(t, runtime.ReasonItemNotFound, err)
		require.NoError(t, k.DeleteItem(t.Context(), "default", []string{"users", "ann"}, "k"))
	})
}

// A put leaves one checkpoint, whatever was there before.
func TestNoHistoryIsKept(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		k := newKeeper(t, store, 100, 100)
		for i := range 5 {
			put(t, k, newItem("a/k", fmt.Sprintf(`{"n":%d}`, i)))
		}
		heads, err := store.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "~store:default"})
		require.NoError(t, err)
		require.Len(t, heads, 1)
		list, err := store.Checkpoints(t.Context(), checkpoint.CheckpointQuery{Thread: heads[0].Thread, AllNamespaces: true})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, heads[0].Checkpoint, list[0].ID)
	})
}

func TestPutsAtOnceFollowOneAnother(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		const servers, puts = 4, 5
		var all sync.WaitGroup
		made := make(chan runtime.Item, servers*puts)
		for s := range servers {
			k := newKeeper(t, store, 100, 100)
			all.Go(func() {
				for i := range puts {
					item, err := k.PutItem(t.Context(), newItem("a/k", fmt.Sprintf(`{"by":"%d-%d"}`, s, i)))
					if err != nil {
						t.Error(err)
					}
					made <- item
				}
			})
		}
		all.Wait()
		close(made)
		read, err := newKeeper(t, store, 100, 100).GetItem(t.Context(), "default", []string{"a"}, "k", false)
		require.NoError(t, err)
		for item := range made {
			require.True(t, item.Created.Equal(read.Created), "one put has made it")
		}
		require.Contains(t, string(read.Value), fmt.Sprintf(`-%d"`, puts-1), "the last one stays")
		heads, err := store.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "~store:default"})
		require.NoError(t, err)
		require.EqualValues(t, servers*puts, heads[0].Revision, "each was made once")
	})
}

// A put that is cut off anywhere leaves the old value or the new one, and the next put goes on.
func TestAPutThatIsCutOffLeavesAWholeItem(t *testing.T) {
	for at := 1; at <= 8; at++ {
		for _, mode := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter} {
			inner := memory.New(memory.Options{})
			k := newKeeper(t, inner, 100, 100)
			put(t, k, newItem("a/k", `{"n":1}`))
			_, failure := newKeeper(t, faulty.New(inner, faulty.Plan{At: at, For: -1, Mode: mode}), 100, 100).PutItem(t.Context(), newItem("a/k", `{"n":2}`))
			read, err := k.GetItem(t.Context(), "default", []string{"a"}, "k", false)
			require.NoError(t, err)
			require.Contains(t, []payload.JSON{`{"n":1}`, `{"n":2}`}, read.Value)
			if failure == nil {
				require.Equal(t, payload.JSON(`{"n":2}`), read.Value, "call %d", at)
			}
			put(t, k, newItem("a/k", `{"n":3}`))
		}
	}
}

func TestSearchesFindWhatIsBelow(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		k := newKeeper(t, store, 100, 100)
		put(t, k, newItem("users/k1", `{"n":1}`), newItem("users/ann/k2", `{"n":2,"tag":"x"}`), newItem("users/ann/deep/k3", `{"n":3}`),
			newItem("users2/k4", `{"n":4,"tag":"x"}`), newItem("usersann/k5", `{"n":5}`))
		foreign := newItem("users/ann/k6", `{"n":6}`)
		foreign.Tenant = "acme"
		put(t, k, foreign)
		put(t, k, newItem("users/k1", `{"n":10}`)) // a further put does not move an item
		for _, c := range []struct {
			prefix, filter string
			limit, offset  int
			want           []string
		}{
			{"", "", 10, 0, []string{"k5", "k4", "k3", "k2", "k1"}},
			{"users", "", 10, 0, []string{"k3", "k2", "k1"}},
			{"users/ann", "", 10, 0, []string{"k3", "k2"}},
			{"users/ann/deep", "", 10, 0, []string{"k3"}},
			{"users/ann/deep/deeper", "", 10, 0, []string{}},
			{"users/none", "", 10, 0, []string{}},
			{"", "", 2, 0, []string{"k5", "k4"}},
			{"", "", 2, 2, []string{"k3", "k2"}},
			{"", "", 2, 4, []string{"k1"}},
			{"", "", 2, 5, []string{}},
			{"users", "", 1, 1, []string{"k2"}},
			{"", `{"n":{"$gte":3}}`, 10, 0, []string{"k5", "k4", "k3", "k1"}},
			{"", `{"n":{"$gte":3}}`, 2, 1, []string{"k4", "k3"}},
			{"users", `{"n":{"$gte":3}}`, 10, 1, []string{"k1"}},
			{"", `{"tag":"x"}`, 10, 0, []string{"k4", "k2"}},
			{"", `{"tag":null}`, 10, 0, []string{"k5", "k3", "k1"}},
		} {
			q := runtime.ItemQuery{Tenant: "default", Filter: payload.JSON(c.filter), Limit: c.limit, Offset: c.offset, MaxBytes: 1 << 20}
			if c.prefix != "" {
				q.Prefix = strings.Split(c.prefix, "/")
			}
			found, err := k.SearchItems(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, c.want, keysOf(found), "%+v", c)
		}
		_, err := k.SearchItems(t.Context(), runtime.ItemQuery{Tenant: "default", Limit: 10, MaxBytes: 20})
		requireReason(t, runtime.ReasonPayloadTooLarge, err)
	})
}

func TestNamespacesAreListed(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		k := newKeeper(t, store, 100, 100)
		put(t, k, newItem("b/x/k", `{}`), newItem("a/x/1/k", `{}`), newItem("a/x/1/k2", `{}`), newItem("a/y/k", `{}`), newItem("a/k", `{}`), newItem("c/k", `{}`))
		require.NoError(t, k.DeleteItem(t.Context(), "default", []string{"c"}, "k"))
		for _, c := range []struct {
			prefix, suffix       string
			depth, limit, offset int
			want                 string
		}{
			{"", "", 0, 10, 0, "a a/x/1 a/y b/x"},
			{"", "", 1, 10, 0, "a b"},
			{"", "", 2, 10, 0, "a a/x a/y b/x"},
			{"a", "", 0, 10, 0, "a a/x/1 a/y"},
			{"a/x", "", 0, 10, 0, "a/x/1"},
			{"*/x", "", 0, 10, 0, "a/x/1 b/x"},
			{"a/*/1", "", 0, 10, 0, "a/x/1"},
			{"", "x", 0, 10, 0, "b/x"},
			{"", "x/*", 0, 10, 0, "a/x/1"},
			{"a", "y", 1, 10, 0, "a"},
			{"", "", 0, 2, 1, "a/x/1 a/y"},
			{"", "", 0, 2, 9, ""},
		} {
			q := runtime.ItemNamespaceQuery{Tenant: "default", MaxDepth: c.depth, Limit: c.limit, Offset: c.offset}
			if c.prefix != "" {
				q.Prefix = strings.Split(c.prefix, "/")
			}
			if c.suffix != "" {
				q.Suffix = strings.Split(c.suffix, "/")
			}
			found, err := k.ListNamespaces(t.Context(), q)
			require.NoError(t, err)
			texts := make([]string, len(found))
			for i := range found {
				texts[i] = strings.Join(found[i], "/")
			}
			require.Equal(t, c.want, strings.Join(texts, " "), "%+v", c)
		}
	})
}

func TestItemsExpire(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	stores := map[string]checkpoint.Store{"memory": memory.New(memory.Options{Now: clock})}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db"), Now: clock})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	stores["sqlite"] = s
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			k := newKeeperAt(t, store, 100, 100, clock)
			get := func(refresh bool) (runtime.Item, error) {
				return k.GetItem(t.Context(), "default", []string{"a"}, "k", refresh)
			}
			short := newItem("a/k", `{"n":1}`)
			short.TTL = time.Hour
			first, err := k.PutItem(t.Context(), short)
			require.NoError(t, err)
			put(t, k, newItem("a/kept", `{}`))
			now = now.Add(30 * time.Minute)
			read, err := get(false)
			require.NoError(t, err)
			require.Equal(t, time.Hour, read.TTL)
			require.True(t, read.Expires.Equal(first.Expires), "a read leaves its time")
			read, err = get(true)
			require.NoError(t, err)
			require.WithinDuration(t, now.Add(time.Hour), read.Expires, time.Second)
			require.True(t, read.Updated.Equal(first.Updated), "its value was put before")
			refreshed := read.Expires
			now = now.Add(time.Minute)
			read, err = get(true)
			require.NoError(t, err)
			require.True(t, read.Expires.Equal(refreshed), "little of its time has passed")
			now = now.Add(50 * time.Minute)
			found, err := k.SearchItems(t.Context(), runtime.ItemQuery{Tenant: "default", Limit: 10, MaxBytes: 100, Refresh: true})
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"kept", "k"}, keysOf(found))
			now = now.Add(59 * time.Minute)
			_, err = get(false)
			require.NoError(t, err, "the search has refreshed it")
			due, _, err := store.Due(t.Context(), 10)
			require.NoError(t, err)
			require.Empty(t, due)

			now = now.Add(2 * time.Minute)
			_, err = get(true)
			requireReason(t, runtime.ReasonItemNotFound, err)
			found, err = k.SearchItems(t.Context(), runtime.ItemQuery{Tenant: "default", Limit: 10, MaxBytes: 100})
			require.NoError(t, err)
			require.Equal(t, []string{"kept"}, keysOf(found))
			due, _, err = store.Due(t.Context(), 10)
			require.NoError(t, err)
			require.Len(t, due, 1, "a server removes it")

			again, err := k.PutItem(t.Context(), newItem("a/k", `{"n":2}`))
			require.NoError(t, err)
			require.True(t, again.Created.After(first.Expires), "it is another item")
			now = now.Add(1000 * time.Hour)
			_, err = get(false)
			require.NoError(t, err, "a put without a ttl lets it live for ever")
			due, _, err = store.Due(t.Context(), 10)
			require.NoError(t, err)
			require.Empty(t, due)
		})
	}
}

// Redis has a clock of its own.
func TestItemsExpireOnRedis(t *testing.T) {
	s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("shared=true")})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	k := newKeeper(t, s, 100, 100)
	short := newItem("a/k", `{}`)
	short.TTL = time.Millisecond
	put(t, k, short)
	require.Eventually(t, func() bool {
		_, err := k.GetItem(t.Context(), "default", short.Namespace, "k", false)
		return err != nil
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		due, _, err := s.Due(t.Context(), 10)
		return err == nil && len(due) == 1
	}, time.Minute, time.Millisecond)
}

func TestLimits(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		k := newKeeper(t, store, 4, 2)
		put(t, k, newItem("a/k1", `{"n":1}`), newItem("a/k2", `{"n":2}`), newItem("b/k3", `{"n":3}`), newItem("b/c/k4", `{"n":4}`))
		_, err := k.PutItem(t.Context(), newItem("a/k5", `{}`))
		requireReason(t, runtime.ReasonTooManyItems, err)
		put(t, k, newItem("a/k1", `{"n":1}`))
		foreign := newItem("a/k5", `{}`)
		foreign.Tenant = "acme"
		put(t, k, foreign)
		require.NoError(t, k.DeleteItem(t.Context(), "default", []string{"a"}, "k2"))
		require.EventuallyWithT(t, func(c *assert.CollectT) { // a count is used for a moment
			_, err = k.PutItem(t.Context(), newItem("a/k5", `{}`))
			assert.NoError(c, err)
		}, time.Minute, time.Millisecond)

		q := runtime.ItemQuery{Tenant: "default", Filter: `{"n":1}`, Limit: 10, MaxBytes: 100}
		_, err = k.SearchItems(t.Context(), q)
		requireReason(t, runtime.ReasonItemSearchTooBroad, err)
		_, err = k.ListNamespaces(t.Context(), runtime.ItemNamespaceQuery{Tenant: "default", Limit: 1})
		requireReason(t, runtime.ReasonItemSearchTooBroad, err)
		q.Prefix = []string{"a"}
		found, err := k.SearchItems(t.Context(), q)
		require.NoError(t, err, "it looks at two")
		require.Equal(t, []string{"k1"}, keysOf(found))
		q.Filter, q.Prefix, q.Limit = "", nil, 2
		found, err = k.SearchItems(t.Context(), q)
		require.NoError(t, err, "it needs no more than two")
		require.Equal(t, []string{"k5", "k4"}, keysOf(found))
		q.Offset = 2
		found, err = k.SearchItems(t.Context(), q)
		require.NoError(t, err, "an index passes over the first")
		require.Equal(t, []string{"k3", "k1"}, keysOf(found))
		q.Offset, q.Limit = 0, 3
		_, err = k.SearchItems(t.Context(), q)
		requireReason(t, runtime.ReasonItemSearchTooBroad, err)
	})
}

// countingStore counts the records that it returns.
type countingStore struct {
	checkpoint.Store

	heads, values atomic.Int64
}

func (s *countingStore) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	list, err := s.Store.Threads(ctx, q)
	s.heads.Add(int64(len(list)))
	return list, err
}

func (s *countingStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	s.values.Add(1)
	return s.Store.Checkpoint(ctx, thread, namespace, id)
}

// What is not below the prefix is not read, and without a filter nothing that is not shown.
func TestSearchesReadWhatIsBelowAlone(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		counting := &countingStore{Store: store}
		k := newKeeper(t, counting, 1000, 1000)
		for i := range 60 {
			put(t, k, newItem(fmt.Sprintf("users/u%d/k%d", i%10, i), fmt.Sprintf(`{"n":%d}`, i)))
		}
		require.Zero(t, counting.heads.Load(), "puts look at nothing else")
		for _, c := range []struct {
			q             runtime.ItemQuery
			heads, values int64
		}{
			{runtime.ItemQuery{Prefix: []string{"users", "u7"}, Limit: 10}, 6, 6},
			{runtime.ItemQuery{Prefix: []string{"users", "u7"}, Limit: 10, Filter: `{"n":1000}`}, 6, 6},
			{runtime.ItemQuery{Prefix: []string{"users"}, Limit: 5}, 5, 5},
			{runtime.ItemQuery{Prefix: []string{"users"}, Limit: 5, Offset: 50}, 5, 5},
			{runtime.ItemQuery{Limit: 20, Offset: 55}, 5, 5},
		} {
			counting.heads.Store(0)
			counting.values.Store(0)
			c.q.Tenant, c.q.MaxBytes = "default", 1<<20
			_, err := k.SearchItems(t.Context(), c.q)
			require.NoError(t, err)
			require.Equal(t, [2]int64{c.heads, c.values}, [2]int64{counting.heads.Load(), counting.values.Load()}, "%+v", c.q)
		}
		counting.heads.Store(0)
		counting.values.Store(0)
		_, err := k.ListNamespaces(t.Context(), runtime.ItemNamespaceQuery{Tenant: "default", Prefix: []string{"users", "u7"}, Limit: 10})
		require.NoError(t, err)
		require.Equal(t, [2]int64{6, 0}, [2]int64{counting.heads.Load(), counting.values.Load()})
	})
}

// leavingStore has the caller leave while a value is read.
type leavingStore struct {
	checkpoint.Store

	leave func()
}

func (s *leavingStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	defer s.leave()
	return s.Store.Checkpoint(ctx, thread, namespace, id)
}

func TestASearchEndsWhenItsCallerLeaves(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	k := newKeeper(t, &leavingStore{memory.New(memory.Options{}), leave}, 100, 100)
	put(t, k, newItem("users/k1", `{"n":1}`))
	_, err := k.SearchItems(ctx, runtime.ItemQuery{Tenant: "default", Filter: `{"n":1}`, Limit: 10, MaxBytes: 1 << 20})
	require.ErrorIs(t, err, context.Canceled)
}

// What a search has found is held until its answer is sent, so a search that finds much waits for
// others.
func TestASearchThatFindsMuchReservesMemory(t *testing.T) {
	var reserved []int
	refusal := error(nil)
	k := newKeeperWith(t, memory.New(memory.Options{}), func(o *items.Options) {
		o.ReserveMemory = func(_ context.Context, m *runtime.CallMemory, bytes int) error {
			require.NotNil(t, m)
			reserved = append(reserved, bytes)
			return refusal
		}
	})
	put := func(n, bytes int) {
		for i := range n {
			_, err := k.PutItem(t.Context(), newItem(fmt.Sprintf("s%d/%d", bytes, i), `{"x":"`+strings.Repeat("x", bytes)+`"}`))
			require.NoError(t, err)
		}
	}
	put(10, 10<<10)
	put(10, 100<<10)
	search := func(prefix string) ([]runtime.Item, error) {
		return k.SearchItems(t.Context(), runtime.ItemQuery{
			Tenant: "default", Prefix: []string{prefix}, Limit: 100, MaxBytes: 4 << 20, Memory: &runtime.CallMemory{},
		})
	}
	found, err := search("s10240")
	require.NoError(t, err)
	require.Len(t, found, 10)
	require.Empty(t, reserved)
	found, err = search("s102400")
	require.NoError(t, err)
	require.Len(t, found, 10)
	require.Equal(t, []int{4 << 20}, reserved)
	refusal = context.Canceled
	_, err = search("s102400")
	require.ErrorIs(t, err, context.Canceled)
}

// overtakenCounts refuses the first thread, when another call has made it meanwhile.
type overtakenCounts struct {
	items.Counts

	overtake func()
}

func (c *overtakenCounts) AddThread(context.Context, string) (func(isMade bool), error) {
	c.overtake()
	return nil, runtime.Errorf(runtime.ReasonQuotaExceeded, "full")
}

func TestAPutThatIsOvertakenAtTheLimitChangesTheItem(t *testing.T) {
	store := memory.New(memory.Options{})
	other := newKeeper(t, store, 1000, 1000)
	k := newKeeperWith(t, store, func(o *items.Options) {
		o.Counts = &overtakenCounts{o.Counts, func() {
			_, err := other.PutItem(t.Context(), newItem("a/k", `{"x":1}`))
			require.NoError(t, err)
		}}
	})
	_, err := k.PutItem(t.Context(), newItem("a/k", `{"x":2}`))
	require.NoError(t, err)
	item, err := other.GetItem(t.Context(), "default", []string{"a"}, "k", false)
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`{"x":2}`), item.Value)
}
