package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
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
	return newTenantFixtureWith(t, store, engine.Options{Tenants: limits})
}

func newTenantFixtureWith(t *testing.T, store checkpoint.Store, opts engine.Options) *tenantFixture {
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
	f.fixture = newFixtureOn(t, store, opts, code,
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
				require.Equal(t, "tenant", errorMeta(err, "of"))
			}
		}
	})
}

func (f *tenantFixture) tryCreate(thread string, edits ...func(*runtime.CreateThreadRequest)) error {
	req := runtime.CreateThreadRequest{Thread: thread}
	for _, edit := range edits {
		edit(&req)
	}
	_, err := f.engine.CreateThread(f.t.Context(), req)
	return err
}

func TestThreadsOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingThreads, 3)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		f.begin("acme@1", "computes")
		repeated := func(r *runtime.CreateThreadRequest) { r.RequestID, r.Digest = "r", "d" }
		require.NoError(t, f.tryCreate("acme@2", repeated))
		_, err := f.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "acme@1", Thread: "acme@3"})
		require.NoError(t, err)
		refuseAll := func(most string) {
			t.Helper()
			requireExceeded(t, f.tryCreate("acme@new"), runtime.HoldingThreads, most)
			_, err = f.tryBegin("acme@new", "computes")
			requireExceeded(t, err, runtime.HoldingThreads, most)
			_, err = f.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "acme@1", Thread: "acme@new"})
			requireExceeded(t, err, runtime.HoldingThreads, most)
			_, err = f.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "acme@1", Thread: "acme@new"})
			requireExceeded(t, err, runtime.HoldingThreads, most)
			_, err = f.store.Head(t.Context(), "acme@new")
			require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
		}
		refuseAll("3")
		f.begin("acme@1", "computes") // the thread is there
		require.NoError(t, f.tryCreate("acme@2", repeated), "the same request again")
		require.ErrorIs(t, f.tryCreate("acme@1"), &runtime.Error{Reason: runtime.ReasonThreadExists})
		for i := range 5 {
			require.NoError(t, f.tryCreate(fmt.Sprint("other@", i)))
			require.NoError(t, f.tryCreate(fmt.Sprint("t", i)))
			f.begin(fmt.Sprint("new", i), "computes")
		}

		require.NoError(t, f.engine.DeleteThread(t.Context(), "acme@3", 0, false))
		require.NoError(t, f.tryCreate("acme@4"), "at once")
		refuseAll("3")
		f.engine.Close()
		f.startEngine()
		refuseAll("3")
		limits.setLimit(runtime.HoldingThreads, 2)
		refuseAll("2")
		f.begin("acme@1", "computes")
		limits.setLimit(runtime.HoldingThreads, runtime.NoTenantLimit)
		require.NoError(t, f.tryCreate("acme@5"))
	})
}

func TestWhatTenantsHoldIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingThreads, 9)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		limits.setLimit(runtime.HoldingLiveRuns, 8)
		limits.setLimit(runtime.HoldingQueuedRuns, 7)
		limits.setLimit(runtime.HoldingOpenQuestions, 6)
		require.Empty(t, f.engine.ListTenantHoldings())
		f.begin("acme@1", "works")
		f.begin("acme@1", "works", enqueueBusy)
		f.begin("acme@2", "asks")
		f.begin("other@1", "works")
		require.ElementsMatch(t, []runtime.TenantHolding{
			{Tenant: "acme", Of: runtime.HoldingThreads, Held: 2, Most: 9},
			{Tenant: "acme", Of: runtime.HoldingLiveRuns, Held: 1, Most: 8},
			{Tenant: "acme", Of: runtime.HoldingQueuedRuns, Held: 1, Most: 7},
			{Tenant: "acme", Of: runtime.HoldingOpenQuestions, Held: 1, Most: 6},
		}, f.engine.ListTenantHoldings())
	})
}

// Many calls at the same time make as many threads as the tenant may have, at one server.
// Others on the store learn of them within a second.
func TestThreadsOfATenantAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		limits := newTenantLimits(runtime.HoldingThreads, 20)
		f := newTenantFixture(t, store, limits)
		second := newTenantFixture(t, store, limits)
		require.NoError(t, second.tryCreate("acme@second"), "it keeps a count of 0")
		var made atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if f.tryCreate(fmt.Sprint("acme@", i)) == nil {
					made.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 19, made.Load())
		sleepVirtual(time.Second)
		requireExceeded(t, second.tryCreate("acme@late"), runtime.HoldingThreads, "20")
		require.NoError(t, second.tryCreate("other@late"))
	})
}

// countedCalls is a store that counts how often it counts.
type countedCalls struct {
	checkpoint.Store

	counts atomic.Int64
}

func (s *countedCalls) CountThreads(ctx context.Context, tenant string, atMost int) (int, error) {
	s.counts.Add(1)
	return s.Store.CountThreads(ctx, tenant, atMost)
}

func (s *countedCalls) CountOpenInterrupts(ctx context.Context, tenant string, atMost int) (int, error) {
	s.counts.Add(1)
	return s.Store.CountOpenInterrupts(ctx, tenant, atMost)
}

// Tenants without a limit are never counted, and those with one once a second, or ten
// times where they are at it.
func TestCountsOfATenantAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countedCalls{Store: memory.New(memory.Options{})}
		limits := newTenantLimits(runtime.HoldingThreads, 50)
		limits.setLimit(runtime.HoldingOpenQuestions, 5)
		f := newTenantFixture(t, store, limits)
		for i := range 20 {
			f.begin(fmt.Sprint("other@", i), "computes")
			f.begin(fmt.Sprint("t", i), "computes")
		}
		require.Zero(t, store.counts.Load())
		for i := range 20 {
			f.begin(fmt.Sprint("acme@", i), "computes")
			f.begin(fmt.Sprint("acme@", i), "computes")
		}
		require.EqualValues(t, 2, store.counts.Load())
		sleepVirtual(time.Second)
		f.begin("acme@0", "computes")
		require.EqualValues(t, 3, store.counts.Load(), "a thread that is there is not counted")

		limits.setLimit(runtime.HoldingThreads, 20)
		before := store.counts.Load()
		for range 100 {
			requireExceeded(t, f.tryCreate("acme@new"), runtime.HoldingThreads, "20")
			sleepVirtual(10 * time.Millisecond)
		}
		require.LessOrEqual(t, store.counts.Load()-before, int64(11))
	})
}

// A change whose answer is lost counts as the store has it, and a store that does not
// answer refuses nothing as a limit.
func TestThreadsOfATenantAfterFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		for _, mode := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter} {
			owner := fmt.Sprint("acme@", mode)
			store := faulty.New(inner, faulty.Plan{At: 2, For: -1, Mode: mode, Only: []faulty.Method{faulty.Apply}})
			f := newTenantFixture(t, store, newTenantLimits(runtime.HoldingThreads, 4))
			require.NoError(t, f.tryCreate(owner+"-1"))
			require.Error(t, f.tryCreate(owner+"-2"))
			store.StopFaults()
			sleepVirtual(time.Second)
			n, err := inner.CountThreads(t.Context(), "acme", 100)
			require.NoError(t, err)
			for i := range 4 - n {
				require.NoError(t, f.tryCreate(fmt.Sprint(owner, "-more", i)), mode)
			}
			requireExceeded(t, f.tryCreate(owner+"-last"), runtime.HoldingThreads, "4")
			for _, thread := range []string{"-1", "-more0", "-more1", "-more2"} {
				if err := f.engine.DeleteThread(t.Context(), owner+thread, 0, false); err != nil {
					require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonThreadNotFound})
				}
			}
		}
		f := newTenantFixture(t, faulty.New(inner, faulty.Plan{At: 1, For: -1, Only: []faulty.Method{faulty.CountThreads}}),
			newTenantLimits(runtime.HoldingThreads, 4))
		require.ErrorIs(t, f.tryCreate("acme@t"), &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
		require.NoError(t, f.tryCreate("other@t"))
	})
}

func TestOpenQuestionsOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTenantFixture(t, memory.New(memory.Options{}), newTenantLimits(runtime.HoldingOpenQuestions, 2))
		f.begin("acme@1", "asks")
		f.begin("acme@2", "asks")
		refuseAll := func() {
			t.Helper()
			for _, thread := range []string{"acme@new", "acme@idle"} {
				_, err := f.tryBegin(thread, "asks")
				requireExceeded(t, err, runtime.HoldingOpenQuestions, "2")
			}
			_, err := f.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "acme@1", Thread: "acme@copy"})
			requireExceeded(t, err, runtime.HoldingOpenQuestions, "2")
		}
		require.NoError(t, f.tryCreate("acme@idle", func(r *runtime.CreateThreadRequest) { r.Graph = "asks" }), "an empty thread asks nothing")
		refuseAll()
		for i := range 3 {
			f.begin(fmt.Sprint("other@", i), "asks")
			f.begin(fmt.Sprint("t", i), "asks")
		}
		f.begin("acme@1", "asks", func(r *runtime.StartRequest) { r.Open = runtime.DiscardOpen }) // it asks in place of the other
		refuseAll()
		_, err := f.tryBegin("acme@1", "asks")
		require.Equal(t, runtime.ReasonQuotaExceeded, errorReason(err))

		f.engine.Close()
		f.startEngine()
		refuseAll()
		_, err = f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "acme@2", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err, "an answer is never refused")
		f.begin("acme@3", "asks")
		refuseAll()
		f.finish("acme@2")
	})
}

// A run that is live asks whatever its tenant has open: a question is never lost.
func TestALiveRunAsksBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingOpenQuestions, 2)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		f.nodes.funcs["then ask"] = askOnceNode
		f.compileGraph(chainSpec("works and asks", channelsLog, "work", "then ask"))
		for i := range 4 {
			f.begin(fmt.Sprint("acme@", i), "works and asks")
		}
		for i := range 4 {
			f.proceedOf(fmt.Sprint("acme@", i)) <- struct{}{}
		}
		synctest.Wait()
		open, err := f.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: "acme", States: []checkpoint.InterruptState{checkpoint.InterruptOpen}})
		require.NoError(t, err)
		require.Len(t, open, 4)
		_, err = f.tryBegin("acme@new", "computes")
		requireExceeded(t, err, runtime.HoldingOpenQuestions, "2")
	})
}

func TestQueuedRunsOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newTenantLimits(runtime.HoldingQueuedRuns, 3)
		f := newTenantFixture(t, memory.New(memory.Options{}), limits)
		sleepVirtual(time.Second) // a look just before would stand
		for _, thread := range []string{"acme@1", "acme@2", "other@1", "t1"} {
			f.begin(thread, "works")
		}
		f.begin("acme@1", "works", enqueueBusy)
		f.begin("acme@1", "works", enqueueBusy)
		f.begin("acme@2", "works", enqueueBusy)
		refuseAll := func() {
			t.Helper()
			for _, thread := range []string{"acme@1", "acme@2"} {
				_, err := f.tryBegin(thread, "works", enqueueBusy)
				requireExceeded(t, err, runtime.HoldingQueuedRuns, "3")
			}
		}
		refuseAll()
		for range 5 {
			f.begin("other@1", "works", enqueueBusy)
			f.begin("t1", "works", enqueueBusy)
		}
		f.begin("acme@3", "works") // it waits for nothing

		f.engine.Close()
		f.startEngine()
		sleepVirtual(time.Second)
		first, err := f.tryBegin("acme@2", "works", enqueueBusy)
		if err == nil { // it began before the queues of the store were counted
			require.Equal(t, checkpoint.RunQueued, first.Run.State)
		}
		sleepVirtual(time.Second)
		_, err = f.tryBegin("acme@1", "works", enqueueBusy)
		requireExceeded(t, err, runtime.HoldingQueuedRuns, "3")

		f.proceedOf("acme@1") <- struct{}{} // its next run begins
		f.proceedOf("acme@1") <- struct{}{}
		sleepVirtual(time.Second)
		f.begin("acme@1", "works", enqueueBusy)
		require.NoError(t, f.engine.DeleteThread(t.Context(), "acme@1", 0, true))
		f.begin("acme@2", "works", enqueueBusy)
	})
}

// Where another server has begun the queued runs, the limit has room for others.
func TestQueuedRunsThatAnotherServerBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		limits := newTenantLimits(runtime.HoldingQueuedRuns, 1)
		f := newTenantFixture(t, store, limits)
		second := newTenantFixture(t, store, newTenantLimits(runtime.HoldingThreads, 100))
		sleepVirtual(time.Second)
		second.begin("acme@1", "works")
		second.begin("acme@2", "works")
		f.begin("acme@1", "works", enqueueBusy)
		_, err := f.tryBegin("acme@2", "works", enqueueBusy)
		requireExceeded(t, err, runtime.HoldingQueuedRuns, "1")
		for range 2 {
			second.proceedOf("acme@1") <- struct{}{}
			f.proceedOf("acme@1") <- struct{}{}
			sleepVirtual(time.Second)
		}
		f.begin("acme@2", "works", enqueueBusy)
	})
}
