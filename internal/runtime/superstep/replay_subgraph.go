package superstep

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// branchCheckpoint copies the loop's checkpoint, with the updates of calls on it, into a
// new checkpoint that is not bound to its successors.
func (l *graphLoop) branchCheckpoint(t *commit.Tx) error {
	s, err := l.applyCommands(l.state)
	if err != nil {
		return err
	}
	s = s.CopyToCheckpoint(l.writeTo(t).newCheckpointInfo(checkpoint.SourceFork))
	tasks, err := s.PlanTasks()
	if err != nil {
		return err
	}
	if l.isBranched = true; l.level.isRoot {
		l.writeTo(t).emitValues(s, false)
	}
	l.writeTo(t).putCheckpoint(s, tasks, true)
	l.state, l.tasks, l.pending = s, tasks, progress{}
	return nil
}

// replayCheckpoint returns the checkpoint from which a replay continues the
// subgraph of a task, or nil when the replay does not lead through it.
func (c childGraph) replayCheckpoint() (*checkpoint.Checkpoint, error) {
	fr := c.parent
	j := fr.level.replay
	if !fr.level.isOnReplayPath || !j.visitFirst(c.namespace) {
		return nil, nil
	}
	then, id := j.matchNamespace(fr.level.replayNamespace, c.namespace)
	if then == "" {
		return nil, nil
	}
	if same, err := c.isSameTask(then); err != nil || !same {
		return nil, err
	}
	cp, err := fr.env.Store.Checkpoint(fr.thread.StoreCtx, fr.thread.ID, then, id)
	return cp, runtime.TranslateStoreError(err)
}

// isSameTask reports whether a task of now is the task in whose namespace the subgraph
// was then: ids differ after a copy, places among the tasks do not.
func (c childGraph) isSameTask(then string) (bool, error) {
	fr := c.parent
	_, last := splitNamespace(then)
	_, id, ok := strings.Cut(last, ":")
	if !ok {
		return true, nil // the namespace has no task: it is kept over all of them
	}
	around := fr.level.replayNamespace
	at := fr.level.replay.target.Parents[around]
	parent, err := fr.env.Store.Checkpoint(fr.thread.StoreCtx, fr.thread.ID, around, at)
	if err != nil {
		return false, runtime.TranslateStoreError(err)
	}
	place := slices.IndexFunc(parent.Next, func(n checkpoint.NextTask) bool { return n.ID == id })
	return place >= 0 && place < len(fr.tasks) && fr.tasks[place].ID == c.task.ID, nil
}
