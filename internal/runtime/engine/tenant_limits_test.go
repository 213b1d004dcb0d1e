package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// tenantLimits are limits that a test changes.
type tenantLimits struct {
	mu     sync.Mutex
	limits map[string]map[runtime.Holding]int64
}

// newTenantLimits makes limits of the tenant acme.
func newTenantLimits(of runtime.Holding, most int64) *tenantLimits {
	l := &tenantLimits{limits: map[string]map[runtime.Holding]int64{"acme": {}}}
	l.setLimit(of, most)
	return l
}

func (l *tenantLimits) setLimit(of runtime.Holding, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits["acme"][of] = most
}

func (l *tenantLimits) FindTenantLimit(tenant string, of runtime.Holding) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most, ok := l.limits[tenant][of]; ok {
		return most
	}
	return runtime.NoTenantLimit
}

// tenantFixture is an engine with limits of the tenant acme. Nodes "work" wait for proceed
// of their thread.
type tenantFixture struct {
	*fixture

	proceed map[string]chan struct{}
	mu      sync.Mutex
}

func newTenantFixture(t *testing.T, store checkpoint.Store, limits *tenantLimits) *tenantFixture {
	t.Helper()
	f := &tenantFixture{proceed: map[string]chan struct{}{}}
	code := map[string]nodeFunc{
		"work": func(ctx context.Context, c *nodeCall) pregel.Result {
			select {
			case <-f.proceedOf(c.Thread):
				return logUpdate(`"worked"`)
			case <-ctx.Done():
				return failedResult("cut off")
			}
		},
		"ask":   askOnceNode,
		"quick": updateNode(`{"log":["quick"]}`),
		"grow":  writingNode("log", func(v string) string { return `["` + fmt.Sprintf("%0300d", len(v)) + `"]` }),
	}
	f.fixture = newFixtureOn(t, store, engine.Options{Tenants: limits}, code,
		chainSpec("works", channelsLog, "work"),
		chainSpec("asks", channelsLog, "ask", "work"),
		withExpressions(chainSpec("computes", channelsLog, "quick"), "quick"),
		chainSpec("grows", channelsLog, "grow"),
	)
	outer := chainSpec("grows inside", channelsLog, "quick")
	outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "grows"}})
	outer.Edges = append(outer.Edges[:1], newEdge("quick", "sub"), newEdge("sub", graph.End))
	f.compileGraph(outer)
	return f
}

func (f *tenantFixture) proceedOf(thread string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.proceed[thread] == nil {
		f.proceed[thread] = make(chan struct{}, 100)
	}
	return f.proceed[thread]
}

func (f *tenantFixture) finish(threads ...string) {
	f.t.Helper()
	for _, thread := range threads {
		f.proceedOf(thread) <- struct{}{}
		synctest.Wait()
		head, err := f.engine.Thread(f.t.Context(), thread)
		require.NoError(f.t, err)
		require.Equal(f.t, checkpoint.ThreadIdle, head.State, thread)
	}
}

func (f *tenantFixture) tryBegin(thread, name string, edits ...func(*runtime.StartRequest)) (*runtime.Started, error) {
	req := runtime.StartRequest{Thread: thread, CreateThread: true, Graph: name, Request: newInput("x")}
	for _, edit := range edits {
		edit(&req)
	}
	st, err := f.engine.Start(f.t.Context(), req)
	synctest.Wait()
	return st, err
}

func (f *tenantFixture) begin(thread, name string, edits ...func(*runtime.StartRequest)) *runtime.Started {
	f.t.Helper()
	st, err := f.tryBegin(thread, name, edits...)
	require.NoError(f.t, err, thread)
	return st
}

func enqueueBusy(r *runtime.StartRequest) { r.Concurrency = runtime.EnqueueBusy }

// requireExceeded checks that acme's limit has refused a call.
func requireExceeded(t *testing.T, err error, of runtime.Holding, most string) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonQuotaExceeded})
	require.Equal(t, string(of), errorMeta(err, "limit"))
	require.Equal(t, most, errorMeta(err, "most"))
	require.Equal(t, "tenant", errorMeta(err, "of"))
}

func TestLiveRunsOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTenantFixture(t, memory.New(memory.Options{}), newTenantLimits(runtime.HoldingLiveRuns, 2))
		f.begin("acme@asked", "asks")
		f.begin("acme@1", "works")
		f.begin("acme@2", "works")
		_, err := f.tryBegin("acme@3", "works")
		requireExceeded(t, err, runtime.HoldingLiveRuns, "2")
		_, err = f.store.Head(t.Context(), "acme@3")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound, "nothing is stored")
		for i := range 5 {
			f.begin(fmt.Sprintf("other@%d", i), "works")
			f.begin(fmt.Sprintf("t%d", i), "works")
		}
		require.Equal(t, checkpoint.RunSucceeded, f.runToStop("acme@4", "computes", `{}`).State, "it needs no driver")

		queued := f.begin("acme@5", "works", enqueueBusy)
		require.Equal(t, checkpoint.RunQueued, queued.Run.State)
		answered, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "acme@asked", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err, "an answer is never refused")
		require.Equal(t, checkpoint.RunQueued, answered.Run.State)
		sleepVirtual(time.Minute)
		require.Equal(t, "run queued", f.describeEvents("acme@5")[0])
		require.Len(t, f.describeEvents("acme@5"), 1)

		f.finish("acme@1", "acme@5", "acme@2", "acme@asked")
		f.finish("other@3", "t0")
		f.finish("acme@5") // it has worked: the thread is idle
	})
}

// A server that stops and starts again takes over no more runs than the tenant may have,
// and loses none.
func TestLiveRunsOfATenantAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingLiveRuns, 3)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		for i := range 3 {
			f.begin(fmt.Sprintf("acme@%d", i), "works")
			f.begin(fmt.Sprintf("other@%d", i), "works")
		}
		f.engine.Close()
		limits.setLimit(runtime.HoldingLiveRuns, 1)
		f.startEngine()
		sleepVirtual(time.Minute)
		_, err := f.tryBegin("acme@new", "works")
		requireExceeded(t, err, runtime.HoldingLiveRuns, "1")
		f.finish("other@0", "other@1", "other@2")
		for i := range 3 { // in any order
			f.proceedOf(fmt.Sprintf("acme@%d", i)) <- struct{}{}
			sleepVirtual(time.Second)
		}
		f.requireIdle("acme@0", "acme@1", "acme@2")
	})
}

func (f *tenantFixture) requireIdle(threads ...string) {
	f.t.Helper()
	for _, thread := range threads {
		head, err := f.engine.Thread(f.t.Context(), thread)
		require.NoError(f.t, err)
		require.Equal(f.t, checkpoint.ThreadIdle, head.State, thread)
	}
}

// A limit that is raised while the server runs lets waiting runs begin, and one that is
// lowered ends nothing.
func TestChangedLimitOfLiveRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingLiveRuns, 1)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		f.begin("acme@1", "works")
		f.begin("acme@2", "works", enqueueBusy)
		limits.setLimit(runtime.HoldingLiveRuns, 2)
		f.engine.RecheckTenants()
		synctest.Wait()
		require.Contains(t, f.describeEvents("acme@2"), "run running")
		limits.setLimit(runtime.HoldingLiveRuns, 0)
		f.engine.RecheckTenants()
		f.finish("acme@1", "acme@2")
		_, err := f.tryBegin("acme@3", "works")
		requireExceeded(t, err, runtime.HoldingLiveRuns, "0")
	})
}

func TestBytesOfATenantsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingStateBytes, 400)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		for name, node := range map[string]string{"grows": "grow", "grows inside": "quick"} {
			for _, thread := range []string{"acme@", "other@", ""} {
				thread += name[len(name)-1:]
				require.Equal(t, checkpoint.RunSucceeded, f.runToStop(thread, name, `{"log":["x"]}`).State, "%s %s", name, thread)
				r := f.runToStop(thread, name, `{"log":["y"]}`)
				if thread[0] != 'a' {
					require.Equal(t, checkpoint.RunSucceeded, r.State, "%s %s", name, thread)
					continue
				}
				require.Equal(t, checkpoint.RunFailed, r.State, "%s %s", name, thread)
				require.Equal(t, "LIMIT_EXCEEDED", r.Failure.Reason)
				require.Equal(t, "state_bytes", r.Failure.Details["limit"])
				require.Equal(t, "400", r.Failure.Details["most"])
				require.Contains(t, r.Failure.Message, `state_bytes of the tenant "acme"`)
				_, err := f.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{
					Thread: thread, Values: payload.JSON(`{"log":["` + fmt.Sprintf("%0400d", 1) + `"]}`), AsNode: node,
				})
				require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err))
				require.Equal(t, "state_bytes", errorMeta(err, "limit"))
			}
		}
	})
}
