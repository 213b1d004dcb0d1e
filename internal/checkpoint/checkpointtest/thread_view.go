package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A store need not be a ThreadViewer. A view shows the same as its parts.
func viewCases() []testCase {
	return []testCase{
		{"a view shows what its parts show", viewParts},
		{"a view of a bare thread shows that there is nothing", viewBare},
		{"a view leaves out what belongs to another checkpoint or run", viewOthers},
		{"a view of no thread finds none", viewMissing},
	}
}

func (t *threadDriver) requireView(request string) (g *checkpoint.ThreadView, ok bool) {
	t.Helper()
	viewer, ok := t.store.(checkpoint.ThreadViewer)
	if !ok {
		return g, false
	}
	g, err := viewer.ViewThread(t.ctx, t.id, request)
	require.NoError(t, err)
	h, err := t.store.Head(t.ctx, t.id)
	require.NoError(t, err)
	require.False(t, h.Now.Before(g.Head.Now))
	h.Now = g.Head.Now
	require.Equal(t, h, g.Head)
	return g, true
}

func viewParts(e *env) {
	th := e.newThread("t")
	th.applyEdits(fullChange("run"), func(c *checkpoint.Change) { c.Head.Checkpoint = c.Checkpoints[0].ID })
	th.applyEdits(func(c *checkpoint.Change) {
		c.Tasks = []checkpoint.Task{{ID: "b", Checkpoint: th.head.Checkpoint, State: checkpoint.TaskWaiting}}
		later := newInterrupt("t", "a", th.head.Checkpoint)
		later.State = checkpoint.InterruptConsumed
		c.Interrupts = []checkpoint.Interrupt{later, newInterrupt("t", "other", "elsewhere")}
	})
	g, ok := th.requireView("request")
	if !ok {
		return
	}
	run, err := e.store.Run(e.ctx, "t", "run")
	require.NoError(e, err)
	require.Equal(e, &run, g.Run)
	cp, err := e.store.Checkpoint(e.ctx, "t", "", th.head.Checkpoint)
	require.NoError(e, err)
	require.Equal(e, cp, g.Checkpoint)
	p, err := e.store.Pending(e.ctx, "t", th.head.Checkpoint)
	require.NoError(e, err)
	require.Len(e, p.Interrupts, 2)
	require.Equal(e, &p, g.Pending)
	all, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(e, err)
	require.Len(e, all, 3)
	require.Equal(e, &all, g.Interrupts)
	request, err := e.store.Request(e.ctx, "t", "request")
	require.NoError(e, err)
	require.Equal(e, map[string]*checkpoint.Request{"request": &request}, g.Requests)
	g, _ = th.requireView("another")
	require.Equal(e, map[string]*checkpoint.Request{"another": nil}, g.Requests)
}

func viewBare(e *env) {
	th := e.newThread("t")
	th.applyEdits()
	g, ok := th.requireView("")
	if !ok {
		return
	}
	require.Nil(e, g.Run)
	require.Nil(e, g.Checkpoint)
	require.Nil(e, g.Pending)
	require.Empty(e, *g.Interrupts)
	require.Empty(e, g.Requests)
}

func viewOthers(e *env) {
	th := e.newThread("t")
	th.applyEdits(fullChange("run"), func(c *checkpoint.Change) { c.Head.Checkpoint = c.Checkpoints[0].ID })
	th.applyEdits(addCheckpoint(""), func(c *checkpoint.Change) {
		c.Head.Checkpoint = checkpointID(1)
		c.Runs = []checkpoint.Run{{ID: "queued", Thread: "t", State: checkpoint.RunQueued, Order: 2}}
	})
	g, ok := th.requireView("")
	if !ok {
		return
	}
	require.Nil(e, g.Run, "it is not the newest")
	require.Nil(e, g.Checkpoint)
	require.Nil(e, g.Pending)
}

func viewMissing(e *env) {
	if viewer, ok := e.store.(checkpoint.ThreadViewer); ok {
		_, err := viewer.ViewThread(e.ctx, "nobody", "x")
		require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	}
}
