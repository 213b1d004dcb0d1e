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
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// refusingStore is a store that takes no changes for a while, and counts what it is
// asked for meanwhile.
type refusingStore struct {
	countingStore

	refusal        atomic.Pointer[error]
	refusedCount   atomic.Int64
	acceptsDeletes bool // it takes all the same
}

func (s *refusingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := s.refusal.Load(); err != nil && (!c.Delete || !s.acceptsDeletes) {
		s.refusedCount.Add(1)
		return checkpoint.Receipt{}, fmt.Errorf("at /secret/path: %w", *err)
	}
	return s.Store.Apply(ctx, c)
}

func newRefusingFixture(t *testing.T, code map[string]nodeFunc, specs ...*graph.Spec) (*fixture, *refusingStore) {
	t.Helper()
	store := &refusingStore{countingStore: countingStore{Store: memory.New(memory.Options{})}}
	return newFixtureOn(t, store, engine.Options{}, code, specs...), store
}

// TestWhatAStoreRefuses has a store that takes no changes for a while, which costs
// no run, and one that will never take a change, whose run fails and says why.
func TestWhatAStoreRefuses(t *testing.T) {
	size := &checkpoint.SizeError{Limit: "max-change-bytes", Unit: "bytes", Max: 10, Actual: 11}
	for name, c := range map[string]struct {
		err    error
		passes bool
		reason string
	}{
		"full":      {err: checkpoint.ErrStoreFull, passes: true, reason: runtime.ReasonStoreFull},
		"replaced":  {err: checkpoint.ErrStoreReplaced, passes: true, reason: runtime.ReasonStoreReplaced},
		"busy":      {err: checkpoint.ErrStoreBusy, passes: true, reason: runtime.ReasonStoreBusy},
		"too large": {err: size, reason: runtime.ReasonChangeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refusing atomic.Bool
				var first sync.Once
				a := func(context.Context, *nodeCall) pregel.Result {
					first.Do(func() { refusing.Store(true) })
					return logUpdate(`"a"`)
				}
				w, store := newCountingFixture(t, engine.Options{}, map[string]nodeFunc{"a": a}, chainSpec("g", channelsLog, "a"))
				var refused atomic.Int32
				store.beforeApply = func(int, *checkpoint.Change) error {
					if !refusing.Load() || (!c.passes && refused.Load() > 0) {
						return nil
					}
					refused.Add(1)
					return fmt.Errorf("at /secret/path: %w", c.err)
				}
				s, err := w.engine.Start(t.Context(), runtime.StartRequest{
					Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["x"]}`},
				})
				require.NoError(t, err)
				sleepVirtual(time.Minute)
				if c.passes {
					_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "u"})
					require.Equal(t, c.reason, errorReason(err))
					require.NotContains(t, err.Error(), "secret")
					refusing.Store(false)
				}
				r := w.waitRun(s)
				require.Positive(t, refused.Load())
				if c.passes {
					require.Equal(t, checkpoint.RunSucceeded, r.State)
				} else {
					require.Equal(t, checkpoint.RunFailed, r.State)
					require.Equal(t, runtime.FailedLimit, r.Failure.Reason)
					require.Equal(t, map[string]string{"limit": "max-change-bytes", "most": "10", "need": "11"}, r.Failure.Details)
				}
			})
		})
	}
}

// TestTheSchedulerPausesWhileTheStoreRefusesChanges has threads due for every reason
// while the store takes no changes.
func TestTheSchedulerPausesWhileTheStoreRefusesChanges(t *testing.T) {
	const each = 20
	for name, why := range map[string]error{
		"full": checkpoint.ErrStoreFull, "replaced": checkpoint.ErrStoreReplaced,
		"busy": checkpoint.ErrStoreBusy, "silent": checkpoint.ErrUnavailable, "unknown": checkpoint.ErrOutcomeUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code := map[string]nodeFunc{
					"slow": func(ctx context.Context, _ *nodeCall) pregel.Result {
						if workFor(ctx, 2*time.Second) != nil {
							return failedResult("cut off")
						}
						return logUpdate(`"slow"`)
					},
					"ask": expiringAskNode(checkpoint.ExpiryResumeDefault),
				}
				w, store := newRefusingFixture(t, code, chainSpec("works", channelsLog, "slow"), chainSpec("asks", channelsLog, "ask"))
				for i := range each {
					require.Equal(t, checkpoint.RunInterrupted, w.runToStop(fmt.Sprint("asks", i), "asks", `{}`).State)
					_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: fmt.Sprint("ends", i), Expiration: runtime.Expiration{TTL: time.Minute}})
					require.NoError(t, err)
				}
				var started []*runtime.Started
				for i := range each {
					s, err := w.engine.Start(t.Context(), runtime.StartRequest{
						Thread: fmt.Sprint("works", i), CreateThread: true, Graph: "works", Request: checkpoint.RunRequest{Input: `{}`},
					})
					require.NoError(t, err)
					started = append(started, s)
				}
				store.acceptsDeletes = name == "full"
				store.refusal.Store(&why)
				sleepVirtual(2 * time.Minute) // leases are over, and so is the time of what waits
				refused, due, heads := store.refusedCount.Load(), store.dueCalls.Load(), store.headCalls.Load()
				sleepVirtual(80 * time.Second)
				require.LessOrEqual(t, store.dueCalls.Load()-due, int64(11), "a look every eight seconds")
				require.LessOrEqual(t, store.refusedCount.Load()-refused, int64(33), "one thread each, three times")
				if name != "full" {
					require.LessOrEqual(t, store.headCalls.Load()-heads, int64(11))
				}
				if store.acceptsDeletes {
					_, err := w.engine.Thread(t.Context(), "ends0")
					require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err), "deleting frees room")
				}
				store.refusal.Store(nil)
				_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "u"})
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				for _, s := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.waitRun(s).State)
				}
				require.LessOrEqual(t, time.Since(began), 4*time.Second, "a change that is taken ends the pause")
				sleepVirtual(time.Second)
				for i := range each {
					asked, err := w.engine.Thread(t.Context(), fmt.Sprint("asks", i))
					require.NoError(t, err)
					require.Equal(t, checkpoint.ThreadIdle, asked.State)
					_, err = w.engine.Thread(t.Context(), fmt.Sprint("ends", i))
					require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
				}
			})
		})
	}
}
