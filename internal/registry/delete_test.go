package registry_test

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
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// threadListStore is a store with that many threads.
type threadListStore struct {
	list  []checkpoint.Head
	calls int
}

func (t *threadListStore) Threads(_ context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	t.calls++
	list := t.list
	for i := range list {
		if q.Before.Thread != "" && list[i].Thread == q.Before.Thread {
			list = list[i+1:]
			break
		}
	}
	var found []checkpoint.Head
	for i := range list {
		if len(found) < q.Limit && q.MatchesThread(&list[i]) {
			found = append(found, list[i])
		}
	}
	return found, nil
}

func newHeads(n int, graph string) []checkpoint.Head {
	list := make([]checkpoint.Head, n)
	for i := range list {
		list[i] = checkpoint.Head{Thread: fmt.Sprint("t", i), Updated: time.Unix(int64(n-i), 0), Graph: graph, Version: "v0"}
	}
	return list
}

func TestDelete(t *testing.T) {
	for name, store := range map[string]checkpoint.Graphs{"stored": memory.New(memory.Options{}), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t, store)
			threads := &threadListStore{list: newHeads(1200, "other")}
			o.Threads = threads
			r, err := registry.New(t.Context(), o)
			require.NoError(t, err)
			for _, v := range []string{"v1", "v2", "v3"} {
				putGraph(t, r, graphText("g", v, "1"))
			}
			_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "h"})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphNotFound})
			_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v9"})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable})

			gone, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v3"})
			require.NoError(t, err)
			require.Equal(t, []string{"v3"}, gone)
			require.Equal(t, 1, threads.calls, "those of other graphs are not looked at")
			g, err := r.Graph("g", "")
			require.NoError(t, err)
			require.Equal(t, "v2", g.Version)

			threads.list[700].Graph, threads.list[700].Version = "g", "v1"
			_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g"})
			require.Equal(t, map[string]string{"graph": "g", "threads": "t700"}, requireRefused(t, err, runtime.ReasonGraphInUse).Meta)
			require.ErrorContains(t, err, "threads are pinned to it, among them t700; force")
			_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v2"})
			require.NoError(t, err, "another version is used")
			gone, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Force: true})
			require.NoError(t, err)
			require.Equal(t, []string{"v1"}, gone)
			_, err = r.Graph("g", "")
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphNotFound})
			_, err = r.Graph("g", "v1")
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable})
			putGraph(t, r, graphText("g", "v1", "1"))
			_, err = r.Graph("g", "v1")
			require.NoError(t, err)
		})
	}
}

func TestDeleteLooksAtABoundedNumberOfThreads(t *testing.T) {
	o := newOptions(t, memory.New(memory.Options{}))
	threads := &threadListStore{list: newHeads(30_000, "g")}
	o.Threads = threads
	r, err := registry.New(t.Context(), o)
	require.NoError(t, err)
	putGraph(t, r, graphText("g", "v1", "1"))
	_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g"})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphInUse})
	require.ErrorContains(t, err, "more than the 10000 threads that were looked at, those that were created last")
	require.Equal(t, 20, threads.calls)
	_, err = r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Force: true})
	require.NoError(t, err)
}

func TestAGraphInAnotherIsNotDeleted(t *testing.T) {
	store := memory.New(memory.Options{})
	one := openRegistry(t, store)
	putGraph(t, one, graphText("sub", "v1", "1"))
	putGraph(t, one, graphText("sub", "v2", "2"))
	putGraph(t, one, wrappingGraph("outer", "v1", "sub", "v1"))
	for _, r := range []*registry.Registry{one, openRegistry(t, store)} {
		_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "sub"})
		require.Equal(t, map[string]string{"graph": "sub", "graphs": "outer@v1"}, requireRefused(t, err, runtime.ReasonGraphInUse).Meta)
	}
	_, err := one.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "sub", Version: "v2"})
	require.NoError(t, err)
}

// A version that is put again after its deletion has the same content or is
// refused.
func TestADeletedVersionComesBackAsItWas(t *testing.T) {
	store := memory.New(memory.Options{})
	one, two := openRegistry(t, store), openRegistry(t, store)
	putGraph(t, one, graphText("g", "v1", "1"))
	require.NoError(t, two.Refresh(t.Context()))
	held, err := two.Graph("g", "v1")
	require.NoError(t, err)
	_, err = one.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v1", Force: true})
	require.NoError(t, err)
	require.NoError(t, two.Refresh(t.Context()), "other servers notice")
	_, err = two.Graph("g", "v1")
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable})
	_, err = two.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("g", "v1", "2")})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphExists})
	require.ErrorContains(t, err, "was deleted", "no list shows it")
	putGraph(t, two, graphText("g", "v1", "1"))
	require.NoError(t, one.Refresh(t.Context()))
	again, err := one.Graph("g", "v1")
	require.NoError(t, err)
	require.Equal(t, held.Spec, again.Spec)
}

// A server was away while a version was deleted and its tombstone was forgotten. It
// takes up the version that came later under the same name, and drops its own
// compiled graph, which the store no longer has.
func TestAServerThatWasAwayTakesUpWhatCameLater(t *testing.T) {
	store := memory.New(memory.Options{Tombstones: 1})
	one, away := openRegistry(t, store), openRegistry(t, store)
	putGraph(t, one, graphText("g", "v1", "1"))
	putGraph(t, one, graphText("g", "v2", "1"))
	putGraph(t, one, wrappingGraph("outer", "v1", "g", "v1"))
	require.NoError(t, away.Refresh(t.Context()))
	held, err := away.Graph("g", "v1")
	require.NoError(t, err)
	_, err = away.Graph("outer", "v1")
	require.NoError(t, err)
	for _, v := range []string{"v1", "v2"} {
		_, err = one.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: v, Force: true})
		require.NoError(t, err)
	}
	putGraph(t, one, graphText("g", "v1", "2"))
	want, err := one.Graph("g", "v1")
	require.NoError(t, err)

	require.NoError(t, away.Refresh(t.Context()))
	got, err := away.Graph("g", "v1")
	require.NoError(t, err)
	require.NotEqual(t, held.Spec, got.Spec)
	require.Equal(t, want.Spec, got.Spec)
	newest, err := away.Graph("g", "")
	require.NoError(t, err)
	require.Equal(t, want.Spec, newest.Spec)
	e, err := away.GetGraph(t.Context(), "g", "")
	require.NoError(t, err)
	require.Equal(t, []string{"v1"}, e.Versions)
	outer, err := away.Graph("outer", "v1")
	require.NoError(t, err)
	require.Equal(t, want.Spec, outer.Nodes[1].Sub.Spec)
}

// blockingStore is a store that answers no read of a graph before its caller leaves.
type blockingStore struct {
	checkpoint.Graphs

	reads atomic.Int32
}

func (s *blockingStore) GraphRecord(ctx context.Context, _, _ string) (checkpoint.GraphRecord, error) {
	s.reads.Add(1)
	<-ctx.Done()
	return checkpoint.GraphRecord{}, ctx.Err()
}

func TestDeleteEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := memory.New(memory.Options{})
		first := openRegistry(t, kept)
		for i := range 40 {
			putGraph(t, first, graphText("g", fmt.Sprint("v", i), "1"))
		}
		store := &blockingStore{Graphs: kept}
		r := openRegistry(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := r.DeleteGraph(ctx, runtime.DeleteGraphRequest{Name: "g", Version: "v0"})
			ended <- err
		}()
		synctest.Wait()
		begun := store.reads.Load()
		require.Positive(t, begun)
		require.Less(t, begun, int32(20), "of 40 versions")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, begun, store.reads.Load(), "nothing is read for a caller who has left")
	})
}

// gatedStore is a store whose reads wait until several are under way.
type gatedStore struct {
	checkpoint.Graphs

	mu      sync.Mutex
	waiting int
	enough  chan struct{} // closed when there are enough
}

const gatedReads = 8

func (s *gatedStore) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	s.mu.Lock()
	if s.waiting++; s.waiting == gatedReads {
		close(s.enough)
	}
	s.mu.Unlock()
	select {
	case <-s.enough:
	case <-ctx.Done():
		return checkpoint.GraphRecord{}, context.Cause(ctx)
	}
	return s.Graphs.GraphRecord(ctx, name, version)
}

// A server reads the sources of graphs that it does not know yet several at a time,
// and each once.
func TestDeleteReadsSeveralSourcesAtATime(t *testing.T) {
	store := &gatedStore{Graphs: memory.New(memory.Options{}), enough: make(chan struct{})}
	first := openRegistry(t, store.Graphs)
	for i := range 40 {
		putGraph(t, first, graphText("g", fmt.Sprint("v", i), "1"))
	}
	putGraph(t, first, wrappingGraph("outer", "v1", "g", "v3"))
	second := openRegistry(t, store)
	_, err := second.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v3"})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonGraphInUse})
	read := store.waiting
	_, err = second.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "g", Version: "v4"})
	require.NoError(t, err)
	require.Equal(t, 40, read)
	require.Equal(t, read+1, store.waiting, "v3 may contain v4")
}
