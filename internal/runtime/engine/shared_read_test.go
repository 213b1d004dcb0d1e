package engine_test

import (
	"context"
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
)

// heldReads is a store whose reads of the log wait until they are let go.
type heldReads struct {
	checkpoint.Store

	reads atomic.Int64
	hold  chan struct{} // nil = reads do not wait
}

func (h *heldReads) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	h.reads.Add(1)
	if h.hold != nil {
		select {
		case <-h.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Store.Events(ctx, thread, after, limit)
}

// Followers that want the same of the log read it together, also when those that were
// about to read it for the others leave.
func TestFollowersReadTheLogTogether(t *testing.T) {
	for name, leaving := range map[string]int{"all stay": 0, "the first leave": 12} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &heldReads{Store: memory.New(memory.Options{})}
				w := newFixtureOn(t, store, engine.Options{}, map[string]nodeFunc{"a": tokenNode(0)}, chainSpec("g", []graph.ChannelSpec{{Name: "a"}}, "a"))
				w.runToStop("t", "g", `{}`)
				store.reads.Store(0)
				store.hold = make(chan struct{})
				const followers = 300
				var (
					all  sync.WaitGroup
					seen [followers][]checkpoint.Event
					errs [followers]error
				)
				first, leave := context.WithCancel(t.Context())
				defer leave()
				for i := range followers {
					ctx := t.Context()
					if i < leaving {
						ctx = first
					}
					f := w.engine.Follow(runtime.FollowRequest{Thread: "t"})
					all.Go(func() {
						defer f.Close()
						seen[i], errs[i] = f.Next(ctx)
					})
					synctest.Wait()
				}
				leave()
				synctest.Wait()
				close(store.hold)
				all.Wait()
				for i := range followers {
					if i < leaving {
						require.ErrorIs(t, errs[i], context.Canceled)
						continue
					}
					require.NoError(t, errs[i])
					require.NotEmpty(t, seen[i])
					require.Equal(t, seen[leaving], seen[i])
				}
				require.LessOrEqual(t, store.reads.Load(), int64(30))
				w.engine.Close()
			})
		})
	}
}

// A read that its reader has broken off, as a heartbeat does, is made again.
func TestBrokenOffReadsAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &heldReads{Store: memory.New(memory.Options{})}
		code, spec := map[string]nodeFunc{"a": tokenNode(0)}, chainSpec("g", []graph.ChannelSpec{{Name: "a"}}, "a")
		w := newFixtureOn(t, store, engine.Options{PollInterval: 2 * time.Second}, code, spec)
		w.runToStop("t", "g", `{}`)
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t"})
		defer f.Close()
		w.runToStop("t", "g", `{}`) // the follower has its events without a read
		for {
			events, err := f.ReadAvailable(t.Context())
			require.NoError(t, err)
			if len(events) == 0 {
				break
			}
		}

		other := newFixtureOn(t, store, engine.Options{}, code, spec) // a server that tells this one nothing
		other.runToStop("t", "g", `{}`)
		store.hold = make(chan struct{})
		ctx, breakOff := context.WithCancel(t.Context())
		var broken sync.WaitGroup
		before := store.reads.Load()
		broken.Go(func() {
			_, err := f.Next(ctx)
			require.ErrorIs(t, err, context.Canceled)
		})
		sleepVirtual(3 * time.Second) // it reads the log again by itself
		require.Equal(t, before+1, store.reads.Load())
		breakOff()
		broken.Wait()
		close(store.hold)
		events, err := f.ReadAvailable(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, events)
		w.engine.Close()
		other.engine.Close()
	})
}
