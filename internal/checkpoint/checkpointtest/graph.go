package checkpointtest

import (
	"errors"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func graphCases() []testCase {
	return []testCase{
		{"a version is kept once", func(e *env) {
			g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: `{"b": 1.0}`, Created: testDay(1)}
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			same := g
			same.Created = testDay(2)
			require.NoError(e, e.store.PutGraph(e.ctx, same, checkpoint.GraphCondition{}))
			other := g
			other.Source = `{"b":1.0}`
			require.ErrorIs(e, e.store.PutGraph(e.ctx, other, checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
			got, err := e.store.GraphRecords(e.ctx)
			require.NoError(e, err)
			require.Equal(e, []checkpoint.GraphRecord{g}, got)
		}},
		{"the first secret of a name stays", func(e *env) {
			for _, offer := range []string{"first", "second"} {
				got, err := e.store.Secret(e.ctx, "a key", offer)
				require.NoError(e, err)
				require.Equal(e, "first", got)
			}
			other, err := e.store.Secret(e.ctx, "b", "third")
			require.NoError(e, err)
			require.Equal(e, "third", other)
		}},
		{"versions are listed oldest first", func(e *env) {
			want := []checkpoint.GraphRecord{
				{Name: "b", Version: "1", Source: "1", Created: testDay(1)},
				{Name: "a", Version: "1", Source: "1", Created: testDay(2)},
				{Name: "a", Version: "2", Source: "1", Created: testDay(2)},
				{Name: "b", Version: "0", Source: "1", Created: testDay(2)},
				{Name: "a", Version: "0", Source: "1", Created: testDay(3)},
			}
			for _, i := range []int{4, 2, 0, 3, 1} {
				require.NoError(e, e.store.PutGraph(e.ctx, want[i], checkpoint.GraphCondition{}))
			}
			got, err := e.store.GraphRecords(e.ctx)
			require.NoError(e, err)
			require.Equal(e, want, got)
			for i := range want {
				one, err := e.store.GraphRecord(e.ctx, want[i].Name, want[i].Version)
				require.NoError(e, err)
				require.Equal(e, want[i], one)
				want[i].Source = ""
			}
			list, _, err := e.store.GraphVersions(e.ctx, 0)
			require.NoError(e, err)
			require.Equal(e, want, list, "without what is large")
			_, err = e.store.GraphRecord(e.ctx, "b", "2")
			require.ErrorIs(e, err, checkpoint.ErrGraphNotFound)
		}},
		{"a revision tells whether anything has changed", func(e *env) {
			g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: "1", Created: testDay(1)}
			list, empty := e.listGraphs(0)
			require.Empty(e, list)
			require.NotZero(e, empty)
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			list, one := e.listGraphs(empty)
			require.Len(e, list, 1)
			require.Greater(e, one, empty)
			_, same := e.listGraphs(one)
			require.Equal(e, one, same)
			g.Version = "2"
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			list, two := e.listGraphs(one)
			require.Len(e, list, 2)
			require.Greater(e, two, one)
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}))
			list, three := e.listGraphs(two)
			require.Len(e, list, 1)
			require.Greater(e, three, two)
		}},
		{"a deleted version is gone and comes back only as it was", func(e *env) {
			g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: `{"b": 1.0}`, Created: testDay(1)}
			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}), checkpoint.ErrGraphNotFound)
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "2", checkpoint.GraphCondition{}), checkpoint.ErrGraphNotFound)
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}))
			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}), checkpoint.ErrGraphNotFound)
			_, err := e.store.GraphRecord(e.ctx, "g", "1")
			require.ErrorIs(e, err, checkpoint.ErrGraphNotFound)
			list, _ := e.listGraphs(0)
			require.Empty(e, list)
			all, err := e.store.GraphRecords(e.ctx)
			require.NoError(e, err)
			require.Empty(e, all)

			other := g
			other.Source = `{"b":1.0}`
			require.ErrorIs(e, e.store.PutGraph(e.ctx, other, checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
			g.Created = testDay(2)
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
			got, err := e.store.GraphRecord(e.ctx, "g", "1")
			require.NoError(e, err)
			require.Equal(e, g, got)
			list, _ = e.listGraphs(0)
			require.Len(e, list, 1)
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}))
			require.ErrorIs(e, e.store.PutGraph(e.ctx, other, checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
		}},
		{"the versions that were deleted last are remembered", func(e *env) {
			const churn = 4 * Tombstones
			version := func(n int, source string) checkpoint.GraphRecord {
				return checkpoint.GraphRecord{Name: "g", Version: strconv.Itoa(n), Source: source, Created: testDay(n)}
			}
			for n := range churn {
				require.NoError(e, e.store.PutGraph(e.ctx, version(n, "was"), checkpoint.GraphCondition{}))
				require.NoError(e, e.store.DeleteGraph(e.ctx, "g", strconv.Itoa(n), checkpoint.GraphCondition{}))
			}
			for n := range Tombstones {
				require.ErrorIs(e, e.store.PutGraph(e.ctx, version(churn-1-n, "other"), checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
			}
			// A version that comes back leaves its place to those that are deleted later.
			require.NoError(e, e.store.PutGraph(e.ctx, version(churn-2, "was"), checkpoint.GraphCondition{}))
			require.NoError(e, e.store.PutGraph(e.ctx, version(churn, "was"), checkpoint.GraphCondition{}))
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", strconv.Itoa(churn), checkpoint.GraphCondition{}))
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", strconv.Itoa(churn-2), checkpoint.GraphCondition{}))
			for _, n := range []int{churn, churn - 1, churn - 2} {
				require.ErrorIs(e, e.store.PutGraph(e.ctx, version(n, "other"), checkpoint.GraphCondition{}), checkpoint.ErrGraphExists)
			}
			// Nothing is left of the others: versions under their names are new, with times of
			// their own.
			for _, n := range []int{0, churn - 4, churn - 3} {
				other := version(n, "other")
				other.Created = testDay(100 + n)
				require.NoError(e, e.store.PutGraph(e.ctx, other, checkpoint.GraphCondition{}))
				got, err := e.store.GraphRecord(e.ctx, "g", other.Version)
				require.NoError(e, err)
				require.Equal(e, other, got)
			}
			list, _ := e.listGraphs(0)
			require.Len(e, list, 3)
		}},
		{"a version is put and deleted only beside the expected versions", func(e *env) {
			version := func(v string) checkpoint.GraphRecord {
				return checkpoint.GraphRecord{Name: "g", Version: v, Source: v, Created: testDay(1)}
			}
			without, none := checkpoint.GraphCondition{}, checkpoint.ExpectVersions()
			require.NoError(e, e.store.PutGraph(e.ctx, checkpoint.GraphRecord{Name: "gg", Version: "1", Source: "1", Created: testDay(1)}, without))
			require.NoError(e, e.store.PutGraph(e.ctx, version("1"), none), "the condition is about one graph")
			require.ErrorIs(e, e.store.PutGraph(e.ctx, version("2"), none), checkpoint.ErrVersionsChanged)
			require.NoError(e, e.store.PutGraph(e.ctx, version("1"), none), "it is there")
			require.NoError(e, e.store.PutGraph(e.ctx, version("2"), checkpoint.ExpectVersions("1")))
			require.NoError(e, e.store.PutGraph(e.ctx, version("3"), checkpoint.ExpectVersions("2", "1")), "in any order")
			require.ErrorIs(e, e.store.PutGraph(e.ctx, version("4"), checkpoint.ExpectVersions("1", "2")), checkpoint.ErrVersionsChanged)
			before, _ := e.listGraphs(0)
			require.Len(e, before, 4)

			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "3", checkpoint.ExpectVersions("3")), checkpoint.ErrVersionsChanged)
			same, _ := e.listGraphs(0)
			require.Equal(e, before, same)
			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "4", none), checkpoint.ErrGraphNotFound)
			require.NoError(e, e.store.DeleteGraph(e.ctx, "g", "3", checkpoint.ExpectVersions("1", "2", "3")))
			require.ErrorIs(e, e.store.PutGraph(e.ctx, version("3"), none), checkpoint.ErrVersionsChanged)
			other := version("3")
			other.Source = "other"
			require.ErrorIs(e, e.store.PutGraph(e.ctx, other, checkpoint.ExpectVersions("1", "2")), checkpoint.ErrGraphExists, "the tombstone is there")
			require.NoError(e, e.store.PutGraph(e.ctx, version("3"), checkpoint.ExpectVersions("1", "2")))
		}},
		{"of many puts with the same condition one is made", func(e *env) {
			var group sync.WaitGroup
			results := make([]error, 8)
			for n := range results {
				group.Go(func() {
					g := checkpoint.GraphRecord{Name: "g", Version: strconv.Itoa(n), Source: "1", Created: testDay(1)}
					results[n] = e.store.PutGraph(e.ctx, g, checkpoint.ExpectVersions())
				})
			}
			group.Wait()
			made := 0
			for _, err := range results {
				if err == nil {
					made++
					continue
				}
				require.ErrorIs(e, err, checkpoint.ErrVersionsChanged)
			}
			require.Equal(e, 1, made)
			list, _ := e.listGraphs(0)
			require.Len(e, list, 1)
		}},
		{"puts of many graphs at once are all made", func(e *env) {
			var group sync.WaitGroup
			for n := range 8 {
				group.Go(func() {
					g := checkpoint.GraphRecord{Name: "g" + strconv.Itoa(n), Version: "1", Source: "1", Created: testDay(1)}
					if err := e.store.PutGraph(e.ctx, g, checkpoint.ExpectVersions()); err != nil {
						e.Errorf("put: %v", err)
					}
				})
			}
			group.Wait()
			list, _ := e.listGraphs(0)
			require.Len(e, list, 8)
		}},
		{"many at once put and delete a version", func(e *env) {
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: "1", Created: testDay(1)}
					for range 5 {
						if err := e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}); err != nil {
							e.Errorf("put: %v", err)
						}
						if err := e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}); err != nil && !errors.Is(err, checkpoint.ErrGraphNotFound) {
							e.Errorf("delete: %v", err)
						}
					}
				})
			}
			group.Wait()
			list, _ := e.listGraphs(0)
			require.Empty(e, list)
		}},
	}
}

func (e *env) listGraphs(known uint64) ([]checkpoint.GraphRecord, uint64) {
	list, revision, err := e.store.GraphVersions(e.ctx, known)
	require.NoError(e, err)
	return list, revision
}

func closeCases() []testCase {
	return []testCase{
		{"a closed store is unavailable", func(e *env) {
			th := e.newThread("t")
			th.applyEdits()
			require.NoError(e, e.store.Close())
			require.NoError(e, e.store.Close(), "closing twice does no harm")
			_, err := e.store.Apply(e.ctx, th.newChange())
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Head(e.ctx, "t")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Checkpoint(e.ctx, "t", "", "")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Pending(e.ctx, "t", "c")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Events(e.ctx, "t", 0, 0)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Run(e.ctx, "t", "r")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Runs(e.ctx, "t", 0, 0)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Interrupt(e.ctx, "t", "q")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Request(e.ctx, "t", "q")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Threads(e.ctx, checkpoint.ThreadQuery{})
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, err = e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{})
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, _, err = e.store.Due(e.ctx, 0)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			require.ErrorIs(e, e.store.PutGraph(e.ctx, checkpoint.GraphRecord{Name: "g"}, checkpoint.GraphCondition{}), checkpoint.ErrUnavailable)
			_, err = e.store.GraphRecords(e.ctx)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			require.ErrorIs(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}), checkpoint.ErrUnavailable)
			_, err = e.store.GraphRecord(e.ctx, "g", "1")
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, _, err = e.store.GraphVersions(e.ctx, 0)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
			_, _, err = e.store.GraphVersions(e.ctx, 1)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
		}},
	}
}
