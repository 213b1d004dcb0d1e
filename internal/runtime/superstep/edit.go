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
type Edit struct{ frame frame }

// NewEdit begins an edit of a state. The checkpoints count as those of the run that
// the thread had last.
func NewEdit(env *Env, thread *Thread, run *checkpoint.Run, state *pregel.State, isRoot bool) *Edit {
	return &Edit{frame: frame{
		env: env, thread: thread, run: run, state: state,
		level: level{isRoot: isRoot, keepsCheckpoints: true, parents: state.Checkpoint().Parents},
	}}
}

// State returns the state that is edited, with the updates of calls.
func (e *Edit) State() *pregel.State { return e.frame.state }

// SetState goes on from a state that the edit has made.
func (e *Edit) SetState(s *pregel.State) { e.frame.state, e.frame.pending = s, progress{} }

// LoadProgress loads the records of tasks of the superstep, and applies the updates of
// calls to the state. The error is a *pregel.UpdateError.
func (e *Edit) LoadProgress(p checkpoint.Pending) (err error) {
	fr := &e.frame
	fr.pending, fr.maybeBegun = newProgress(p), true
	fr.state, err = fr.applyCommands(fr.state)
	return err
}

// PlanTasks lists the tasks of the superstep, and the writes of the finished tasks.
func (e *Edit) PlanTasks() ([]*pregel.Task, []pregel.TaskWrites) {
	fr := &e.frame
	tasks, err := fr.state.PlanTasks()
	if err != nil {
		tasks = nil
	}
	fr.tasks = tasks
	return tasks, fr.planSuperstep().finishedWrites()
}

// HasProgress reports whether something is stored of tasks of the superstep.
func (e *Edit) HasProgress() bool { return len(e.frame.pending.tasks) > 0 }

// InterpretResult returns the writes of a result that is attributed to a task, or why it
// is refused.
func (e *Edit) InterpretResult(ctx context.Context, t *pregel.Task, r pregel.Result) ([]checkpoint.Write, *checkpoint.Failure) {
	at := e.frame.newAttempt(t, 1)
	at.result = r
	at.interpretResult(ctx)
	return at.writes, at.failure
}

// ReduceWrites has workers combine writes. A failure names the channel.
func (e *Edit) ReduceWrites(ctx context.Context, done []pregel.TaskWrites) ([]pregel.TaskWrites, string, *checkpoint.Failure) {
	return reducerCaller{frame: &e.frame}.reduceWrites(ctx, e.frame.state, done)
}

// NewCheckpointInfo numbers the next checkpoint. It has no labels: no run has made it, and
// those of the last one say how that run was called.
func (e *Edit) NewCheckpointInfo(t *commit.Tx, source checkpoint.Source) pregel.CheckpointInfo {
	info := e.frame.writeTo(t).newCheckpointInfo(source)
	info.Metadata = nil
	return info
}

// PutCheckpoint adds a checkpoint, and its events, to a change.
func (e *Edit) PutCheckpoint(t *commit.Tx, next *pregel.State, tasks []*pregel.Task) {
	e.frame.writeTo(t).putStateAndCheckpoint(next, tasks, true)
}

// StoreCommand stores an update and gotos beside the tasks of the superstep of a run
// that goes on later. Errors: those of RefusalError.
func (e *Edit) StoreCommand(t *commit.Tx, p checkpoint.Pending, update payload.JSON, to []checkpoint.Send) error {
	e.frame.pending = newProgress(p)
	return putCommand(t, &e.frame, update, to)
}
