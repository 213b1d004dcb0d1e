package checkpointtest

import (
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func progressCases() []testCase {
	return []testCase{
		{"no progress is empty, not an error", progressNone},
		{"a task record is replaced by checkpoint and id", progressTasks},
		{"the first memo of a place stays", progressMemos},
		{"records are sorted", progressSorted},
		{"used up progress is cleared", progressClear},
		{"questions come with the checkpoint, in the order they were put", progressQuestions},
	}
}

func progressNone(e *env) {
	th := e.newThread("t")
	for _, thread := range []string{"nobody", "t"} {
		p, err := e.store.Pending(e.ctx, thread, "c")
		require.NoError(e, err)
		require.Equal(e, checkpoint.Pending{}, p)
	}
	th.applyEdits(addCheckpoint(""))
	p, err := e.store.Pending(e.ctx, "t", checkpointID(1))
	require.NoError(e, err)
	require.Equal(e, checkpoint.Pending{}, p)
}

func progressTasks(e *env) {
	th := e.newThread("t")
	task := checkpoint.Task{
		ID: "a", Namespace: "n:1", Checkpoint: "c1", Node: "n", State: checkpoint.TaskFailed,
		Writes:  []checkpoint.Write{{Channel: "x", Value: "9007199254740993"}, {Channel: "x", Value: "null", Overwrite: true}},
		Failure: &checkpoint.Failure{Reason: "R", Message: "m", Node: "n", Type: "t", Stack: "s\n", Attempt: 2, Details: map[string]string{"limit": "25"}},
		Waiting: []string{"q1", "q2"}, Attempt: 3,
		Update: `{"x": 9007199254740993}`, Goto: []checkpoint.Send{{Node: "n", Input: `[1.0]`}, {Node: "m"}},
	}
	other := checkpoint.Task{ID: "a", Checkpoint: "c2", State: checkpoint.TaskWaiting}
	th.applyEdits(func(c *checkpoint.Change) { c.Tasks = []checkpoint.Task{task, other} })
	p, err := e.store.Pending(e.ctx, "t", "c1")
	require.NoError(e, err)
	require.Equal(e, []checkpoint.Task{task}, p.Tasks)

	done := checkpoint.Task{ID: "a", Checkpoint: "c1", State: checkpoint.TaskDone}
	th.applyEdits(func(c *checkpoint.Change) { c.Tasks = []checkpoint.Task{task, done} })
	p, err = e.store.Pending(e.ctx, "t", "c1")
	require.NoError(e, err)
	require.Equal(e, []checkpoint.Task{done}, p.Tasks)
	p, err = e.store.Pending(e.ctx, "t", "c2")
	require.NoError(e, err)
	require.Equal(e, []checkpoint.Task{other}, p.Tasks)
}

func progressMemos(e *env) {
	th := e.newThread("t")
	memo := checkpoint.Memo{Task: "a", Checkpoint: "c", Scope: "s", Key: "k", Index: 1, Value: `{"n": 1.0}`}
	th.applyEdits(func(c *checkpoint.Change) { c.Memos = []checkpoint.Memo{memo} })
	second := memo
	second.Value = "2"
	want := []checkpoint.Memo{memo}
	for _, edit := range []func(*checkpoint.Memo){
		func(m *checkpoint.Memo) { m.Index = 2 },
		func(m *checkpoint.Memo) { m.Key = "l" },
		func(m *checkpoint.Memo) { m.Scope = "t" },
		func(m *checkpoint.Memo) { m.Task = "b" },
	} {
		m := second
		edit(&m)
		want = append(want, m)
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Memos = append([]checkpoint.Memo{second}, want[1:]...) })
	p, err := e.store.Pending(e.ctx, "t", "c")
	require.NoError(e, err)
	require.Equal(e, want, p.Memos)
}

func progressSorted(e *env) {
	th := e.newThread("t")
	for _, id := range []string{"b", "a", "é", "B", "10", "9"} {
		th.applyEdits(func(c *checkpoint.Change) {
			c.Tasks = []checkpoint.Task{{ID: id, Checkpoint: "c"}}
			c.Memos = []checkpoint.Memo{
				{Task: id, Checkpoint: "c", Index: 10, Value: "1"}, {Task: id, Checkpoint: "c", Index: 9, Value: "1"},
			}
		})
	}
	p, err := e.store.Pending(e.ctx, "t", "c")
	require.NoError(e, err)
	for i, want := range []string{"10", "9", "B", "a", "b", "é"} {
		require.Equal(e, want, p.Tasks[i].ID)
		require.Equal(e, want, p.Memos[2*i].Task)
		require.Equal(e, 9, p.Memos[2*i].Index)
		require.Equal(e, 10, p.Memos[2*i+1].Index)
	}
}

func progressClear(e *env) {
	th := e.newThread("t")
	at := func(id string) func(*checkpoint.Change) {
		return func(c *checkpoint.Change) {
			c.Tasks = append(c.Tasks, checkpoint.Task{ID: "a", Checkpoint: id})
			c.Memos = append(c.Memos, checkpoint.Memo{Task: "a", Checkpoint: id, Value: "1"})
		}
	}
	th.applyEdits(at("c1"), at("c2"), at("c3"))
	// Records that a change clears and puts are there afterwards.
	th.applyEdits(at("c2"), func(c *checkpoint.Change) {
		c.ClearTasks = []string{"c1", "c2", "unknown"}
		c.Tasks[0].ID, c.Memos[0].Value = "b", "2"
	})
	for id, want := range map[string]int{"c1": 0, "c2": 1, "c3": 1} {
		p, err := e.store.Pending(e.ctx, "t", id)
		require.NoError(e, err)
		require.Len(e, p.Tasks, want, id)
		require.Len(e, p.Memos, want, id)
		if id == "c2" {
			require.Equal(e, "b", p.Tasks[0].ID)
			require.EqualValues(e, "2", p.Memos[0].Value)
		}
	}
}

func progressQuestions(e *env) {
	th := e.newThread("t")
	th.applyEdits(func(c *checkpoint.Change) {
		c.Interrupts = []checkpoint.Interrupt{newInterrupt("t", "z", "c"), newInterrupt("t", "a", "c"), newInterrupt("t", "o", "other")}
	})
	th.applyEdits(func(c *checkpoint.Change) {
		answered := newInterrupt("t", "z", "c")
		answered.State = checkpoint.InterruptConsumed
		c.Interrupts = []checkpoint.Interrupt{newInterrupt("t", "m", "c"), answered}
	})
	p, err := e.store.Pending(e.ctx, "t", "c")
	require.NoError(e, err)
	require.Len(e, p.Interrupts, 3)
	for i, want := range []string{"z", "a", "m"} {
		require.Equal(e, want, p.Interrupts[i].ID)
	}
	require.Equal(e, checkpoint.InterruptConsumed, p.Interrupts[0].State)
	require.EqualValues(e, 2, p.Interrupts[0].Revision)
}
