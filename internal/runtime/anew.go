package runtime

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Kinds of emissions by which an executor says how what it emits next relates
// to what was emitted before. Clients see neither.
const (
	// EventAnew: another worker runs the task from its beginning.
	EventAnew checkpoint.EventKind = "anew"
	// EventLost: the same, and the worker before was lost while it may have run the
	// task: what it did outside may be done again.
	EventLost checkpoint.EventKind = "lost"
	// EventContinued: the worker that ran the task for an earlier server goes on.
	EventContinued checkpoint.EventKind = "continued"
)

// anew says whether readers must be told that a task reports from its beginning.
// They are told with the first event of the attempt, so that a task which emits
// nothing costs no commit.
type anew struct {
	due   atomic.Bool // the next event is the first of an attempt that is not the first
	spoke atomic.Bool // the attempt has emitted an event

	mu sync.Mutex // held while the mark is stored: events wait for it
}

// mayRepeat reports whether a task may emit events that an earlier attempt has
// emitted. What a server before this one was told is not known. A node that goes
// on after an answer is silent up to there, so it repeats nothing.
func (l *loop) mayRepeat(task string, attempt int) bool {
	if attempt > 1 || l.inherited || !l.level.stored && l.level.again {
		return true
	}
	record, begun := l.pending.tasks[task]
	if !begun {
		return false
	}
	j := l.journal(task)
	return len(record.Waiting) == 0 || len(j.Answers)+len(j.Memos) == 0
}

// restart tells readers that the task reports from its beginning, if that is so
// and they have not been told. It reports false for what is no event.
func (fx *effects) restart(kind checkpoint.EventKind) bool {
	a := &fx.anew
	if kind == EventLost {
		a.due.Store(true)
		fx.markRestart(&checkpoint.Failure{Reason: FailedNode, Node: fx.task.Node.Name, Type: "WorkerLost", Message: workerLost})
		return false
	}
	if kind == EventContinued || kind == EventAnew {
		a.due.Store(kind == EventAnew && (a.spoke.Load() || a.due.Load()))
		return false
	}
	if kind == EventGap {
		return true
	}
	if !a.spoke.Load() {
		a.spoke.Store(true)
	}
	if a.due.Load() {
		fx.markRestart(nil)
	}
	return true
}

// workerLost tells people why a task begins anew.
const workerLost = "its worker was lost; what that did outside may be done again"

// markRestart stores the mark, and what the task begins anew for where that is
// known. It is durable, because a reader whose server
// died comes back later than the task begins.
func (fx *effects) markRestart(why *checkpoint.Failure) {
	fx.anew.mu.Lock()
	defer fx.anew.mu.Unlock()
	if !fx.anew.due.Load() {
		return
	}
	l := fx.loop
	err := l.commit(func(t *tx) error {
		e := l.taskEvent(fx.task, checkpoint.PhaseRestarted, l.state.NextStep())
		e.Attempt, e.Failure = fx.attempt, why
		t.emit(e)
		return nil
	})
	if err != nil {
		l.session.log.Warn("the mark of a new attempt is not stored; the run will be taken up again", zap.Error(err), cause(err))
	}
	fx.anew.due.Store(false)
}
