package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/visible"
)

// An answer is for the question that was shown. When a task that is run again
// asks something else at its place, the answer is not used: the question is
// replaced, or the task fails, or the program has said that it does not matter.

// mostRounds is how often something may be asked anew at one place.
const mostRounds = 3

// answered reports whether a question has come to its end with an answer, a
// dismissal or its expiry: a task that is run again sees what came of it.
func answered(q *checkpoint.Interrupt) bool {
	if q == nil {
		return false
	}
	switch q.State {
	case checkpoint.InterruptAnswered, checkpoint.InterruptConsumed, checkpoint.InterruptExpired:
		return true
	case checkpoint.InterruptOpen, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
	}
	return false
}

// nextRound is the round of the question that is asked where another one
// stands, nil = none.
func nextRound(before *checkpoint.Interrupt) int {
	switch {
	case before == nil:
		return 0
	case answered(before):
		return before.Round + 1
	}
	return before.Round
}

// replace puts a question in the place of one that was answered, or says why
// that can't be; times is how often that has happened.
func (o *outcome) replace(before *checkpoint.Interrupt, q checkpoint.Interrupt, a *pregel.Ask, times int) *pregel.Failure {
	if pregel.SeenOf(before) == q.Seen {
		return permanent(FailedNonDeterministic, "the node asked a question again that was answered; "+
			"on replay the same calls must come in the same order, or carry keys")
	}
	q.Differs = pregel.Differences(before, a)
	if a.Drift == checkpoint.DriftFail {
		return driftFailure(before, a, q.Differs, "")
	}
	if times >= mostRounds {
		return driftFailure(before, a, q.Differs, fmt.Sprintf("; something else was asked there %d times already", mostRounds))
	}
	old := *before
	old.State = checkpoint.InterruptSuperseded
	o.superseded = append(o.superseded, old)
	o.asks = append(o.asks, q)
	return nil
}

// supersede puts the questions of a task that are replaced into a change. Their
// answers stay in their records.
func (o *outcome) supersede(t *tx) {
	if len(o.superseded) == 0 {
		return
	}
	old := slices.Clone(o.superseded)
	for i := range old {
		old[i].Updated = t.now
	}
	t.Interrupts = append(t.Interrupts, old...)
	t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: old})
}

// driftFailure says that a task asks something else than was answered.
func driftFailure(q *checkpoint.Interrupt, a *pregel.Ask, differs []string, more string) *pregel.Failure {
	before, now := questionText(q.Message, q.Value), questionText(a.Message, a.Value)
	names := visible.Brief(strings.Join(differs, ", "), mostNames)
	f := permanent(FailedNonDeterministic, fmt.Sprintf(
		"%s is not the one that was answered; what differs: %s%s. It was %s, now it is %s. Put what changes behind memo, "+
			"name what may differ in drift_ignore, or choose another drift",
		placeText(a.Scope, a.Key, a.Index), names, more, before, now))
	f.Details = map[string]string{
		"interruptId": q.ID, "differs": names, "before": before, "now": now, "hint": "memo",
	}
	return f
}

func placeText(scope, key string, index int) string {
	text := "question number " + strconv.Itoa(index+1)
	if key != "" {
		text += " of key " + visible.Brief(strconv.Quote(key), mostNames)
	}
	if scope != "" {
		text += " in scope " + visible.Brief(strconv.Quote(scope), mostNames)
	}
	return text
}

// Bounds of what a failure repeats of a question, in bytes.
const (
	mostShown = 300
	mostNames = 500
)

// questionText shows the parts of a question that people read.
func questionText(message string, value payload.JSON) string {
	text := visible.BriefJSON(string(payload.NormalText(value)), mostShown)
	if message == "" {
		return text
	}
	return visible.BriefJSON(string(payload.Quote(message)), mostShown) + " " + text
}

// checkUses looks at what an attempt says of the answers that it has used: an
// answer is for what was shown, unless the program accepts something else.
func (l *loop) checkUses(o *outcome) *pregel.Failure {
	for i := range o.result.Used {
		use := &o.result.Used[i]
		q := l.pending.standing(o.task.ID, use.Scope, use.Key, use.Index)
		if !answered(q) {
			return permanent(FailedInvalidUpdate, "the node has used an answer to "+
				placeText(use.Scope, use.Key, use.Index)+", which has none")
		}
		switch seen := pregel.SeenOf(q); {
		case use.Asked == nil && use.Seen == seen:
		case use.Asked == nil:
			return permanent(FailedNonDeterministic, "the node has used the answer to "+
				placeText(use.Scope, use.Key, use.Index)+" for something else than was shown")
		default:
			if f := l.accept(o, q, *use.Asked); f != nil {
				return f
			}
		}
	}
	return nil
}

// accept notes that an answer was used for something else than was shown.
func (l *loop) accept(o *outcome, q *checkpoint.Interrupt, a pregel.Ask) *pregel.Failure {
	a.Settle(l.graph().Spec)
	if a.Seen() == pregel.SeenOf(q) {
		return nil
	}
	differs := pregel.Differences(q, &a)
	if a.Drift != checkpoint.DriftAccept {
		return driftFailure(q, &a, differs, "; the node has used the answer all the same")
	}
	o.accepted = append(o.accepted, accepted{interrupt: q.ID, differs: differs})
	l.session.log.Info("an answer was used for something else than was shown, which the program accepts",
		zap.String("node", o.task.Node.Name), zap.String("task", o.task.ID),
		zap.String("reason", visible.Brief(strings.Join(differs, ", "), mostNames)))
	return nil
}

// accepted is what differed in what a task asked when it used an answer.
type accepted struct {
	interrupt string
	differs   []string
}

// acceptedFor is what differed from a question whose answer was used, nil for
// nothing.
func (o *outcome) acceptedFor(interrupt string) []string {
	for _, a := range o.accepted {
		if a.interrupt == interrupt {
			return a.differs
		}
	}
	return nil
}
