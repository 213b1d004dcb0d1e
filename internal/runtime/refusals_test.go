package runtime_test

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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// refusing is a store that takes no changes for a while, and counts what it is
// asked for meanwhile.
type refusing struct {
	countingStore

	with    atomic.Pointer[error]
	refused atomic.Int64
	deletes bool // it takes all the same
}

func (s *refusing) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := s.with.Load(); err != nil && (!c.Delete || !s.deletes) {
		s.refused.Add(1)
		return checkpoint.Receipt{}, fmt.Errorf("at /secret/path: %w", *err)
	}
	return s.Store.Apply(ctx, c)
}

func newRefusing(t *testing.T, code map[string]node, specs ...*graph.Spec) (*world, *refusing) {
	t.Helper()
	store := &refusing{countingStore: countingStore{Store: memory.New(memory.Options{})}}
	return newWorldOn(t, store, runtime.Options{}, code, specs...), store
}

// TestWhatAStoreRefuses has a store that takes no changes for a while, which costs
// no run, and one that will never take a change, whose run fails and says why.
func TestWhatAStoreRefuses(t *testing.T) {
	size := &checkpoint.SizeError{Limit: "max-change-bytes", Unit: "bytes", Most: 10, Got: 11}
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
				a := func(context.Context, *call) pregel.Result {
					first.Do(func() { refusing.Store(true) })
					return wrote(`"a"`)
				}
				w, store := computing(t, runtime.Options{}, map[string]node{"a": a}, chain("g", channelsLog, "a"))
				var refused atomic.Int32
				store.before = func(int, *checkpoint.Change) error {
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
				rest(time.Minute)
				if c.passes {
					_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "u"})
					require.Equal(t, c.reason, reason(err))
					require.NotContains(t, err.Error(), "secret")
					refusing.Store(false)
				}
				r := w.wait(s)
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

// TestTheSweeperPausesWhileTheStoreRefusesChanges has threads due for every reason
// while the store takes no changes.
func TestTheSweeperPausesWhileTheStoreRefusesChanges(t *testing.T) {
	const each = 20
	for name, why := range map[string]error{
		"full": checkpoint.ErrStoreFull, "replaced": checkpoint.ErrStoreReplaced,
		"busy": checkpoint.ErrStoreBusy, "silent": checkpoint.ErrUnavailable, "unknown": checkpoint.ErrOutcomeUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code := map[string]node{
					"slow": func(ctx context.Context, _ *call) pregel.Result {
						if doing(ctx, 2*time.Second) != nil {
							return fail("cut off")
						}
						return wrote(`"slow"`)
					},
					"ask": timed(checkpoint.ExpiryResumeDefault),
				}
				w, store := newRefusing(t, code, chain("works", channelsLog, "slow"), chain("asks", channelsLog, "ask"))
				for i := range each {
					require.Equal(t, checkpoint.RunInterrupted, w.run(fmt.Sprint("asks", i), "asks", `{}`).State)
					_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: fmt.Sprint("ends", i), Expiration: runtime.Expiration{TTL: time.Minute}})
					require.NoError(t, err)
				}
				var started []runtime.Started
				for i := range each {
					s, err := w.engine.Start(t.Context(), runtime.StartRequest{
						Thread: fmt.Sprint("works", i), CreateThread: true, Graph: "works", Request: checkpoint.RunRequest{Input: `{}`},
					})
					require.NoError(t, err)
					started = append(started, s)
				}
				store.deletes = name == "full"
				store.with.Store(&why)
				rest(2 * time.Minute) // leases are over, and so is the time of what waits
				refused, due, heads := store.refused.Load(), store.due.Load(), store.heads.Load()
				rest(80 * time.Second)
				require.LessOrEqual(t, store.due.Load()-due, int64(11), "a look every eight seconds")
				require.LessOrEqual(t, store.refused.Load()-refused, int64(33), "one thread each, three times")
				if name != "full" {
					require.LessOrEqual(t, store.heads.Load()-heads, int64(11))
				}
				if store.deletes {
					_, err := w.engine.Thread(t.Context(), "ends0")
					require.Equal(t, runtime.ReasonThreadNotFound, reason(err), "deleting frees room")
				}
				store.with.Store(nil)
				_, err := w.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "u"})
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				for _, s := range started {
					require.Equal(t, checkpoint.RunSucceeded, w.wait(s).State)
				}
				require.LessOrEqual(t, time.Since(began), 4*time.Second, "a change that is taken ends the pause")
				rest(time.Second)
				for i := range each {
					asked, err := w.engine.Thread(t.Context(), fmt.Sprint("asks", i))
					require.NoError(t, err)
					require.Equal(t, checkpoint.ThreadIdle, asked.State)
					_, err = w.engine.Thread(t.Context(), fmt.Sprint("ends", i))
					require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
				}
			})
		})
	}
}
