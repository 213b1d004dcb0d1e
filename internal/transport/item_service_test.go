package transport_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// fakeItems has one item, and records what it is asked.
type fakeItems struct {
	item       runtime.Item
	put        runtime.Item
	query      runtime.ItemQuery
	namespaces runtime.ItemNamespaceQuery
	refreshed  bool
	// onSearch is called in each search, nil = nothing.
	onSearch func()
}

func (f *fakeItems) PutItem(_ context.Context, item runtime.Item) (runtime.Item, error) {
	f.put = item
	item.Created, item.Updated = time.Unix(1, 0), time.Unix(2, 0)
	return item, nil
}

func (f *fakeItems) GetItem(_ context.Context, _ string, _ []string, _ string, refresh bool) (runtime.Item, error) {
	f.refreshed = refresh
	return f.item, nil
}

func (f *fakeItems) DeleteItem(context.Context, string, []string, string) error { return nil }

func (f *fakeItems) SearchItems(_ context.Context, q runtime.ItemQuery) ([]runtime.Item, error) {
	if f.onSearch != nil {
		f.onSearch()
		return nil, nil
	}
	f.query = q
	return []runtime.Item{f.item, f.item}, nil
}

func (f *fakeItems) ListNamespaces(_ context.Context, q runtime.ItemNamespaceQuery) ([][]string, error) {
	f.namespaces = q
	return [][]string{{"a"}, {"a", "b"}}, nil
}

func startItems(t *testing.T, kept *fakeItems) graphdv1.ItemServiceClient {
	t.Helper()
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Items = kept })
	return graphdv1.NewItemServiceClient(c.conn)
}

func jsonOf(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

func TestItemsAreChecked(t *testing.T) {
	c := startItems(t, &fakeItems{})
	long := strings.Repeat("x", 1025)
	many := strings.Split(strings.Repeat("a,", 33), ",")[:33]
	for want, put := range map[string]*graphdv1.PutItemRequest{
		"namespace: is empty":                     {Key: "k", Value: jsonOf(`{}`)},
		"namespace[1]: is empty":                  {Namespace: []string{"a", ""}, Key: "k", Value: jsonOf(`{}`)},
		"namespace[0]: is \"a.b\", with a period": {Namespace: []string{"a.b"}, Key: "k", Value: jsonOf(`{}`)},
		"namespace: has 33 labels":                {Namespace: many, Key: "k", Value: jsonOf(`{}`)},
		"namespace: has labels of 1026 bytes":     {Namespace: []string{long, "b"}, Key: "k", Value: jsonOf(`{}`)},
		"namespace: begins with \"langgraph\"":    {Namespace: []string{"langgraph", "b"}, Key: "k", Value: jsonOf(`{}`)},
		"key: must be set":                        {Namespace: []string{"a"}, Value: jsonOf(`{}`)},
		"key: has 1025 bytes":                     {Namespace: []string{"a"}, Key: long, Value: jsonOf(`{}`)},
		"value: must be set":                      {Namespace: []string{"a"}, Key: "k"},
		"value: is no JSON object":                {Namespace: []string{"a"}, Key: "k", Value: jsonOf(`[1]`)},
		"ttl: must be positive":                   {Namespace: []string{"a"}, Key: "k", Value: jsonOf(`{}`), Ttl: durationpb.New(0)},
		"ttl: is negative":                        {Namespace: []string{"a"}, Key: "k", Value: jsonOf(`{}`), Ttl: durationpb.New(-time.Second)},
		"ttl: is 1µs; want at least 1ms":          {Namespace: []string{"a"}, Key: "k", Value: jsonOf(`{}`), Ttl: durationpb.New(time.Microsecond)},
		"ttl: is 2400000h0m0s; want at most":      {Namespace: []string{"a"}, Key: "k", Value: jsonOf(`{}`), Ttl: durationpb.New(2_400_000 * time.Hour)},
	} {
		_, err := c.PutItem(t.Context(), put)
		requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
		require.ErrorContains(t, err, want)
	}
	for want, search := range map[string]*graphdv1.SearchItemsRequest{
		"namespace_prefix[0]: is empty":                         {NamespacePrefix: []string{""}},
		"filter: is no JSON object":                             {Filter: jsonOf(`1`)},
		"limit: is -1":                                          {Limit: -1},
		"offset: is -1":                                         {Offset: -1},
		"offset: is 100001; want 0 to 100000":                   {Offset: 100_001},
		"query: is set, and the server has no index of what te": {Query: "hello"},
	} {
		_, err := c.SearchItems(t.Context(), search)
		requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
		require.ErrorContains(t, err, want)
	}
	for want, list := range map[string]*graphdv1.ListItemNamespacesRequest{
		"prefix[0]: is \"a.\"": {Prefix: []string{"a."}},
		"suffix[0]: is empty":  {Suffix: []string{""}},
		"max_depth: is -1":     {MaxDepth: -1},
		"limit: is -2":         {Limit: -2},
	} {
		_, err := c.ListItemNamespaces(t.Context(), list)
		requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
		require.ErrorContains(t, err, want)
	}
	_, err := c.GetItem(t.Context(), &graphdv1.GetItemRequest{Namespace: []string{"a"}})
	requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
	_, err = c.DeleteItem(t.Context(), &graphdv1.DeleteItemRequest{Key: "k"})
	requireReason(t, err, codes.InvalidArgument, "INVALID_FIELD")
}

func TestItemsGoBothWays(t *testing.T) {
	kept := &fakeItems{item: runtime.Item{
		Namespace: []string{"a", "b"}, Key: "k", Value: `{"n": 1.0}`, Created: time.Unix(1, 0), Updated: time.Unix(2, 0), TTL: time.Minute, Expires: time.Unix(62, 0),
	}}
	c := startItems(t, kept)
	put, err := c.PutItem(t.Context(), &graphdv1.PutItemRequest{Namespace: []string{"a", "b"}, Key: "k", Value: jsonOf(`{"n": 1.0}`), Ttl: durationpb.New(time.Hour)})
	require.NoError(t, err)
	require.Nil(t, put.GetValue(), "the client has it")
	require.EqualValues(t, 2, put.GetUpdateTime().GetSeconds())
	require.Equal(t, runtime.Item{Tenant: "default", Namespace: []string{"a", "b"}, Key: "k", Value: `{"n": 1.0}`, TTL: time.Hour}, kept.put)

	read, err := c.GetItem(t.Context(), &graphdv1.GetItemRequest{Namespace: []string{"a", "b"}, Key: "k", RefreshTtl: true})
	require.NoError(t, err)
	require.True(t, kept.refreshed)
	require.Equal(t, `{"n": 1.0}`, read.GetValue().GetJson())
	require.EqualValues(t, 60, read.GetTtl().GetSeconds())
	require.EqualValues(t, 62, read.GetExpireTime().GetSeconds())

	found, err := c.SearchItems(t.Context(), &graphdv1.SearchItemsRequest{NamespacePrefix: []string{"a"}, Filter: jsonOf(`{"n":1}`), Offset: 3})
	require.NoError(t, err)
	require.Len(t, found.GetItems(), 2)
	require.Equal(t, []any{[]string{"a"}, payload.JSON(`{"n":1}`), 10, 3, false}, []any{kept.query.Prefix, kept.query.Filter, kept.query.Limit, kept.query.Offset, kept.query.Refresh})

	list, err := c.ListItemNamespaces(t.Context(), &graphdv1.ListItemNamespacesRequest{Prefix: []string{"*"}, Suffix: []string{"b"}, MaxDepth: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, list.GetNamespaces()[1].GetLabels())
	require.Equal(t, runtime.ItemNamespaceQuery{Tenant: "default", Prefix: []string{"*"}, Suffix: []string{"b"}, MaxDepth: 2, Limit: 100}, kept.namespaces)
}

// A search holds up to a message of values, so few are made at the same time. The others wait.
func TestSearchesForItemsWaitForOneAnother(t *testing.T) {
	const calls, most = 20, 8
	var active atomic.Int64
	entered, leave := make(chan int64, calls), make(chan struct{})
	c := startItems(t, &fakeItems{onSearch: func() {
		entered <- active.Add(1)
		<-leave
		active.Add(-1)
	}})
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := c.SearchItems(t.Context(), &graphdv1.SearchItemsRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	for range most {
		<-entered
	}
	close(leave)
	all.Wait()
	close(entered)
	for n := range entered {
		require.LessOrEqual(t, n, int64(most))
	}
	require.Zero(t, active.Load())
}
