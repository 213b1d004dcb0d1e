package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func historyCases() []testCase {
	return []testCase{
		{"a checkpoint is read as it was written", historyWhole},
		{"an empty id means the newest of the namespace", historyNewest},
		{"a missing checkpoint is not found", historyMissing},
		{"checkpoints are listed newest first, in pages", historyPages},
		{"namespaces are apart", historyNamespaces},
		{"node names alone find every task's namespace", historyAnyTask},
		{"a rollback drops what is newer", historyDrop},
		{"history goes on after a rollback", historyAfterDrop},
		{"a history reaches back to DropBefore", historyForget},
		{"what newer checkpoints show outlives the one that wrote it", historyForgetShared},
		{"an end of history adds and takes back nothing", historyForgetAlone},
		{"all namespaces can be listed", historyEverywhere},
		{"a history can be taken over whole", historyTakenOver},
		{"an unchanged value is read from where it was written", historyUnchanged},
	}
}

func historyWhole(e *env) {
	th := e.thread("t")
	th.apply(point(""), point("")) //nolint:gocritic // two alike
	cp := &checkpoint.Checkpoint{
		ID: cpID(3), Seq: 3, Parent: cpID(2), Namespace: "a:1|b:2", Graph: "g", Version: "v", Run: "r",
		Source: checkpoint.SourceInput, Step: -1, Time: day(2), Metadata: map[string]string{"k": "v"},
		Parents: map[string]string{"": cpID(2), "a:1": "x"},
		Channels: []checkpoint.Channel{
			{Name: "small", Version: 3, Stored: 3, Value: `{"b": 1.0, "a":9007199254740993}`},
			big("large", 3),
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
	th.apply(func(c *checkpoint.Change) { c.Head.Seq, c.Checkpoints = 3, []*checkpoint.Checkpoint{cp} })
	for _, id := range []string{"", cpID(3)} {
		got, err := e.store.Checkpoint(e.ctx, "t", "a:1|b:2", id)
		require.NoError(e, err)
		require.Equal(e, cp, got)
	}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: "a:1|b:2"})
	require.NoError(e, err)
	require.Equal(e, []*checkpoint.Checkpoint{cp}, list)
}

func historyNewest(e *env) {
	th := e.thread("t")
	th.apply(point(""), point("sub:1"))
	th.apply(point(""))
	th.apply(point("sub:1"), point("sub:1")) //nolint:gocritic // two alike
	for ns, want := range map[string]string{"": cpID(3), "sub:1": cpID(5)} {
		cp, err := e.store.Checkpoint(e.ctx, "t", ns, "")
		require.NoError(e, err)
		require.Equal(e, want, cp.ID)
	}
	cp, err := e.store.Checkpoint(e.ctx, "t", "", cpID(1))
	require.NoError(e, err)
	require.Equal(e, cpID(1), cp.ID)
}

func historyMissing(e *env) {
	th := e.thread("t")
	th.apply(point(""), point("sub:1"))
	for _, c := range []struct{ thread, namespace, id string }{
		{"nobody", "", ""},
		{"nobody", "", cpID(1)},
		{"t", "other", ""},
		{"t", "", "other"},
		{"t", "", cpID(2)},
		{"t", "sub:1", cpID(1)},
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
	th := e.thread("t")
	for range 4 {
		th.apply(point(""), point("sub:1"))
	}
	for _, c := range []struct {
		before uint64
		limit  int
		want   []string
	}{
		{0, 0, []string{cpID(7), cpID(5), cpID(3), cpID(1)}},
		{0, 2, []string{cpID(7), cpID(5)}},
		{5, 2, []string{cpID(3), cpID(1)}},
		{4, 0, []string{cpID(3), cpID(1)}},
		{1, 2, []string{}},
		{99, 1, []string{cpID(7)}},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Before: c.before, Limit: c.limit})
		require.NoError(e, err)
		require.Equal(e, c.want, ids(list), "%+v", c)
	}
}

func historyNamespaces(e *env) {
	th, other := e.thread("t"), e.thread("T")
	th.apply(point("a:1"), point("a:1|b:1"), point("a:2"))
	other.apply(point("a:1"))
	for ns, want := range map[string][]string{
		"a:1": {cpID(1)}, "a:1|b:1": {cpID(2)}, "a:2": {cpID(3)}, "": {}, "a": {}, "a:3": {},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: ns})
		require.NoError(e, err)
		require.Equal(e, want, ids(list), ns)
	}
}

func historyAnyTask(e *env) {
	th := e.thread("t")
	th.apply(point(""), point("a:1"), point("a:1|b:1"), point("a:2"), point("a:2|b:7"), point("a:2|b:8"))
	for ns, want := range map[string][]string{
		"a":       {cpID(4), cpID(2)},
		"a:9":     {cpID(4), cpID(2)},
		"a|b":     {cpID(6), cpID(5), cpID(3)},
		"a:1|b:2": {cpID(6), cpID(5), cpID(3)},
		"":        {cpID(1)},
		"b":       {},
	} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: ns, AnyTask: true})
		require.NoError(e, err)
		require.Equal(e, want, ids(list), ns)
	}
	list, err := e.store.Checkpoints(e.ctx,
		checkpoint.CheckpointQuery{Thread: "t", Namespace: "a|b", AnyTask: true, Before: 6, Limit: 1})
	require.NoError(e, err)
	require.Equal(e, []string{cpID(5)}, ids(list))
}

// dropAfter rolls the thread back to a checkpoint.
func dropAfter(seq uint64) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		c.DropAfter, c.Head.Seq, c.Head.Checkpoint = &seq, seq, cpID(seq)
	}
}

func historyDrop(e *env) {
	th := e.thread("t")
	th.apply(point("", big("v", 1)))
	th.apply(point("", big("v", 2)))
	th.apply(point("sub:1", big("v", 3)), point("other:1"))
	th.apply(func(c *checkpoint.Change) {
		for seq := range uint64(3) {
			id := cpID(seq + 1)
			c.Tasks = append(c.Tasks, checkpoint.Task{ID: "x", Checkpoint: id, State: checkpoint.TaskDone})
			c.Memos = append(c.Memos, checkpoint.Memo{Task: "x", Checkpoint: id, Value: "1"})
		}
	})
	th.apply(dropAfter(2))
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Equal(e, []string{cpID(2), cpID(1)}, ids(list))
	require.Equal(e, big("v", 2), list[0].Channels[0])
	for _, ns := range []string{"sub:1", "other:1"} {
		_, err = e.store.Checkpoint(e.ctx, "t", ns, "")
		require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
		list, err = e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t", Namespace: checkpoint.NodePath(ns), AnyTask: true})
		require.NoError(e, err)
		require.Empty(e, list)
	}
	for seq, n := range map[uint64]int{1: 1, 2: 1, 3: 0} {
		p, err := e.store.Pending(e.ctx, "t", cpID(seq))
		require.NoError(e, err)
		require.Len(e, p.Tasks, n)
		require.Len(e, p.Memos, n)
	}
	th.apply(dropAfter(0))
	_, err = e.store.Checkpoint(e.ctx, "t", "", "")
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
}

func historyAfterDrop(e *env) {
	th := e.thread("t")
	th.apply(point("", big("v", 1)))
	th.apply(point("", big("v", 2)))
	replaced := big("v", 2)
	replaced.Value += " "
	// A rollback and what follows it may be one change.
	th.apply(dropAfter(1), point("", replaced))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, cpID(2), cp.ID)
	require.Equal(e, replaced, cp.Channels[0])
}

func historyUnchanged(e *env) {
	th := e.thread("t")
	v := big("v", 1)
	th.apply(point("", v))
	for range 3 {
		th.apply(point("", v))
	}
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Len(e, list, 4)
	for _, cp := range list {
		require.Equal(e, []checkpoint.Channel{v}, cp.Channels)
	}
}
