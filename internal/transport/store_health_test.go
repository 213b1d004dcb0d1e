package transport_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport"
)

// fakeWriteChecker is a store that returns the error which the test has set.
type fakeWriteChecker struct{ err atomic.Pointer[error] }

func (c *fakeWriteChecker) CheckWritable(context.Context) error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// refusalCounts are the counts of refused calls and changes.
type refusalCounts struct {
	mu    sync.Mutex
	store map[string]bool
	calls map[string]int
	quota map[string]int // by the limit and whose it is
}

func newRefusalCounts() *refusalCounts {
	return &refusalCounts{store: map[string]bool{}, calls: map[string]int{}, quota: map[string]int{}}
}

func (r *refusalCounts) SetStoreRefusal(reason string, refuses bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store[reason] = refuses
}

func (r *refusalCounts) CountRefusedCall(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[reason]++
}

func (r *refusalCounts) CountExceededQuota(limit, of string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quota[limit+" of "+of]++
}

func (r *refusalCounts) storeRefusals() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.store)
}

// Each call that is refused counts once, under a reason of the table.
func TestRefusedCallsAreCounted(t *testing.T) {
	counted := newRefusalCounts()
	e := newFakeEngine()
	e.err = errors.New("something of ours")
	c := startServer(t, e, func(o *transport.Options) { o.RefusalMetrics = counted })
	_, err := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t"})
	require.Error(t, err)
	e.err = checkpoint.ErrThreadNotFound
	for range 2 {
		_, err = c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t"})
		require.Error(t, err)
	}
	require.Equal(t, map[string]int{"INTERNAL": 1, "THREAD_NOT_FOUND": 2}, counted.calls)
}

// Health and the log report when a store refuses changes and when it takes them
// again. They report neither a store that does not answer nor failed reads.
func TestHealthSaysWhetherTheStoreTakesChanges(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	counted := newRefusalCounts()
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Log, o.RefusalMetrics = zap.New(core), counted })
	require.Equal(t, map[string]bool{"STORE_FULL": false, "STORE_REPLACED": false}, counted.storeRefusals())
	store := &fakeWriteChecker{}
	ctx, cancel := context.WithCancel(t.Context())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		c.server.WatchStore(ctx, store)
	}()
	defer func() {
		cancel()
		<-watching
	}()
	health := healthpb.NewHealthClient(c.conn)
	watched, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	next := func() healthpb.HealthCheckResponse_ServingStatus {
		got, err := watched.Recv()
		require.NoError(t, err)
		return got.GetStatus()
	}
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, next())
	away := checkpoint.ErrUnavailable
	store.err.Store(&away)
	for reason, kind := range map[string]error{
		"STORE_FULL": checkpoint.ErrStoreFull, "STORE_REPLACED": checkpoint.ErrStoreReplaced,
	} {
		refusing := fmt.Errorf("%w: /data/graphd.db: make room", kind)
		store.err.Store(&refusing)
		require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next())
		require.Eventually(t, func() bool {
			return maps.Equal(counted.storeRefusals(), map[string]bool{
				"STORE_FULL": reason == "STORE_FULL", "STORE_REPLACED": reason == "STORE_REPLACED",
			})
		}, time.Minute, time.Millisecond)
		require.Equal(t, reason, c.server.StoreRefusal().Reason)
		require.NotContains(t, c.server.StoreRefusal().Message, "/data")
		var header metadata.MD
		reads, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "reads"}, grpc.Header(&header))
		require.NoError(t, err)
		require.Equal(t, []string{reason}, header.Get("graphd-refusal"))
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reads.GetStatus())

		store.err.Store(nil)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, next())
		require.Nil(t, c.server.StoreRefusal())
	}
	refused := logs.FilterMessage("the store takes no changes").All()
	require.Len(t, refused, 2)
	require.Contains(t, refused[0].ContextMap()["error"], "/data/graphd.db: make room")
}
