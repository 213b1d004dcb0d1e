package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// pruneBefore ends the history of a thread before a checkpoint.
func pruneBefore(before uint64, spare ...string) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.DropBefore, c.KeepCheckpoints = before, spare }
}

func (e *env) listHistory(namespace string) []string {
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: namespace, AnyTask: true})
	require.NoError(e, err)
	return checkpointIDs(list)
}

func historyPrune(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addCheckpoint("once:1"), addCheckpoint("kept"), addCheckpoint("kept")) //nolint:gocritic // two alike
	th.applyEdits(addCheckpoint(""), addCheckpoint("once:2"))
	th.applyEdits(addCheckpoint("", largeChannel("v", 7)))
	th.applyEdits(addCheckpoint("", largeChannel("v", 8)))
	th.applyEdits(func(c *checkpoint.Change) {
		for seq := range uint64(8) {
			id := checkpointID(seq + 1)
			c.Tasks = append(c.Tasks, checkpoint.Task{ID: "x", Checkpoint: id, State: checkpoint.TaskDone})
			c.Memos = append(c.Memos, checkpoint.Memo{Task: "x", Checkpoint: id, Value: "1"})
		}
	})
	th.applyEdits(pruneBefore(8, checkpointID(5)), addEvents(1))
	require.Equal(e, []string{checkpointID(8), checkpointID(5)}, e.listHistory(""))
	require.Equal(e, []string{checkpointID(4)}, e.listHistory("kept"))
	require.Empty(e, e.listHistory("once"))
	for seq, n := range map[uint64]int{1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 0, 7: 0, 8: 1} {
		p, err := e.store.Pending(e.ctx, "t", checkpointID(seq))
		require.NoError(e, err)
		require.Len(e, p.Tasks, n, seq)
		require.Len(e, p.Memos, n, seq)
	}
	_, err := e.store.Checkpoint(e.ctx, "t", "", checkpointID(7))
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, largeChannel("v", 8), cp.Channels[0])
	require.Equal(e, []uint64{1}, th.listEventNumbers(0, 0))
	th.applyEdits(pruneBefore(99))
	require.Equal(e, []string{checkpointID(8)}, e.listHistory(""), "the newest of the root stays")
	th.applyEdits(addCheckpoint(""))
	require.Equal(e, []string{checkpointID(9), checkpointID(8)}, e.listHistory(""))
}

func historyPruneShared(e *env) {
	th := e.newThread("t")
	items := func(last uint64, n, fresh int) checkpoint.Channel {
		l := &checkpoint.List{Segments: []checkpoint.Segment{{ID: 1, Len: n}}, Appended: fresh}
		for i := range n {
			l.Items = append(l.Items, payload.JSON([]string{`"a"`, `"b"`, `"c"`, `"d"`}[i]))
		}
		return checkpoint.Channel{Name: "l", Version: last, Stored: last, List: l}
	}
	v := largeChannel("v", 1)
	th.applyEdits(addCheckpoint("", v, items(1, 1, 1)))
	th.applyEdits(addCheckpoint("", v, items(2, 2, 1)))
	th.applyEdits(addCheckpoint("", v, items(3, 4, 2)))
	v4 := largeChannel("v", 4)
	th.applyEdits(addCheckpoint("", v4, items(3, 4, 2)))
	th.applyEdits(pruneBefore(3))
	want := map[string][]checkpoint.Channel{checkpointID(3): {v, items(3, 4, 2)}, checkpointID(4): {v4, items(3, 4, 2)}}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Len(e, list, 2)
	for _, cp := range list {
		require.Equal(e, want[cp.ID], cp.Channels)
	}
	th.applyEdits(pruneBefore(4))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, want[checkpointID(4)], cp.Channels)
	// A rollback and a new element of the same number find nothing in their way.
	th.applyEdits(addCheckpoint("", v4, items(5, 4, 0)))
	th.applyEdits(dropAfter(4))
	cp, err = e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, want[checkpointID(4)], cp.Channels)
}

func historyPruneAlone(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""))
	for _, edit := range []func(*checkpoint.Change){addCheckpoint(""), dropAfter(1)} {
		_, err := e.store.Apply(e.ctx, th.newChange(pruneBefore(1), edit))
		require.ErrorIs(e, err, checkpoint.ErrInvalid)
		require.ErrorContains(e, err, "DropBefore")
	}
	require.Equal(e, []string{checkpointID(1)}, e.listHistory(""))
}
