package checkpointtest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// everywhere lists a thread's checkpoints of all namespaces.
func (e *env) everywhere(thread string, before uint64, limit int) []*checkpoint.Checkpoint {
	e.Helper()
	list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{
		Thread: thread, Namespace: "ignored", Everywhere: true, Before: before, Limit: limit,
	})
	require.NoError(e, err)
	return list
}

func historyEverywhere(e *env) {
	th := e.thread("t")
	require.Empty(e, e.everywhere("t", 0, 0))
	th.apply(point(""), point("a:1"), point("a:1|b:2"))
	th.apply(point("3:x"), point(""))
	require.Equal(e, []string{cpID(5), cpID(4), cpID(3), cpID(2), cpID(1)}, ids(e.everywhere("t", 0, 0)))
	require.Equal(e, []string{cpID(3), cpID(2)}, ids(e.everywhere("t", 4, 2)))
	require.Empty(e, e.everywhere("other", 0, 0))
}

// historyTakenOver copies what is left of a thread's history, with lists of which
// branches share beginnings whose first writers are gone.
func historyTakenOver(e *env) {
	l := e.list()
	v := big("v", 1)
	l.apply(point("", v))
	first := l.next(0, 3, false)
	second := l.next(first, 2, false)
	branch := l.next(first, 4, true)
	l.next(second, 1, false)
	l.next(branch, 2, false)
	l.apply(point("", v), point("kept", v))
	all := e.everywhere("t", 0, 0)
	l.apply(forget(all[len(all)-1].Seq + 3))
	left := e.everywhere("t", 0, 0)
	require.Less(e, len(left), len(all))
	require.Greater(e, len(left), 3)

	th := e.thread("u")
	oldestFirst := slices.Clone(left)
	slices.Reverse(oldestFirst)
	th.apply(func(c *checkpoint.Change) {
		c.Checkpoints, c.Whole = oldestFirst, true
		c.Head.Seq, c.Head.Checkpoint = left[0].Seq, left[0].ID
	})
	e.requireSame(left, "u")

	// The copy has nothing of the other thread.
	_, err := e.store.Apply(e.ctx, l.change(func(c *checkpoint.Change) { c.Delete = true }))
	require.NoError(e, err)
	e.requireSame(left, "u")

	// It can be gone back in and forgotten like any other.
	cut := left[2].Seq
	th.apply(func(c *checkpoint.Change) {
		c.DropAfter, c.Head.Seq, c.Head.Checkpoint = &cut, cut, left[2].ID
	})
	e.requireSame(left[2:], "u")
	th.apply(forget(left[3].Seq))
	e.requireSame(left[2:4], "u")
}

func (e *env) requireSame(want []*checkpoint.Checkpoint, thread string) {
	e.Helper()
	got := e.everywhere(thread, 0, 0)
	require.Equal(e, ids(want), ids(got))
	for i := range want {
		require.Equal(e, want[i], got[i])
	}
}
