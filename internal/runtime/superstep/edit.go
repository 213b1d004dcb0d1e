package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Edit makes checkpoints of a graph as if its nodes had written. Nothing is run but the
// code that decides conditional edges and combines writes.
type Edit struct{ loop Loop }

// NewEdit begins an edit of a state. The checkpoints count as those of the run that
// the thread had last.
func NewEdit(env *Env, thread *Thread, run *checkpoint.Run, state *pregel.State, isRoot bool) *Edit {
	return &Edit{loop: Loop{
		env: env, thread: thread, run: run, state: state,
		level: level{isRoot: isRoot, keepsCheckpoints: true, parents: state.Checkpoint().Parents},
	}}
}

// State is the state that is edited, with what calls have updated on it.
func (e *Edit) State() *pregel.State { return e.loop.state }

// SetState goes on from a state that the edit has made.
func (e *Edit) SetState(s *pregel.State) { e.loop.state, e.loop.pending = s, progress{} }

// LoadProgress takes up what tasks of the superstep have done, and what calls have
// updated on the state.
func (e *Edit) LoadProgress(p checkpoint.Pending) (err error) {
	l := &e.loop
	l.pending, l.maybeBegun = newProgress(p), true
	l.state, err = l.applyCommands(l.state)
	return err
}

// PlanTasks lists the tasks of the superstep, and what the finished ones have written.
func (e *Edit) PlanTasks() ([]*pregel.Task, []pregel.TaskWrites) {
	l := &e.loop
	tasks, err := l.state.PlanTasks()
	if err != nil {
		tasks = nil
	}
	l.tasks = tasks
	return tasks, l.planSuperstep().finishedWrites()
}

// HasProgress reports whether something is stored of tasks of the superstep.
func (e *Edit) HasProgress() bool { return len(e.loop.pending.tasks) > 0 }

// InterpretResult returns what a result that is attributed to a task writes, or why it
// can't be taken.
func (e *Edit) InterpretResult(ctx context.Context, t *pregel.Task, r pregel.Result) ([]checkpoint.Write, *checkpoint.Failure) {
	o := outcome{task: t, result: r, attempt: 1}
	o.interpretResult(ctx, &e.loop)
	return o.writes, o.failure
}

// ReduceWrites has workers combine writes. A failure names the channel.
func (e *Edit) ReduceWrites(ctx context.Context, done []pregel.TaskWrites) ([]pregel.TaskWrites, string, *checkpoint.Failure) {
	return e.loop.reduceWrites(ctx, e.loop.state, done, false)
}

// NewCheckpointInfo numbers the next checkpoint.
func (e *Edit) NewCheckpointInfo(t *commit.Tx, source checkpoint.Source) pregel.CheckpointInfo {
	return e.loop.writeTo(t).newCheckpointInfo(source)
}

// PutCheckpoint adds a checkpoint, and its events, to a change.
func (e *Edit) PutCheckpoint(t *commit.Tx, next *pregel.State, tasks []*pregel.Task) {
	e.loop.writeTo(t).putStateAndCheckpoint(next, tasks)
}

// StoreCommand stores an update and gotos beside the tasks of the superstep of a run
// that goes on later.
func (e *Edit) StoreCommand(t *commit.Tx, p checkpoint.Pending, update payload.JSON, to []checkpoint.Send) error {
	e.loop.pending = newProgress(p)
	return PutCommand(t, &e.loop, update, to)
}
