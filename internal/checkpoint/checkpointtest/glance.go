package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A store need not be a Glancer. One that is shows what its parts show.
func glanceCases() []testCase {
	return []testCase{
		{"a glance shows what its parts show", glanceParts},
		{"a glance of a bare thread shows that there is nothing", glanceBare},
		{"a glance leaves out what belongs to another checkpoint or run", glanceOthers},
		{"a glance of no thread finds none", glanceNobody},
	}
}

func (th *thread) glance(request string) (g checkpoint.Glance, ok bool) {
	th.Helper()
	glancer, ok := th.store.(checkpoint.Glancer)
	if !ok {
		return g, false
	}
	g, err := glancer.Glance(th.ctx, th.id, request)
	require.NoError(th, err)
	h, err := th.store.Head(th.ctx, th.id)
	require.NoError(th, err)
	require.False(th, h.Now.Before(g.Head.Now))
	h.Now = g.Head.Now
	require.Equal(th, h, g.Head)
	return g, true
}

func glanceParts(e *env) {
	th := e.thread("t")
	th.apply(full("run"), func(c *checkpoint.Change) { c.Head.Checkpoint = c.Checkpoints[0].ID })
	th.apply(func(c *checkpoint.Change) {
		c.Tasks = []checkpoint.Task{{ID: "b", Checkpoint: th.head.Checkpoint, State: checkpoint.TaskWaiting}}
		later := question("t", "a", th.head.Checkpoint)
		later.State = checkpoint.InterruptConsumed
		c.Interrupts = []checkpoint.Interrupt{later, question("t", "other", "elsewhere")}
	})
	g, ok := th.glance("request")
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
	g, _ = th.glance("another")
	require.Equal(e, map[string]*checkpoint.Request{"another": nil}, g.Requests)
}

func glanceBare(e *env) {
	th := e.thread("t")
	th.apply()
	g, ok := th.glance("")
	if !ok {
		return
	}
	require.Nil(e, g.Run)
	require.Nil(e, g.Checkpoint)
	require.Nil(e, g.Pending)
	require.Empty(e, *g.Interrupts)
	require.Empty(e, g.Requests)
}

func glanceOthers(e *env) {
	th := e.thread("t")
	th.apply(full("run"), func(c *checkpoint.Change) { c.Head.Checkpoint = c.Checkpoints[0].ID })
	th.apply(point(""), func(c *checkpoint.Change) {
		c.Head.Checkpoint = cpID(1)
		c.Runs = []checkpoint.Run{{ID: "queued", Thread: "t", State: checkpoint.RunQueued, Order: 2}}
	})
	g, ok := th.glance("")
	if !ok {
		return
	}
	require.Nil(e, g.Run, "it is not the newest")
	require.Nil(e, g.Checkpoint)
	require.Nil(e, g.Pending)
}

func glanceNobody(e *env) {
	if glancer, ok := e.store.(checkpoint.Glancer); ok {
		_, err := glancer.Glance(e.ctx, "nobody", "x")
		require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	}
}
