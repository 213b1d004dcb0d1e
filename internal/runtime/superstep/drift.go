package superstep

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
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/visible"
)

// An answer is for the interrupt that was shown. When a task that is run again
// asks something else at its place, the answer is not used: the interrupt is
// replaced, or the task fails, or the program has said that it does not matter.

// maxRounds is how often something may be asked anew at one place.
const maxRounds = 3

// isAnswered reports whether an interrupt has ended with an answer, a dismissal or its
// expiry: a task that is run again sees this end.
func isAnswered(q *checkpoint.Interrupt) bool {
	if q == nil {
		return false
	}
	switch q.State {
	case checkpoint.InterruptAnswered, checkpoint.InterruptConsumed, checkpoint.InterruptExpired:
		return true
	case checkpoint.InterruptOpen, checkpoint.InterruptRetractable, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
	}
	return false
}

// nextRound returns the round of an interrupt that is asked where before stands, nil =
// none. A withdrawn interrupt keeps its round only if it shows the same: a page may
// still show its old text, and send an answer to that.
func nextRound(before *checkpoint.Interrupt, a *pregel.Ask) int {
	switch {
	case before == nil:
		return 0
	case isAnswered(before), !before.IsWaiting() && !showsAsked(before, a):
		return before.Round + 1
	}
	return before.Round
}

// showsAsked reports whether an answer to an interrupt may be used for a question.
func showsAsked(q *checkpoint.Interrupt, a *pregel.Ask) bool {
	shown := pregel.Answer{InterruptID: q.ID, ShownDigest: q.DigestShown(), HiddenDigest: q.HiddenDigest(), Asked: q}
	return a.Drift == checkpoint.DriftAccept || shown.Matches(a)
}

// replaceAnswered replaces an answered interrupt by a new interrupt, or returns why it
// can't. times counts earlier replacements.
func (o *outcome) replaceAnswered(before *checkpoint.Interrupt, q checkpoint.Interrupt, a *pregel.Ask, times int) *pregel.Failure {
	if !before.Policy.Accepts(a.Policy) {
		q.Differs = append(pregel.Differences(before, a), "people")
		return driftFailure(before, a, q.Differs, "; others may answer, or more must, than when the answer was given")
	}
	if before.DigestShown() == q.ShownDigest && before.HiddenDigest() == a.HiddenDigest(before.ID) {
		return permanentFailure(runtime.FailedNonDeterministic, "the node asked a question again that was answered; "+
			"on replay the same calls must come in the same order, or carry keys")
	}
	q.Differs = pregel.Differences(before, a)
	if a.Drift == checkpoint.DriftFail {
		return driftFailure(before, a, q.Differs, "")
	}
	if times >= maxRounds {
		return driftFailure(before, a, q.Differs, fmt.Sprintf("; something else was asked there %d times already", maxRounds))
	}
	old := *before
	old.State = checkpoint.InterruptSuperseded
	o.superseded = append(o.superseded, old)
	o.interrupts = append(o.interrupts, q)
	return nil
}

// putSuperseded puts the interrupts of a task that are replaced into a change. Their
// answers stay in their records.
func (o *outcome) putSuperseded(t *commit.Tx) {
	if len(o.superseded) == 0 {
		return
	}
	old := slices.Clone(o.superseded)
	for i := range old {
		old[i].Updated = t.Now
	}
	t.Interrupts = append(t.Interrupts, old...)
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: old})
}

// driftFailure says that a task asks something else than was answered.
func driftFailure(q *checkpoint.Interrupt, a *pregel.Ask, differs []string, more string) *pregel.Failure {
	f := permanentFailure(runtime.FailedNonDeterministic, fmt.Sprintf(
		"%s is not the one that was answered: %s%s. To go on with this thread, run it again from a checkpoint, which asks anew, "+
			"or let the question itself say drift ask_again and run the thread on. "+
			"For threads to come, put what changes behind memo, or name it in drift_ignore",
		positionText(a.Scope, a.Key, a.Index), changesText(q, a, differs), more))
	f.Details = map[string]string{
		"interruptId": q.ID, "differs": visible.Brief(strings.Join(differs, ", "), maxNamesText),
		"before": interruptText(q.Message, q.Value), "now": interruptText(a.Message, a.Value), "hint": "memo",
	}
	return f
}

// changesText shows the differing parts, each with its old and new text.
func changesText(q *checkpoint.Interrupt, a *pregel.Ask, differs []string) string {
	texts := make([]string, len(differs))
	for i, part := range differs {
		texts[i] = visible.Brief(part, maxPartText)
		if part == driftIgnorePart {
			continue // it is no part of either
		}
		if slices.Contains(a.Secret, part) {
			texts[i] += " (secret)"
			continue
		}
		before, now := interruptPart(part, q.Message, q.Value, q.Schema), interruptPart(part, a.Message, a.Value, a.Schema)
		same := sharedPrefix(before, now)
		texts[i] += ": " + partText(before, same) + " → " + partText(now, same)
	}
	return strings.Join(texts, "; ")
}

// driftIgnorePart is the differing part when only drift_ignore differs.
const driftIgnorePart = "drift_ignore"

// interruptPart returns a part of an interrupt as it was written. pregel.Differences
// names the parts.
func interruptPart(part, message string, value, schema payload.JSON) string {
	switch part {
	case payload.PartMessage:
		return string(payload.Quote(message))
	case payload.PartSchema:
		return string(payload.CanonicalText(schema))
	case payload.PartValue:
		return string(payload.CanonicalText(cmp.Or(value, payload.Null)))
	}
	return string(payload.CanonicalText(payload.ValueAt(value, part)))
}

// sharedPrefix returns the length of the common beginning of two texts.
func sharedPrefix(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// partText shows a part; a long part from a little before the difference.
func partText(text string, same int) string {
	if text == "" {
		return "nothing"
	}
	if from := same - maxPartText/2; from > 0 && len(text) > maxPartText {
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		return "…" + visible.BriefJSON(text[from:], maxPartText)
	}
	return visible.BriefJSON(text, maxPartText)
}

func positionText(scope, key string, index int) string {
	text := "question number " + strconv.Itoa(index+1)
	if key != "" {
		text += " of key " + visible.Brief(strconv.Quote(key), maxNamesText)
	}
	if scope != "" {
		text += " in scope " + visible.Brief(strconv.Quote(scope), maxNamesText)
	}
	return text
}

// Bounds of the parts of an interrupt that a failure repeats, in bytes.
const (
	maxValueText = 300
	maxNamesText = 500
	maxPartText  = 100
)

// interruptText shows the parts of an interrupt that people read.
func interruptText(message string, value payload.JSON) string {
	text := visible.BriefJSON(string(payload.CanonicalText(value)), maxValueText)
	if message == "" {
		return text
	}
	return visible.BriefJSON(string(payload.Quote(message)), maxValueText) + " " + text
}

// checkUsedAnswers checks the answers that an attempt has used: an answer is for the
// question that was shown, unless the program accepts another.
func (at *attempt) checkUsedAnswers() *pregel.Failure {
	for i := range at.result.UsedAnswers {
		use := &at.result.UsedAnswers[i]
		q := at.pending.currentInterrupt(at.task.ID, use.Scope, use.Key, use.Index)
		if !isAnswered(q) {
			return permanentFailure(runtime.FailedInvalidUpdate, "the node has used an answer to "+
				positionText(use.Scope, use.Key, use.Index)+", which has none")
		}
		switch seen := q.DigestShown(); {
		case use.Asked == nil && use.AskedDigest == seen && use.HiddenDigest == q.HiddenDigest():
		case use.Asked == nil:
			return permanentFailure(runtime.FailedNonDeterministic, "the node has used the answer to "+
				positionText(use.Scope, use.Key, use.Index)+" for something else than was shown")
		default:
			if f := at.acceptDrift(q, *use.Asked); f != nil {
				return f
			}
		}
	}
	return nil
}

// acceptDrift records an answer that was used for something else than was shown.
func (at *attempt) acceptDrift(q *checkpoint.Interrupt, a pregel.Ask) *pregel.Failure {
	a.SetDriftDefaults(at.Graph().Spec)
	if err := a.HideSecrets(); err != nil {
		return permanentFailure(runtime.FailedInvalidUpdate, placeText(&a)+": "+err.Error())
	}
	if a.ShownDigest() == q.DigestShown() && a.HiddenDigest(q.ID) == q.HiddenDigest() {
		return nil
	}
	differs := pregel.Differences(q, &a)
	if a.Drift != checkpoint.DriftAccept {
		return driftFailure(q, &a, differs, "; the node has used the answer all the same")
	}
	at.accepted = append(at.accepted, acceptedDrift{interrupt: q.ID, differs: differs})
	at.thread.Log.Info("an answer was used for something else than was shown, which the program accepts",
		zap.String("node", at.task.Node.Name), zap.String("task", at.task.ID),
		zap.String("reason", visible.Brief(strings.Join(differs, ", "), maxNamesText)))
	return nil
}

// acceptedDifferences returns the parts that differed from an interrupt whose answer was
// used, nil for none.
func (o *outcome) acceptedDifferences(interrupt string) []string {
	for _, a := range o.accepted {
		if a.interrupt == interrupt {
			return a.differs
		}
	}
	return nil
}
