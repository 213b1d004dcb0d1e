package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// forget ends the history of a thread before a checkpoint.
func forget(before uint64, spare ...string) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.DropBefore, c.Spare = before, spare }
}

func (e *env) history(namespace string) []string {
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: namespace, AnyTask: true})
	require.NoError(e, err)
	return ids(list)
}

func historyForget(e *env) {
	th := e.thread("t")
	th.apply(point(""), point("once:1"), point("kept"), point("kept")) //nolint:gocritic // two alike
	th.apply(point(""), point("once:2"))
	th.apply(point("", big("v", 7)))
	th.apply(point("", big("v", 8)))
	th.apply(func(c *checkpoint.Change) {
		for seq := range uint64(8) {
			id := cpID(seq + 1)
			c.Tasks = append(c.Tasks, checkpoint.Task{ID: "x", Checkpoint: id, State: checkpoint.TaskDone})
			c.Memos = append(c.Memos, checkpoint.Memo{Task: "x", Checkpoint: id, Value: "1"})
		}
	})
	th.apply(forget(8, cpID(5)), events(1))
	require.Equal(e, []string{cpID(8), cpID(5)}, e.history(""))
	require.Equal(e, []string{cpID(4)}, e.history("kept"))
	require.Empty(e, e.history("once"))
	for seq, n := range map[uint64]int{1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 0, 7: 0, 8: 1} {
		p, err := e.store.Pending(e.ctx, "t", cpID(seq))
		require.NoError(e, err)
		require.Len(e, p.Tasks, n, seq)
		require.Len(e, p.Memos, n, seq)
	}
	_, err := e.store.Checkpoint(e.ctx, "t", "", cpID(7))
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, big("v", 8), cp.Channels[0])
	require.Equal(e, []uint64{1}, th.seqs(0, 0))
	th.apply(forget(99))
	require.Equal(e, []string{cpID(8)}, e.history(""), "the newest of the root stays")
	th.apply(point(""))
	require.Equal(e, []string{cpID(9), cpID(8)}, e.history(""))
}

func historyForgetShared(e *env) {
	th := e.thread("t")
	items := func(last uint64, n, fresh int) checkpoint.Channel {
		l := &checkpoint.List{Segments: []checkpoint.Segment{{ID: 1, Len: n}}, Fresh: fresh}
		for i := range n {
			l.Items = append(l.Items, payload.JSON([]string{`"a"`, `"b"`, `"c"`, `"d"`}[i]))
		}
		return checkpoint.Channel{Name: "l", Version: last, Stored: last, List: l}
	}
	v := big("v", 1)
	th.apply(point("", v, items(1, 1, 1)))
	th.apply(point("", v, items(2, 2, 1)))
	th.apply(point("", v, items(3, 4, 2)))
	v4 := big("v", 4)
	th.apply(point("", v4, items(3, 4, 2)))
	th.apply(forget(3))
	want := map[string][]checkpoint.Channel{cpID(3): {v, items(3, 4, 2)}, cpID(4): {v4, items(3, 4, 2)}}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Len(e, list, 2)
	for _, cp := range list {
		require.Equal(e, want[cp.ID], cp.Channels)
	}
	th.apply(forget(4))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, want[cpID(4)], cp.Channels)
	// A rollback and a new element of the same number find nothing in their way.
	th.apply(point("", v4, items(5, 4, 0)))
	th.apply(dropAfter(4))
	cp, err = e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, want[cpID(4)], cp.Channels)
}

func historyForgetAlone(e *env) {
	th := e.thread("t")
	th.apply(point(""))
	for _, edit := range []func(*checkpoint.Change){point(""), dropAfter(1)} {
		_, err := e.store.Apply(e.ctx, th.change(forget(1), edit))
		require.ErrorIs(e, err, checkpoint.ErrInvalid)
		require.ErrorContains(e, err, "DropBefore")
	}
	require.Equal(e, []string{cpID(1)}, e.history(""))
}
