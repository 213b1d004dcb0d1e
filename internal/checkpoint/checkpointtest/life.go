package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func graphCases() []testCase {
	return []testCase{
		{"a version is kept once", func(e *env) {
			g := checkpoint.GraphRecord{Name: "g", Version: "1", Source: `{"b": 1.0}`, Created: day(1)}
			require.NoError(e, e.store.PutGraph(e.ctx, g))
			same := g
			same.Created = day(2)
			require.NoError(e, e.store.PutGraph(e.ctx, same))
			other := g
			other.Source = `{"b":1.0}`
			require.ErrorIs(e, e.store.PutGraph(e.ctx, other), checkpoint.ErrGraphExists)
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
				{Name: "b", Version: "1", Source: "1", Created: day(1)},
				{Name: "a", Version: "1", Source: "1", Created: day(2)},
				{Name: "a", Version: "2", Source: "1", Created: day(2)},
				{Name: "b", Version: "0", Source: "1", Created: day(2)},
				{Name: "a", Version: "0", Source: "1", Created: day(3)},
			}
			for _, i := range []int{4, 2, 0, 3, 1} {
				require.NoError(e, e.store.PutGraph(e.ctx, want[i]))
			}
			got, err := e.store.GraphRecords(e.ctx)
			require.NoError(e, err)
			require.Equal(e, want, got)
		}},
	}
}

func lifeCases() []testCase {
	return []testCase{
		{"a closed store is unavailable", func(e *env) {
			th := e.thread("t")
			th.apply()
			require.NoError(e, e.store.Close())
			require.NoError(e, e.store.Close(), "closing twice does no harm")
			_, err := e.store.Apply(e.ctx, th.change())
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
			require.ErrorIs(e, e.store.PutGraph(e.ctx, checkpoint.GraphRecord{Name: "g"}), checkpoint.ErrUnavailable)
			_, err = e.store.GraphRecords(e.ctx)
			require.ErrorIs(e, err, checkpoint.ErrUnavailable)
		}},
	}
}
