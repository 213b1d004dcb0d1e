package checkpointtest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func applyCases() []testCase {
	return []testCase{
		{"a missing thread is not found", func(e *env) {
			_, err := e.store.Head(e.ctx, "nobody")
			require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
		}},
		{"the head is what was applied", applyWholeHead},
		{"only the expected revision is changed", applyConflicts},
		{"nothing of a refused change is there", applyNothing},
		{"a change that contradicts itself is refused", applyInvalid},
		{"a repeated op gets its receipt again", applyRepeated},
		{"an older op is no repetition", applyOlderOp},
		{"no op is never a repetition", applyNoOp},
		{"a repeated op is recognised before its content", applyRepeatedOtherContent},
		{"a deleted thread leaves nothing", applyDelete},
		{"a thread made again is clean", applyRecreate},
		{"delete expects a revision like any change", applyDeleteConflict},
		{"a change is for one thread, not for the next of its name", applyOtherThread},
		{"the caller may reuse a change", applyReuse},
		{"a returned head is the reader's own", applyReturnedHead},
		{"a cancelled caller is told that the outcome is open", applyCancelled},
	}
}

func applyWholeHead(e *env) {
	th := e.thread("t")
	th.head = checkpoint.Head{
		Thread: "t", LogID: "log", Graph: "g", Version: "v", Metadata: map[string]string{"user": "ü"},
		Created: day(0), Updated: day(1), TTL: time.Hour, Expires: day(9), Keep: -1, State: checkpoint.ThreadBusy,
		Checkpoint: "c", Run: "r", Queue: []string{"r2", "r3"}, Open: 2, Answered: 1, Hold: true,
		Cancel: &checkpoint.Cancel{Run: "r", Rollback: true, Reason: "why", Grace: time.Second, By: "me"},
		Fence:  7, Owner: "o", Wish: "p", WishUntil: day(4), Moves: 2, Lent: []string{"t1", checkpoint.AnyTask}, Due: day(3), FirstEvent: 1,
		Faults: 3, RetryAt: day(5),
	}
	r := th.apply(func(c *checkpoint.Change) { c.Lease = time.Minute })
	h := th.stored()
	require.Equal(e, r.LeaseExpires, h.LeaseExpires)

	th.head = checkpoint.Head{Thread: "t", LogID: "log2", Created: day(2)}
	th.apply()
	require.Zero(e, th.stored().LeaseExpires, "every field is replaced")
}

func applyConflicts(e *env) {
	th := e.thread("t")
	for _, expect := range []uint64{1, 7} {
		c := th.change()
		c.Expect = expect
		_, err := e.store.Apply(e.ctx, c)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "expected %d of a missing thread", expect)
	}
	th.apply()
	th.apply()
	for _, expect := range []uint64{0, 1, 3} {
		c := th.change(events(1))
		c.Expect = expect
		_, err := e.store.Apply(e.ctx, c)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "expected %d at 2", expect)
	}
	th.stored()
}

// full returns an edit that touches every kind of record.
func full(id string) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		point("", big("large", c.Head.Seq+1), listChannel("items", c.Head.Seq+1))(c)
		point("sub:1")(c)
		events(2)(c)
		at := c.Head.Checkpoint
		c.Tasks = []checkpoint.Task{{ID: "task", Checkpoint: at, Node: "n", State: checkpoint.TaskDone}}
		c.Memos = []checkpoint.Memo{{Task: "task", Checkpoint: at, Key: "k", Value: "1"}}
		c.Interrupts = []checkpoint.Interrupt{question(c.Thread, "q", at)}
		c.Runs = []checkpoint.Run{{ID: "run", Thread: c.Thread, State: checkpoint.RunRunning, Order: 1}}
		c.Request = &checkpoint.Request{ID: "request", Digest: "d", Run: "run", Created: day(0)}
		c.Head.Run = id
	}
}

// requireNothing checks that no record of full is there.
func (th *thread) requireNothing() {
	th.Helper()
	e := th.env
	_, err := e.store.Checkpoint(e.ctx, th.id, "", "")
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	_, err = e.store.Checkpoint(e.ctx, th.id, "", cpID(1))
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	for _, ns := range []string{"", "sub:1"} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: th.id, Namespace: ns})
		require.NoError(e, err)
		require.Empty(e, list)
	}
	p, err := e.store.Pending(e.ctx, th.id, cpID(1))
	require.NoError(e, err)
	require.Equal(e, checkpoint.Pending{}, p)
	_, err = e.store.Run(e.ctx, th.id, "run")
	require.ErrorIs(e, err, checkpoint.ErrRunNotFound)
	runs, err := e.store.Runs(e.ctx, th.id, 0, 0)
	require.NoError(e, err)
	require.Empty(e, runs)
	_, err = e.store.Interrupt(e.ctx, th.id, "q")
	require.ErrorIs(e, err, checkpoint.ErrInterruptNotFound)
	_, err = e.store.Request(e.ctx, th.id, "request")
	require.ErrorIs(e, err, checkpoint.ErrRequestNotFound)
	for _, byChange := range []bool{false, true} {
		q, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{Thread: th.id, ByChange: byChange})
		require.NoError(e, err)
		require.Empty(e, q)
	}
}

func applyNothing(e *env) {
	broken := func(c *checkpoint.Change) { c.Events[len(c.Events)-1].Seq++ }
	th := e.thread("t")
	_, err := e.store.Apply(e.ctx, th.change(full("r"), broken))
	require.ErrorIs(e, err, checkpoint.ErrInvalid)
	_, err = e.store.Head(e.ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	th.requireNothing()

	th.apply()
	for name, edit := range map[string]func(*checkpoint.Change){
		"conflict":     func(c *checkpoint.Change) { c.Expect = 9 },
		"log gap":      broken,
		"log overlap":  func(c *checkpoint.Change) { c.Head.LastEvent, c.Events = 1, nil },
		"old position": func(c *checkpoint.Change) { c.Checkpoints[0].Seq = 0 },
	} {
		_, err = e.store.Apply(e.ctx, th.change(full("r"), edit))
		require.Error(e, err, name)
		require.True(e, errors.Is(err, checkpoint.ErrInvalid) || errors.Is(err, checkpoint.ErrConflict), "%v", err)
		th.stored()
		th.requireNothing()
		list, err := e.store.Events(e.ctx, "t", 0, 0)
		require.NoError(e, err)
		require.Empty(e, list)
	}
}

func applyInvalid(e *env) {
	th := e.thread("t")
	th.apply(point(""), events(1))
	for want, edit := range map[string]func(*checkpoint.Change){
		"Thread is empty":     func(c *checkpoint.Change) { c.Thread = "" },
		"Head.Thread":         func(c *checkpoint.Change) { c.Head.Thread = "other" },
		"Head.LastEvent":      func(c *checkpoint.Change) { c.Head.LastEvent = 0 },
		"Events[1].Seq":       func(c *checkpoint.Change) { events(2)(c); c.Events[1].Seq = 2 },
		"is ephemeral":        func(c *checkpoint.Change) { events(1)(c); c.Events[0].Ephemeral = true },
		"Checkpoints[0].ID":   func(c *checkpoint.Change) { point("")(c); c.Checkpoints[0].ID = "" },
		"Checkpoints[1]":      func(c *checkpoint.Change) { point("")(c); point("")(c); c.Checkpoints[1].Seq-- },
		"Checkpoints[0].Seq":  func(c *checkpoint.Change) { point("")(c); c.Checkpoints[0].Seq = 1 },
		"at most Head.Seq":    func(c *checkpoint.Change) { point("")(c); c.Head.Seq-- },
		"Interrupts[0]":       func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: "x"}} },
		"Runs[0]":             func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{{Thread: "t"}} },
		"must have existed":   func(c *checkpoint.Change) { c.Delete, c.Expect = true, 0 },
		"must be 3":           func(c *checkpoint.Change) { events(2)(c); c.Head.LastEvent++; c.Events[0].Seq++; c.Events[1].Seq++ },
		"of thread \"other\"": func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{{ID: "r", Thread: "other"}} },
	} {
		_, err := e.store.Apply(e.ctx, th.change(edit))
		require.ErrorIs(e, err, checkpoint.ErrInvalid, want)
		require.ErrorContains(e, err, want)
		th.stored()
	}
}

func applyRepeated(e *env) {
	th := e.thread("t")
	create := th.change(full("r"), func(c *checkpoint.Change) { c.Head.Owner, c.Lease = "o", time.Hour })
	first := th.commit(create)
	e.pass(10 * time.Millisecond)
	again, err := e.store.Apply(e.ctx, create)
	require.NoError(e, err)
	if first.Runs != nil {
		require.Equal(e, []uint64{1}, first.Runs, "the revision of the run")
	}
	again.Runs = first.Runs // need not be said again
	require.Equal(e, first, again)

	next := th.change(events(1))
	second := th.commit(next)
	e.pass(10 * time.Millisecond)
	again, err = e.store.Apply(e.ctx, next)
	require.NoError(e, err)
	require.Equal(e, second, again)
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Len(e, list, 3, "applied once")
	in, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.EqualValues(e, 1, in.Revision, "applied once")
}

func applyOlderOp(e *env) {
	th := e.thread("t")
	old := th.change()
	th.commit(old)
	th.apply()
	_, err := e.store.Apply(e.ctx, old)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	old.Expect = 2
	old.Head.Run = "again"
	th.commit(old)
	require.Equal(e, "again", th.stored().Run, "an op that is not the newest is a new one")
}

func applyNoOp(e *env) {
	th := e.thread("t")
	c := th.change()
	c.Op = ""
	th.commit(c)
	_, err := e.store.Apply(e.ctx, c)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
}

func applyRepeatedOtherContent(e *env) {
	th := e.thread("t")
	c := th.change()
	th.commit(c)
	other := *c
	other.Expect, other.Head.Run = 1, "other"
	r, err := e.store.Apply(e.ctx, &other)
	require.NoError(e, err)
	require.EqualValues(e, 1, r.Revision)
	require.Empty(e, th.stored().Run)
}

func applyDelete(e *env) {
	th, other := e.thread("t"), e.thread("t2")
	th.apply(full("r"), func(c *checkpoint.Change) { c.Head.Owner, c.Lease = "o", time.Nanosecond; c.Head.Due = day(-100) })
	other.apply(full("r"))
	e.pass(10 * time.Millisecond)
	th.apply(func(c *checkpoint.Change) { c.Delete = true })
	_, err := e.store.Head(e.ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	_, err = e.store.Events(e.ctx, "t", 0, 0)
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	th.requireNothing()
	due, _, err := e.store.Due(e.ctx, 0)
	require.NoError(e, err)
	require.Empty(e, due)
	heads, err := e.store.Threads(e.ctx, checkpoint.ThreadQuery{})
	require.NoError(e, err)
	require.Len(e, heads, 1)
	all, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{})
	require.NoError(e, err)
	require.Len(e, all, 1, "only that thread's questions go")
	other.stored()
	_, err = e.store.Checkpoint(e.ctx, "t2", "", "")
	require.NoError(e, err)
}

func applyRecreate(e *env) {
	th := e.thread("t")
	th.apply(full("r"))
	th.apply(func(c *checkpoint.Change) { c.TrimEvents = 3 })
	th.apply(func(c *checkpoint.Change) { c.Delete = true })
	again := e.thread("t")
	c := again.change()
	c.Op = "t/3" // the name of an op of the thread before
	again.commit(c)
	again.stored()
	again.requireNothing()
	again.apply(events(1))
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err, "nothing is trimmed in a new log")
	require.Len(e, list, 1)
	again.apply(full("r"))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, cpID(1), cp.ID)
	in, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.EqualValues(e, 1, in.Revision)
}

func applyOtherThread(e *env) {
	th := e.thread("t")
	th.head.LogID = "first"
	th.apply()
	th.apply(func(c *checkpoint.Change) { c.LogID = "first" })
	late := th.change(func(c *checkpoint.Change) { c.LogID = "first" })
	end := *late
	end.Delete, end.Op = true, "end"
	th.commit(&end)
	again := e.thread("t")
	again.head.LogID = "second"
	again.apply()
	again.apply()
	for _, change := range []*checkpoint.Change{late, &end} {
		_, err := e.store.Apply(e.ctx, change)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "computed from the thread that was deleted")
	}
	again.stored()
}

func applyDeleteConflict(e *env) {
	th := e.thread("t")
	del := th.change(func(c *checkpoint.Change) { c.Delete, c.Expect = true, 1 })
	_, err := e.store.Apply(e.ctx, del)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	th.apply()
	th.apply()
	_, err = e.store.Apply(e.ctx, del)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	th.stored()
}

func applyReuse(e *env) {
	th := e.thread("t")
	c := th.change(full("r"))
	c.Head.Queue = []string{"a", "b"}
	th.commit(c)
	th.head.Queue = []string{"a", "b"}
	c.Head.Queue[0] = "changed"
	c.Events = append(c.Events[:1:1], checkpoint.Event{}) // given away, but not with what follows
	c.Tasks[0].Node = "changed"
	c.Memos[0].Value = `"changed"`
	c.Interrupts[0].Node = "changed"
	c.Runs[0].State = "changed"
	c.Request.Digest = "changed"
	c.Checkpoints[0] = nil
	th.stored()
	th.requireUnchanged()

	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	list[0].Node = "changed"
	p, err := e.store.Pending(e.ctx, "t", cpID(1))
	require.NoError(e, err)
	p.Tasks[0].Node, p.Memos[0].Value, p.Interrupts[0].Node = "changed", `"changed"`, "changed"
	runs, err := e.store.Runs(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	runs[0].State = "changed"
	all, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{})
	require.NoError(e, err)
	all[0].Node = "changed"
	cps, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	cps[0] = nil
	th.requireUnchanged()
}

func (th *thread) requireUnchanged() {
	th.Helper()
	e := th.env
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Equal(e, "n", list[0].Node)
	p, err := e.store.Pending(e.ctx, "t", cpID(1))
	require.NoError(e, err)
	require.Equal(e, "n", p.Tasks[0].Node)
	require.EqualValues(e, "1", p.Memos[0].Value)
	require.Equal(e, "ask", p.Interrupts[0].Node)
	run, err := e.store.Run(e.ctx, "t", "run")
	require.NoError(e, err)
	require.Equal(e, checkpoint.RunRunning, run.State)
	in, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.Equal(e, "ask", in.Node)
	req, err := e.store.Request(e.ctx, "t", "request")
	require.NoError(e, err)
	require.Equal(e, "d", req.Digest)
	cps, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: "t"})
	require.NoError(e, err)
	require.Equal(e, []string{cpID(1)}, ids(cps))
}

func applyReturnedHead(e *env) {
	th := e.thread("t")
	th.head.Queue = []string{"a", "b"}
	th.apply()
	h := th.stored()
	h.Queue[0], h.Queue[1] = "changed", "more"
	th.stored()
}

func applyCancelled(e *env) {
	th := e.thread("t")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.store.Apply(ctx, th.change())
	require.ErrorIs(e, err, checkpoint.ErrUnavailable)
	require.ErrorIs(e, err, context.Canceled)
	_, err = e.store.Head(ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrUnavailable)
}
