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
	th := e.newThread("t")
	th.head = checkpoint.Head{
		Thread: "t", LogID: "log", Graph: "g", Version: "v", Metadata: map[string]string{"user": "ü"},
		Created: testDay(0), Updated: testDay(1), TTL: time.Hour, Expires: testDay(9), Keep: -1, State: checkpoint.ThreadBusy,
		Checkpoint: "c", Run: "r", Queue: []string{"r2", "r3"}, Later: []checkpoint.LaterRun{{Run: "r4", Begins: testDay(6)}, {Run: "r5", Begins: testDay(7)}},
		Editors: []string{"ana", "ünï"}, Open: 2, Retractable: 1, Answered: 1, NeedsAllAnswers: true,
		Cancel: &checkpoint.Cancel{Run: "r", Rollback: true, Reason: "why", Grace: time.Second, By: "me"},
		Fence:  7, Owner: "o", PreferredOwner: "p", PreferredUntil: testDay(4), Handoffs: 2, RemoteTasks: []string{"t1", checkpoint.AnyTask}, Due: testDay(3), FirstEvent: 1,
		Faults: 3, RetryAt: testDay(5),
	}
	r := th.applyEdits(func(c *checkpoint.Change) { c.Lease = time.Minute })
	h := th.requireStored()
	require.Equal(e, r.LeaseExpires, h.LeaseExpires)

	th.head = checkpoint.Head{Thread: "t", LogID: "log2", Created: testDay(2)}
	th.applyEdits()
	require.Zero(e, th.requireStored().LeaseExpires, "every field is replaced")
}

func applyConflicts(e *env) {
	th := e.newThread("t")
	for _, expect := range []uint64{1, 7} {
		c := th.newChange()
		c.Expect = expect
		_, err := e.store.Apply(e.ctx, c)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "expected %d of a missing thread", expect)
	}
	th.applyEdits()
	th.applyEdits()
	for _, expect := range []uint64{0, 1, 3} {
		c := th.newChange(addEvents(1))
		c.Expect = expect
		_, err := e.store.Apply(e.ctx, c)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "expected %d at 2", expect)
	}
	th.requireStored()
}

// fullChange returns an edit that touches every kind of record.
func fullChange(id string) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) {
		addCheckpoint("", largeChannel("large", c.Head.Seq+1), listChannel("items", c.Head.Seq+1))(c)
		addCheckpoint("sub:1")(c)
		addEvents(2)(c)
		at := c.Head.Checkpoint
		c.Tasks = []checkpoint.Task{{ID: "task", Checkpoint: at, Node: "n", State: checkpoint.TaskDone}}
		c.Memos = []checkpoint.Memo{{Task: "task", Checkpoint: at, Key: "k", Value: "1"}}
		c.Interrupts = []checkpoint.Interrupt{newInterrupt(c.Thread, "q", at)}
		c.Runs = []checkpoint.Run{{ID: "run", Thread: c.Thread, State: checkpoint.RunRunning, Order: 1}}
		c.Request = &checkpoint.Request{ID: "request", Digest: "d", Run: "run", Created: testDay(0)}
		c.Head.Run = id
	}
}

// requireNoRecords checks that no record of full is there.
func (t *threadDriver) requireNoRecords() {
	t.Helper()
	e := t.env
	_, err := e.store.Checkpoint(e.ctx, t.id, "", "")
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	_, err = e.store.Checkpoint(e.ctx, t.id, "", checkpointID(1))
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
	for _, ns := range []string{"", "sub:1"} {
		list, err := e.store.Checkpoints(e.ctx, checkpoint.CheckpointQuery{Thread: t.id, Namespace: ns})
		require.NoError(e, err)
		require.Empty(e, list)
	}
	p, err := e.store.Pending(e.ctx, t.id, checkpointID(1))
	require.NoError(e, err)
	require.Equal(e, checkpoint.Pending{}, p)
	_, err = e.store.Run(e.ctx, t.id, "run")
	require.ErrorIs(e, err, checkpoint.ErrRunNotFound)
	runs, err := e.store.Runs(e.ctx, t.id, 0, 0)
	require.NoError(e, err)
	require.Empty(e, runs)
	_, err = e.store.Interrupt(e.ctx, t.id, "q")
	require.ErrorIs(e, err, checkpoint.ErrInterruptNotFound)
	_, err = e.store.Request(e.ctx, t.id, "request")
	require.ErrorIs(e, err, checkpoint.ErrRequestNotFound)
	for _, byChange := range []bool{false, true} {
		q, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{Thread: t.id, ByChange: byChange})
		require.NoError(e, err)
		require.Empty(e, q)
	}
}

func applyNothing(e *env) {
	broken := func(c *checkpoint.Change) { c.Events[len(c.Events)-1].Seq++ }
	th := e.newThread("t")
	_, err := e.store.Apply(e.ctx, th.newChange(fullChange("r"), broken))
	require.ErrorIs(e, err, checkpoint.ErrInvalid)
	_, err = e.store.Head(e.ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	th.requireNoRecords()

	th.applyEdits()
	for name, edit := range map[string]func(*checkpoint.Change){
		"conflict":     func(c *checkpoint.Change) { c.Expect = 9 },
		"log gap":      broken,
		"log overlap":  func(c *checkpoint.Change) { c.Head.LastEvent, c.Events = 1, nil },
		"old position": func(c *checkpoint.Change) { c.Checkpoints[0].Seq = 0 },
	} {
		_, err = e.store.Apply(e.ctx, th.newChange(fullChange("r"), edit))
		require.Error(e, err, name)
		require.True(e, errors.Is(err, checkpoint.ErrInvalid) || errors.Is(err, checkpoint.ErrConflict), "%v", err)
		th.requireStored()
		th.requireNoRecords()
		list, err := e.store.Events(e.ctx, "t", 0, 0)
		require.NoError(e, err)
		require.Empty(e, list)
	}
}

func applyInvalid(e *env) {
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""), addEvents(1))
	for want, edit := range map[string]func(*checkpoint.Change){
		"Thread is empty":     func(c *checkpoint.Change) { c.Thread = "" },
		"Head.Thread":         func(c *checkpoint.Change) { c.Head.Thread = "other" },
		"Head.LastEvent":      func(c *checkpoint.Change) { c.Head.LastEvent = 0 },
		"Events[1].Seq":       func(c *checkpoint.Change) { addEvents(2)(c); c.Events[1].Seq = 2 },
		"is ephemeral":        func(c *checkpoint.Change) { addEvents(1)(c); c.Events[0].Ephemeral = true },
		"Checkpoints[0].ID":   func(c *checkpoint.Change) { addCheckpoint("")(c); c.Checkpoints[0].ID = "" },
		"Checkpoints[1]":      func(c *checkpoint.Change) { addCheckpoint("")(c); addCheckpoint("")(c); c.Checkpoints[1].Seq-- },
		"Checkpoints[0].Seq":  func(c *checkpoint.Change) { addCheckpoint("")(c); c.Checkpoints[0].Seq = 1 },
		"at most Head.Seq":    func(c *checkpoint.Change) { addCheckpoint("")(c); c.Head.Seq-- },
		"Interrupts[0]":       func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{{ID: "q", Thread: "x"}} },
		"Runs[0]":             func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{{Thread: "t"}} },
		"must have existed":   func(c *checkpoint.Change) { c.Delete, c.Expect = true, 0 },
		"must be 3":           func(c *checkpoint.Change) { addEvents(2)(c); c.Head.LastEvent++; c.Events[0].Seq++; c.Events[1].Seq++ },
		"of thread \"other\"": func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{{ID: "r", Thread: "other"}} },
	} {
		_, err := e.store.Apply(e.ctx, th.newChange(edit))
		require.ErrorIs(e, err, checkpoint.ErrInvalid, want)
		require.ErrorContains(e, err, want)
		th.requireStored()
	}
}

func applyRepeated(e *env) {
	th := e.newThread("t")
	create := th.newChange(fullChange("r"), func(c *checkpoint.Change) { c.Head.Owner, c.Lease = "o", time.Hour })
	first := th.applyChange(create)
	e.advanceTime(10 * time.Millisecond)
	again, err := e.store.Apply(e.ctx, create)
	require.NoError(e, err)
	if first.Runs != nil {
		require.Equal(e, []uint64{1}, first.Runs, "the revision of the run")
	}
	again.Runs = first.Runs // need not be said again
	require.Equal(e, first, again)

	next := th.newChange(addEvents(1))
	second := th.applyChange(next)
	e.advanceTime(10 * time.Millisecond)
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
	th := e.newThread("t")
	old := th.newChange()
	th.applyChange(old)
	th.applyEdits()
	_, err := e.store.Apply(e.ctx, old)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	old.Expect = 2
	old.Head.Run = "again"
	th.applyChange(old)
	require.Equal(e, "again", th.requireStored().Run, "an op that is not the newest is a new one")
}

func applyNoOp(e *env) {
	th := e.newThread("t")
	c := th.newChange()
	c.Op = ""
	th.applyChange(c)
	_, err := e.store.Apply(e.ctx, c)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
}

func applyRepeatedOtherContent(e *env) {
	th := e.newThread("t")
	c := th.newChange()
	th.applyChange(c)
	other := *c
	other.Expect, other.Head.Run = 1, "other"
	r, err := e.store.Apply(e.ctx, &other)
	require.NoError(e, err)
	require.EqualValues(e, 1, r.Revision)
	require.Empty(e, th.requireStored().Run)
}

func applyDelete(e *env) {
	th, other := e.newThread("t"), e.newThread("t2")
	th.applyEdits(fullChange("r"), func(c *checkpoint.Change) { c.Head.Owner, c.Lease = "o", time.Nanosecond; c.Head.Due = testDay(-100) })
	other.applyEdits(fullChange("r"))
	e.advanceTime(10 * time.Millisecond)
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	_, err := e.store.Head(e.ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	_, err = e.store.Events(e.ctx, "t", 0, 0)
	require.ErrorIs(e, err, checkpoint.ErrThreadNotFound)
	th.requireNoRecords()
	due, _, err := e.store.Due(e.ctx, 0)
	require.NoError(e, err)
	require.Empty(e, due)
	heads, err := e.store.Threads(e.ctx, checkpoint.ThreadQuery{})
	require.NoError(e, err)
	require.Len(e, heads, 1)
	all, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{})
	require.NoError(e, err)
	require.Len(e, all, 1, "only that thread's questions go")
	other.requireStored()
	_, err = e.store.Checkpoint(e.ctx, "t2", "", "")
	require.NoError(e, err)
}

func applyRecreate(e *env) {
	th := e.newThread("t")
	th.applyEdits(fullChange("r"))
	th.applyEdits(func(c *checkpoint.Change) { c.TrimEvents = 3 })
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	again := e.newThread("t")
	c := again.newChange()
	c.Op = "t/3" // the name of an op of the thread before
	again.applyChange(c)
	again.requireStored()
	again.requireNoRecords()
	again.applyEdits(addEvents(1))
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err, "nothing is trimmed in a new log")
	require.Len(e, list, 1)
	again.applyEdits(fullChange("r"))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, checkpointID(1), cp.ID)
	in, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.EqualValues(e, 1, in.Revision)
}

func applyOtherThread(e *env) {
	th := e.newThread("t")
	th.head.LogID = "first"
	th.applyEdits()
	th.applyEdits(func(c *checkpoint.Change) { c.LogID = "first" })
	late := th.newChange(func(c *checkpoint.Change) { c.LogID = "first" })
	end := *late
	end.Delete, end.Op = true, "end"
	th.applyChange(&end)
	again := e.newThread("t")
	again.head.LogID = "second"
	again.applyEdits()
	again.applyEdits()
	for _, change := range []*checkpoint.Change{late, &end} {
		_, err := e.store.Apply(e.ctx, change)
		require.ErrorIs(e, err, checkpoint.ErrConflict, "computed from the thread that was deleted")
	}
	again.requireStored()
}

func applyDeleteConflict(e *env) {
	th := e.newThread("t")
	del := th.newChange(func(c *checkpoint.Change) { c.Delete, c.Expect = true, 1 })
	_, err := e.store.Apply(e.ctx, del)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	th.applyEdits()
	th.applyEdits()
	_, err = e.store.Apply(e.ctx, del)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	th.requireStored()
}

func applyReuse(e *env) {
	th := e.newThread("t")
	c := th.newChange(fullChange("r"))
	later := checkpoint.LaterRun{Run: "c", Begins: c.Head.Created.Add(time.Hour)}
	c.Head.Queue, c.Head.Later = []string{"a", "b"}, []checkpoint.LaterRun{later}
	th.applyChange(c)
	th.head.Queue, th.head.Later = []string{"a", "b"}, []checkpoint.LaterRun{later}
	c.Head.Queue[0], c.Head.Later[0].Run = "changed", "changed"
	c.Events = append(c.Events[:1:1], checkpoint.Event{}) // given away, but not with later events
	c.Tasks[0].Node = "changed"
	c.Memos[0].Value = `"changed"`
	c.Interrupts[0].Node = "changed"
	c.Runs[0].State = "changed"
	c.Request.Digest = "changed"
	c.Checkpoints[0] = nil
	th.requireStored()
	th.requireUnchanged()

	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	list[0].Node = "changed"
	p, err := e.store.Pending(e.ctx, "t", checkpointID(1))
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

func (t *threadDriver) requireUnchanged() {
	t.Helper()
	e := t.env
	list, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Equal(e, "n", list[0].Node)
	p, err := e.store.Pending(e.ctx, "t", checkpointID(1))
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
	require.Equal(e, []string{checkpointID(1)}, checkpointIDs(cps))
}

func applyReturnedHead(e *env) {
	th := e.newThread("t")
	th.head.Queue = []string{"a", "b"}
	th.head.Later = []checkpoint.LaterRun{{Run: "c", Begins: th.head.Created.Add(time.Hour)}}
	th.applyEdits()
	h := th.requireStored()
	h.Queue[0], h.Queue[1], h.Later[0].Run = "changed", "more", "changed"
	th.requireStored()
}

func applyCancelled(e *env) {
	th := e.newThread("t")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := e.store.Apply(ctx, th.newChange())
	require.ErrorIs(e, err, checkpoint.ErrUnavailable)
	require.ErrorIs(e, err, context.Canceled)
	_, err = e.store.Head(ctx, "t")
	require.ErrorIs(e, err, checkpoint.ErrUnavailable)
}
