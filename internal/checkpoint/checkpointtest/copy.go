package checkpointtest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// listAllNamespaces lists a thread's checkpoints of all namespaces.
func (e *env) listAllNamespaces(thread string, before uint64, limit int) []*checkpoint.Checkpoint {
	e.Helper()
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{
		Thread: thread, Namespace: "ignored", AllNamespaces: true, Before: before, Limit: limit,
	})
	require.NoError(e, err)
	return list
}

func historyAllNamespaces(e *env) {
	th := e.newThread("t")
	require.Empty(e, e.listAllNamespaces("t", 0, 0))
	th.applyEdits(addCheckpoint(""), addCheckpoint("a:1"), addCheckpoint("a:1|b:2"))
	th.applyEdits(addCheckpoint("3:x"), addCheckpoint(""))
	require.Equal(e, []string{checkpointID(5), checkpointID(4), checkpointID(3), checkpointID(2), checkpointID(1)}, checkpointIDs(e.listAllNamespaces("t", 0, 0)))
	require.Equal(e, []string{checkpointID(3), checkpointID(2)}, checkpointIDs(e.listAllNamespaces("t", 4, 2)))
	require.Empty(e, e.listAllNamespaces("other", 0, 0))
}

// historyCopied copies the rest of a thread's history, with lists of which
// branches share beginnings whose first writers are gone.
func historyCopied(e *env) {
	l := e.newListDriver()
	v := largeChannel("v", 1)
	l.applyEdits(addCheckpoint("", v))
	first := l.appendItems(0, 3, false)
	second := l.appendItems(first, 2, false)
	branch := l.appendItems(first, 4, true)
	l.appendItems(second, 1, false)
	l.appendItems(branch, 2, false)
	l.applyEdits(addCheckpoint("", v), addCheckpoint("kept", v))
	all := e.listAllNamespaces("t", 0, 0)
	l.applyEdits(pruneBefore(all[len(all)-1].Seq + 3))
	left := e.listAllNamespaces("t", 0, 0)
	require.Less(e, len(left), len(all))
	require.Greater(e, len(left), 3)

	th := e.newThread("u")
	oldestFirst := slices.Clone(left)
	slices.Reverse(oldestFirst)
	th.applyEdits(func(c *checkpoint.Change) {
		c.Checkpoints, c.IsCopy = oldestFirst, true
		c.Head.Seq, c.Head.Checkpoint = left[0].Seq, left[0].ID
	})
	e.requireSame(left, "u")

	// The copy has nothing of the other thread.
	_, err := e.store.Apply(e.ctx, l.newChange(func(c *checkpoint.Change) { c.Delete = true }))
	require.NoError(e, err)
	e.requireSame(left, "u")

	// It can be gone back in and forgotten like any other.
	cut := left[2].Seq
	th.applyEdits(func(c *checkpoint.Change) {
		c.DropAfter, c.Head.Seq, c.Head.Checkpoint = &cut, cut, left[2].ID
	})
	e.requireSame(left[2:], "u")
	th.applyEdits(pruneBefore(left[3].Seq))
	e.requireSame(left[2:4], "u")
}

func (e *env) requireSame(want []*checkpoint.Checkpoint, thread string) {
	e.Helper()
	got := e.listAllNamespaces(thread, 0, 0)
	require.Equal(e, checkpointIDs(want), checkpointIDs(got))
	for i := range want {
		require.Equal(e, want[i], got[i])
	}
}
