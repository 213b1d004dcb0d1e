package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func historyCases() []testCase {
	return []testCase{
		{"a checkpoint is read as it was written", historyComplete},
		{"an empty id means the newest of the namespace", historyNewest},
		{"a missing checkpoint is not found", historyMissing},
		{"checkpoints are listed newest first, in pages", historyPages},
		{"namespaces are apart", historyNamespaces},
		{"node names alone find every task's namespace", historyAnyTask},
		{"a rollback drops what is newer", historyDrop},
		{"history goes on after a rollback", historyAfterDrop},
		{"a history reaches back to DropBefore", historyPrune},
		{"what newer checkpoints show outlives the one that wrote it", historyPruneShared},
		{"an end of history adds and takes back nothing", historyPruneAlone},
		{"all namespaces can be listed", historyAllNamespaces},
		{"a history can be taken over whole", historyCopied},
		{"an unchanged value is read from where it was written", historyUnchanged},
	}
}

func historyComplete(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addCheckpoint("")) //nolint:gocritic // two alike
	cp := &checkpoint.Checkpoint{
		ID: checkpointID(3), Seq: 3, Parent: checkpointID(2), Namespace: "a:1|b:2", Graph: "g", Version: "v", Run: "r",
		Source: checkpoint.SourceInput, Step: -1, Time: testDay(2), Metadata: map[string]string{"k": "v"},
		Parents: map[string]string{"": checkpointID(2), "a:1": "x"},
		Channels: []checkpoint.Channel{
			{Name: "small", Version: 3, Stored: 3, Value: `{"b": 1.0, "a":9007199254740993}`},
			largeChannel("large", 3),
			{Name: "consumed", Version: 2, Stored: 3},
			{Name: "null", Version: 2, Stored: 3, Value: "null", Flag: true},
			listChannel("items", 3),
			{Name: "no items", Version: 1, Stored: 3, List: &checkpoint.List{}},
		},
		Seen: []checkpoint.NodeSeen{
			{Node: "n", Versions: []checkpoint.SeenVersion{{Channel: "small", Version: 3}, {Channel: "x", Version: 1}}},
			{Node: "m"},
		},
		Updated: []string{"large", "small"},
		Next:    []checkpoint.NextTask{{ID: "t1", Node: "n"}, {ID: "t2", Node: "m"}},
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Head.Seq, c.Checkpoints = 3, []*checkpoint.Checkpoint{cp} })
	for _, id := range []string{"", checkpointID(3)} {
		got, err := e.store.Checkpoint(e.ctx, "t", "a:1|b:2", id)
		require.NoError(e, err)
		require.Equal(e, cp, got)
	}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: "a:1|b:2"})
	require.NoError(e, err)
	require.Equal(e, []*checkpoint.Checkpoint{cp}, list)
}

func historyNewest(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addCheckpoint("sub:1"))
	th.applyEdits(addCheckpoint(""))
	th.applyEdits(addCheckpoint("sub:1"), addCheckpoint("sub:1")) //nolint:gocritic // two alike
	for ns, want := range map[string]string{"": checkpointID(3), "sub:1": checkpointID(5)} {
		cp, err := e.store.Checkpoint(e.ctx, "t", ns, "")
		require.NoError(e, err)
		require.Equal(e, want, cp.ID)
	}
	cp, err := e.store.Checkpoint(e.ctx, "t", "", checkpointID(1))
	require.NoError(e, err)
	require.Equal(e, checkpointID(1), cp.ID)
}

func historyMissing(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addCheckpoint("sub:1"))
	for _, c := range []struct{ thread, namespace, id string }{
		{"nobody", "", ""},
		{"nobody", "", checkpointID(1)},
		{"t", "other", ""},
		{"t", "", "other"},
		{"t", "", checkpointID(2)},
		{"t", "sub:1", checkpointID(1)},
		{"t", "sub", ""},
	} {
		_, err := e.store.Checkpoint(e.ctx, c.thread, c.namespace, c.id)
		require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound, "%+v", c)
	}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "nobody", Limit: 3})
	require.NoError(e, err)
	require.Empty(e, list)
}

func historyPages(e *env) {
	th := e.newThread("t")
	for range 4 {
		th.applyEdits(addCheckpoint(""), addCheckpoint("sub:1"))
	}
	for _, c := range []struct {
		before uint64
		limit  int
		want   []string
	}{
		{0, 0, []string{checkpointID(7), checkpointID(5), checkpointID(3), checkpointID(1)}},
		{0, 2, []string{checkpointID(7), checkpointID(5)}},
		{5, 2, []string{checkpointID(3), checkpointID(1)}},
		{4, 0, []string{checkpointID(3), checkpointID(1)}},
		{1, 2, []string{}},
		{99, 1, []string{checkpointID(7)}},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Before: c.before, Limit: c.limit})
		require.NoError(e, err)
		require.Equal(e, c.want, checkpointIDs(list), "%+v", c)
	}
}

func historyNamespaces(e *env) {
	th, other := e.newThread("t"), e.newThread("T")
	th.applyEdits(addCheckpoint("a:1"), addCheckpoint("a:1|b:1"), addCheckpoint("a:2"))
	other.applyEdits(addCheckpoint("a:1"))
	for ns, want := range map[string][]string{
		"a:1": {checkpointID(1)}, "a:1|b:1": {checkpointID(2)}, "a:2": {checkpointID(3)}, "": {}, "a": {}, "a:3": {},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: ns})
		require.NoError(e, err)
		require.Equal(e, want, checkpointIDs(list), ns)
	}
}

func historyAnyTask(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addCheckpoint("a:1"), addCheckpoint("a:1|b:1"), addCheckpoint("a:2"), addCheckpoint("a:2|b:7"), addCheckpoint("a:2|b:8"))
	for ns, want := range map[string][]string{
		"a":       {checkpointID(4), checkpointID(2)},
		"a:9":     {checkpointID(4), checkpointID(2)},
		"a|b":     {checkpointID(6), checkpointID(5), checkpointID(3)},
		"a:1|b:2": {checkpointID(6), checkpointID(5), checkpointID(3)},
		"":        {checkpointID(1)},
		"b":       {},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: ns, AnyTask: true})
		require.NoError(e, err)
		require.Equal(e, want, checkpointIDs(list), ns)
	}
	list, err := e.store.Checkpoints(e.ctx,
		checkpoint.CheckpointQuery{Thread: "t", Namespace: "a|b", AnyTask: true, Before: 6, Limit: 1})
	require.NoError(e, err)
	require.Equal(e, []string{checkpointID(5)}, checkpointIDs(list))
}

// dropAfter rolls the thread back to a checkpoint.
func dropAfter(seq uint64) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		c.DropAfter, c.Head.Seq, c.Head.Checkpoint = &seq, seq, checkpointID(seq)
	}
}

func historyDrop(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint("", largeChannel("v", 1)))
	th.applyEdits(addCheckpoint("", largeChannel("v", 2)))
	th.applyEdits(addCheckpoint("sub:1", largeChannel("v", 3)), addCheckpoint("other:1"))
	th.applyEdits(func(c *checkpoint.Change) {
		for seq := range uint64(3) {
			id := checkpointID(seq + 1)
			c.Tasks = append(c.Tasks, checkpoint.Task{ID: "x", Checkpoint: id, State: checkpoint.TaskDone})
			c.Memos = append(c.Memos, checkpoint.Memo{Task: "x", Checkpoint: id, Value: "1"})
		}
	})
	th.applyEdits(dropAfter(2))
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Equal(e, []string{checkpointID(2), checkpointID(1)}, checkpointIDs(list))
	require.Equal(e, largeChannel("v", 2), list[0].Channels[0])
	for _, ns := range []string{"sub:1", "other:1"} {
		_, err = e.store.Checkpoint(e.ctx, "t", ns, "")
		require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
		list, err = e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: checkpoint.NodePath(ns), AnyTask: true})
		require.NoError(e, err)
		require.Empty(e, list)
	}
	for seq, n := range map[uint64]int{1: 1, 2: 1, 3: 0} {
		p, err := e.store.Pending(e.ctx, "t", checkpointID(seq))
		require.NoError(e, err)
		require.Len(e, p.Tasks, n)
		require.Len(e, p.Memos, n)
	}
	th.applyEdits(dropAfter(0))
	_, err = e.store.Checkpoint(e.ctx, "t", "", "")
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
}

func historyAfterDrop(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint("", largeChannel("v", 1)))
	th.applyEdits(addCheckpoint("", largeChannel("v", 2)))
	replaced := largeChannel("v", 2)
	replaced.Value += " "
	// A rollback and later checkpoints may be one change.
	th.applyEdits(dropAfter(1), addCheckpoint("", replaced))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, checkpointID(2), cp.ID)
	require.Equal(e, replaced, cp.Channels[0])
}

func historyUnchanged(e *env) {
	th := e.newThread("t")
	v := largeChannel("v", 1)
	th.applyEdits(addCheckpoint("", v))
	for range 3 {
		th.applyEdits(addCheckpoint("", v))
	}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Len(e, list, 4)
	for _, cp := range list {
		require.Equal(e, []checkpoint.Channel{v}, cp.Channels)
	}
}
