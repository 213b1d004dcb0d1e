package runtime

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// An open question shows what its code asks. When a task
// that runs again, because a graph that it called has got an answer, asks
// something else at the place, the open question is replaced: no person is to
// read what is not asked any more. No answer is lost by that, so it neither fails the
// task nor counts as asked anew.

// mostRestated bounds how many questions of one place are kept. After that many
// the open one stays as it is; its answer is compared, as any.
const mostRestated = 100

// restated is an open question and the one that takes its place, unless a
// person answers the open one before.
type restated struct {
	before, next checkpoint.Interrupt
	done         bool
}

// restate notes that a task asks something else than the open question shows.
func (l *loop) restate(o *outcome, before *checkpoint.Interrupt, a *pregel.Ask) {
	shown := pregel.Answer{Seen: pregel.SeenOf(before), Asked: before}
	if a.Drift == checkpoint.DriftAccept || before.Round >= mostRestated || shown.Fits(a) {
		return
	}
	round := before.Round + 1
	q := l.question(o.task, a, pregel.InterruptID(o.task.ID, a.Scope, a.Key, a.Index, round))
	q.Round, q.Replaces, q.Differs = round, before.ID, pregel.Differences(before, a)
	o.restated = append(o.restated, restated{before: *before, next: q})
}

// replaceOpen puts into a change what becomes of the open questions of a task that
// asks something else. An answer that has come meanwhile is kept: the task runs
// again, and it is compared.
func (l *loop) replaceOpen(t *tx, o *outcome) error {
	var old []checkpoint.Interrupt
	for i := range o.restated {
		r := &o.restated[i]
		q, err := l.session.engine.store.Interrupt(l.session.calls, l.session.thread, r.before.ID)
		if err != nil {
			return storeError(err)
		}
		from, to := r.next.ID, r.before.ID
		if r.done = q.State == checkpoint.InterruptOpen; r.done {
			from, to = to, from
			q.State, q.Updated = checkpoint.InterruptSuperseded, t.now
			old = append(old, q)
		}
		if at := slices.Index(o.waiting, from); at >= 0 {
			o.waiting[at] = to
		}
	}
	if len(old) == 0 {
		return nil
	}
	t.Interrupts = append(t.Interrupts, old...)
	t.Head.Open -= len(old)
	t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: old})
	return nil
}

// asking are the questions that a task adds.
func (o *outcome) asking() []checkpoint.Interrupt {
	asks := slices.Clone(o.asks)
	for i := range o.restated {
		if r := &o.restated[i]; r.done {
			asks = append(asks, r.next)
		}
	}
	return asks
}

// replacedAnswers counts the answers that were given at a place to something else
// than was asked there later.
func (p *progress) replacedAnswers(task, scope, key string, index int) (n int) {
	asked := p.interrupts[task]
	for i := range asked {
		q := &asked[i]
		if q.Scope != scope || q.Key != key || q.Index != index || q.State != checkpoint.InterruptSuperseded {
			continue
		}
		expired := !q.Expires.IsZero() && !q.Updated.Before(q.Expires)
		if q.Response != "" || q.Dismissed || expired {
			n++
		}
	}
	return n
}
