package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// changeWriter puts the effects of a graph into a change.
type changeWriter struct {
	*commit.Tx

	frame *frame
}

// writeTo returns a writer of the graph.
func (fr *frame) writeTo(t *commit.Tx) changeWriter { return changeWriter{Tx: t, frame: fr} }

// newCheckpointInfo numbers the next checkpoint of the loop.
func (cw changeWriter) newCheckpointInfo(source checkpoint.Source) pregel.CheckpointInfo {
	fr := cw.frame
	step := fr.state.NextStep()
	stamp := pregel.CheckpointInfo{
		Time: cw.Now, Run: fr.run.ID, Source: source, Step: step,
		Metadata: fr.run.Metadata, Parents: fr.level.parents,
	}
	if fr.level.keepsCheckpoints {
		stamp.ID, stamp.Seq = cw.NextCheckpointID()
	} else {
		stamp.ID, stamp.Seq = pregel.VirtualCheckpointID(fr.level.parentTask, step), uint64(step+3)
	}
	return stamp
}

// putStateAndCheckpoint adds a checkpoint, and its events, to a change. goesOn says that
// the tasks are run now.
func (cw changeWriter) putStateAndCheckpoint(next *pregel.State, tasks []*pregel.Task, goesOn bool) {
	if next.HasOutputChanged() {
		cw.emitValues(next, false)
	}
	cw.putCheckpoint(next, tasks, goesOn)
}

// putCheckpoint adds a checkpoint without events of its state.
func (cw changeWriter) putCheckpoint(next *pregel.State, tasks []*pregel.Task, goesOn bool) {
	fr := cw.frame
	cp := next.Checkpoint()
	cp.Next = pregel.NextTasks(tasks)
	stored := next.StoredCheckpoint()
	if fr.level.keepsCheckpoints {
		cw.Checkpoints = append(cw.Checkpoints, stored)
		if fr.level.isRoot {
			cw.Head.Checkpoint, cw.Head.Branched = cp.ID, false
		}
		cw.emitCheckpoint(next, cp.Next, false)
	}
	cp.Event, stored.Event = cw.Head.LastEvent, cw.Head.LastEvent
	if goesOn {
		cw.emitTasksScheduled(next, tasks, false)
	}
}

// emitSuperstep emits the events of a superstep at which a stopped graph goes on: its
// checkpoint again, and its tasks if they are run now. ahead says that the state has
// updates that its checkpoint has not.
func (cw changeWriter) emitSuperstep(s *pregel.State, tasks []*pregel.Task, ahead, goesOn bool) {
	if !cw.frame.level.keepsCheckpoints {
		return
	}
	due := tasks
	if s.Checkpoint().Source == checkpoint.SourceUpdate { // as LangGraph lists them there
		due = s.SortForDisplay(tasks)
	}
	cw.emitCheckpoint(s, pregel.NextTasks(due), ahead)
	if goesOn {
		cw.emitTasksScheduled(s, due, ahead)
	}
}

// emitCheckpoint emits the event of a checkpoint. The log names the checkpoint; current
// followers get what it does not hold: untracked values, and updates of the call.
func (cw changeWriter) emitCheckpoint(s *pregel.State, next []checkpoint.NextTask, ahead bool) {
	cp := s.Checkpoint()
	e := checkpoint.Event{
		Kind: checkpoint.EventCheckpoint, Namespace: cp.Namespace, Step: cp.Step,
		Checkpoint: cp.ID, Parent: cp.Parent, Source: cp.Source, Next: next,
	}
	if ahead || cw.frame.Graph().HasUntracked() {
		e.Value = s.Values()
	}
	cw.EmitRedacted(e, "")
}

func (cw changeWriter) emitTasksScheduled(next *pregel.State, tasks []*pregel.Task, ahead bool) {
	if len(tasks) > commit.UsualEvents {
		cw.GrowEvents(len(tasks))
	}
	for _, task := range tasks {
		if task.Node.Kind != graph.KindStart {
			cw.emitScheduled(next, task, ahead)
		}
	}
}

// emitScheduled emits the event of a due task. The input of a Send is in the log. The
// task's view of the state is read from the checkpoint, like values.
func (cw changeWriter) emitScheduled(next *pregel.State, task *pregel.Task, ahead bool) {
	fr := cw.frame
	e := fr.newTaskEvent(task, checkpoint.PhaseScheduled, next.NextStep())
	e.Triggers = next.Triggers(task)
	if task.IsPush {
		e.Value = task.Input
		cw.EmitRedacted(e, next.DurableInput(task.Input))
		return
	}
	if fr.level.keepsCheckpoints && !ahead {
		e.Checkpoint = next.Checkpoint().ID
	}
	if ahead || fr.Graph().HasUntracked() || fr.thread.Followers.WantsInputs() {
		e.Value = next.NodeView(task.Node).Object()
	}
	cw.EmitRedacted(e, "")
}

// emitValues emits the event of a state. If a checkpoint holds the state, the log
// names it and the text is made for current followers only; otherwise the log holds
// the state.
func (cw changeWriter) emitValues(s *pregel.State, ahead bool) {
	fr := cw.frame
	cp := s.Checkpoint()
	e := checkpoint.Event{Kind: checkpoint.EventValues, Namespace: cp.Namespace, Step: cp.Step}
	if !ahead && fr.level.keepsCheckpoints {
		e.Checkpoint = cp.ID
	}
	untracked := fr.Graph().HasUntracked()
	if e.Checkpoint == "" || untracked || fr.thread.Followers.WantsValues() {
		e.Value = s.Values()
	}
	switch {
	case untracked && e.Checkpoint == "":
		cw.EmitRedacted(e, s.DurableValues())
	case untracked:
		cw.EmitRedacted(e, "")
	default:
		cw.EmitEvent(e)
	}
}

// clearSuperstep ends a superstep in a change. Updates of calls stay: they are part
// of the state that readers saw, and a replay repeats them.
func (cw changeWriter) clearSuperstep(superseded string) {
	fr := cw.frame
	cw.ClearTasks = append(cw.ClearTasks, superseded)
	cw.Tasks = append(cw.Tasks, fr.pending.commands...)
}
