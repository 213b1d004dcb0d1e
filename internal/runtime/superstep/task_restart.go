package superstep

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// restartMark records whether an event must show readers that a task repeats its events.
// It is stored with the first event of the attempt, so a task that emits nothing costs
// no commit.
type restartMark struct {
	isDue      atomic.Bool // the next event is the first of an attempt that is not the first
	hasEmitted atomic.Bool // the attempt has emitted an event

	mu sync.Mutex // held while the mark is stored: events wait for it
}

// mayRepeatEvents reports whether a task may emit events that an earlier attempt has
// emitted. The events that the server before has received are not known. A node that
// goes on after an answer is silent up to there, so it repeats nothing.
func (fx *effects) mayRepeatEvents() bool {
	fr, task := fx.frame, fx.task.ID
	if fx.attempt > 1 || fr.maybeHandedOut || !fr.level.keepsCheckpoints && fr.level.maybeRerun {
		return true
	}
	record, begun := fr.pending.tasks[task]
	if !begun {
		return false
	}
	j := fr.buildJournal(task)
	return len(record.Waiting) == 0 || len(j.Answers)+len(j.Memos) == 0
}

// checkRestart stores, at most once per attempt, the mark that the task repeats its
// events. It returns false for emissions that are no event.
func (fx *effects) checkRestart(kind checkpoint.EventKind) bool {
	a := &fx.restartMark
	if kind == runtime.EventWorkerLost {
		a.isDue.Store(true)
		fx.markRestart(&checkpoint.Failure{Reason: runtime.FailedNode, Node: fx.task.Node.Name, Type: "WorkerLost", Message: workerLostMessage})
		return false
	}
	if kind == runtime.EventContinued || kind == runtime.EventRestarted {
		a.isDue.Store(kind == runtime.EventRestarted && (a.hasEmitted.Load() || a.isDue.Load()))
		return false
	}
	if kind == runtime.EventGap {
		return true
	}
	if !a.hasEmitted.Load() {
		a.hasEmitted.Store(true)
	}
	if a.isDue.Load() {
		fx.markRestart(nil)
	}
	return true
}

// workerLostMessage is the failure message of a task whose worker was lost.
const workerLostMessage = "its worker was lost; what that did outside may be done again"

// markRestart stores the mark, and why the task begins anew, if that is known. It is
// durable, because a reader whose server died comes back later than the task begins.
func (fx *effects) markRestart(why *checkpoint.Failure) {
	fx.restartMark.mu.Lock()
	defer fx.restartMark.mu.Unlock()
	if !fx.restartMark.isDue.Load() {
		return
	}
	fr := fx.frame
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		e := fr.newTaskEvent(fx.task, checkpoint.PhaseRestarted, fr.state.NextStep())
		e.Attempt, e.Failure = fx.attempt, why
		t.EmitEvent(e)
		return nil
	})
	if err != nil {
		fr.thread.Log.Warn("the mark of a new attempt is not stored; the run will be taken up again", zap.Error(err), runtime.CauseField(err))
	}
	fx.restartMark.isDue.Store(false)
}
