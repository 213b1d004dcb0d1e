package superstep

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// An open interrupt shows the present question of its code. A task may run again because
// a graph that it called has got an answer. If it asks something else at the place, the
// open interrupt is replaced, so that no person reads an old question. No answer is lost
// by that, so it neither fails the task nor counts as asked anew.

// maxReplacements bounds how many interrupts of one place are kept besides the first.
// After that many an open interrupt stays, and its answer is compared, as any. The task
// fails where a withdrawn interrupt would be replaced.
const maxReplacements = 100

// noteOpenReplacement notes that a task asks something else than the open interrupt shows.
func (at *attempt) noteOpenReplacement(before *checkpoint.Interrupt, a *pregel.Ask) {
	if before.Round >= maxReplacements || showsAsked(before, a) {
		return
	}
	round := before.Round + 1
	q := at.newInterrupt(a, pregel.InterruptID(at.task.ID, a.Scope, a.Key, a.Index, round))
	q.Round, q.Replaces, q.Differs = round, before.ID, pregel.Differences(before, a)
	at.openReplacements = append(at.openReplacements, openReplacement{current: *before, replacement: q})
}

// countReplacedAnswers counts the answers that were given at a place to something else
// than was asked there later.
func (p *progress) countReplacedAnswers(task, scope, key string, index int) (n int) {
	asked := p.interrupts[task]
	for i := range asked {
		q := &asked[i]
		if q.Scope != scope || q.Key != key || q.Index != index || q.State != checkpoint.InterruptSuperseded || !p.isReplacedByTask(q) {
			continue
		}
		expired := !q.Expires.IsZero() && !q.Updated.Before(q.Expires)
		if q.Response != "" || q.Dismissed || expired {
			n++
		}
	}
	return n
}

// isReplacedByTask reports whether the task asked something else in place of an interrupt
// and not after it was withdrawn: both are then of one change.
func (p *progress) isReplacedByTask(q *checkpoint.Interrupt) bool {
	return slices.ContainsFunc(p.interrupts[q.Task], func(next checkpoint.Interrupt) bool {
		return next.Replaces == q.ID && next.Created.Equal(q.Updated)
	})
}
