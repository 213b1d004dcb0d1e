package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	f := permanent(FailedNonDeterministic, fmt.Sprintf(
		"%s is not the one that was answered: %s%s. To go on with this thread, run it again from a checkpoint, which asks anew, "+
			"or let the question itself say drift ask_again and run the thread on. "+
			"For threads to come, put what changes behind memo, or name it in drift_ignore",
		placeText(a.Scope, a.Key, a.Index), changesText(q, a, differs), more))
	f.Details = map[string]string{
		"interruptId": q.ID, "differs": visible.Brief(strings.Join(differs, ", "), mostNames),
		"before": questionText(q.Message, q.Value), "now": questionText(a.Message, a.Value), "hint": "memo",
	}
	return f
}

// changesText shows what differs: the part, and what it was and is.
func changesText(q *checkpoint.Interrupt, a *pregel.Ask, differs []string) string {
	texts := make([]string, len(differs))
	for i, part := range differs {
		texts[i] = visible.Brief(part, mostPart)
		if part == partsIgnored {
			continue // it is no part of either
		}
		before, now := partOf(part, q.Message, q.Value, q.Schema), partOf(part, a.Message, a.Value, a.Schema)
		same := sharedBytes(before, now)
		texts[i] += ": " + partText(before, same) + " → " + partText(now, same)
	}
	return strings.Join(texts, "; ")
}

// partsIgnored is what differs when only drift_ignore does.
const partsIgnored = "drift_ignore"

// partOf is a part of a question as pregel.Differences names it, as it was
// written.
func partOf(part, message string, value, schema payload.JSON) string {
	switch part {
	case payload.PartMessage:
		return string(payload.Quote(message))
	case payload.PartSchema:
		return string(payload.CanonicalText(schema))
	case payload.PartValue:
		return string(payload.CanonicalText(cmp.Or(value, payload.Null)))
	}
	return string(payload.CanonicalText(payload.At(value, part)))
}

// sharedBytes is how much two texts have in common at their beginning.
func sharedBytes(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// partText shows a part; a long one from a little before where it differs.
func partText(text string, same int) string {
	if text == "" {
		return "nothing"
	}
	if from := same - mostPart/2; from > 0 && len(text) > mostPart {
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		return "…" + visible.BriefJSON(text[from:], mostPart)
	}
	return visible.BriefJSON(text, mostPart)
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
	mostPart  = 100
)

// questionText shows the parts of a question that people read.
func questionText(message string, value payload.JSON) string {
	text := visible.BriefJSON(string(payload.CanonicalText(value)), mostShown)
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
