package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// changeWriter puts what a graph does into a change.
type changeWriter struct {
	*commit.Tx

	frame *frame
}

// writeTo returns a writer of the graph.
func (fr *frame) writeTo(t *commit.Tx) changeWriter { return changeWriter{Tx: t, frame: fr} }

// newCheckpointInfo numbers the next checkpoint of the loop.
func (t changeWriter) newCheckpointInfo(source checkpoint.Source) pregel.CheckpointInfo {
	fr := t.frame
	step := fr.state.NextStep()
	stamp := pregel.CheckpointInfo{
		Time: t.Now, Run: fr.run.ID, Source: source, Step: step,
		Metadata: fr.run.Metadata, Parents: fr.level.parents,
	}
	if fr.level.keepsCheckpoints {
		stamp.ID, stamp.Seq = t.NextCheckpointID()
	} else {
		stamp.ID, stamp.Seq = pregel.VirtualCheckpointID(fr.level.parentTask, step), uint64(step+3)
	}
	return stamp
}

// putStateAndCheckpoint adds a checkpoint, and its events, to a change.
func (t changeWriter) putStateAndCheckpoint(next *pregel.State, tasks []*pregel.Task) {
	if next.HasOutputChanged() {
		t.emitValues(next, false)
	}
	t.putCheckpoint(next, tasks)
}

// putCheckpoint adds a checkpoint without telling of the state in it.
func (t changeWriter) putCheckpoint(next *pregel.State, tasks []*pregel.Task) {
	fr := t.frame
	cp := next.Checkpoint()
	cp.Next = pregel.NextTasks(tasks)
	stored := next.StoredCheckpoint()
	if fr.level.keepsCheckpoints {
		t.Checkpoints = append(t.Checkpoints, stored)
		if fr.level.isRoot {
			t.Head.Checkpoint, t.Head.Branched = cp.ID, false
		}
		t.EmitEvent(checkpoint.Event{
			Kind: checkpoint.EventCheckpoint, Namespace: cp.Namespace, Step: cp.Step,
			Checkpoint: cp.ID, Parent: cp.Parent, Source: cp.Source, Next: cp.Next,
		})
	}
	cp.Event, stored.Event = t.Head.LastEvent, t.Head.LastEvent
	if len(tasks) > commit.UsualEvents {
		t.GrowEvents(len(tasks))
	}
	for _, task := range tasks {
		if task.Node.Kind != graph.KindStart {
			t.emitScheduled(next, task)
		}
	}
}

// emitScheduled emits the event of a due task. The input of a Send is in the log;
// what the task sees of the state is read from the checkpoint, like values.
func (t changeWriter) emitScheduled(next *pregel.State, task *pregel.Task) {
	fr := t.frame
	e := fr.newTaskEvent(task, checkpoint.PhaseScheduled, next.NextStep())
	e.Triggers = next.Triggers(task)
	if task.IsPush {
		e.Value = task.Input
		t.EmitRedacted(e, next.DurableInput(task.Input))
		return
	}
	if fr.level.keepsCheckpoints {
		e.Checkpoint = next.Checkpoint().ID
	}
	if fr.thread.Followers.WantsInputs() {
		e.Value = next.NodeView(task.Node).Object()
	}
	t.EmitRedacted(e, "")
}

// emitValues emits the event of a state. If a checkpoint holds the state, the log
// names it and the text is made for current followers only; otherwise the log holds
// the state.
func (t changeWriter) emitValues(s *pregel.State, ahead bool) {
	fr := t.frame
	cp := s.Checkpoint()
	e := checkpoint.Event{Kind: checkpoint.EventValues, Namespace: cp.Namespace, Step: cp.Step}
	if !ahead && fr.level.keepsCheckpoints {
		e.Checkpoint = cp.ID
	}
	if e.Checkpoint == "" || fr.thread.Followers.WantsValues() {
		e.Value = s.Values()
	}
	if e.Checkpoint == "" && fr.Graph().HasUntracked() {
		t.EmitRedacted(e, s.DurableValues())
		return
	}
	t.EmitEvent(e)
}

// clearSuperstep ends a superstep in a change. Updates of calls stay: they are part
// of the state that readers saw, and a replay repeats them.
func (t changeWriter) clearSuperstep(superseded string) {
	fr := t.frame
	t.ClearTasks = append(t.ClearTasks, superseded)
	t.Tasks = append(t.Tasks, fr.pending.commands...)
}
