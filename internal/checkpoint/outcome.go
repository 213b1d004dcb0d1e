package checkpoint

import "time"

// Outcome is how the wait for an answer to an interrupt ended.
type Outcome string

// The outcomes.
const (
	OutcomeAnswered  Outcome = "answered"  // by a person, or a breakpoint was passed
	OutcomeDismissed Outcome = "dismissed" // by a person, without an answer
	OutcomeDefault   Outcome = "default"   // the default counts, since no answer came in time
	OutcomeExpired   Outcome = "expired"   // no answer came in time
	OutcomeWithdrawn Outcome = "withdrawn" // its run was cancelled, or it became void
)

// ResolvedOutcome returns how the wait for an answer ended, for an interrupt of an
// EventResolved; "" = it had ended before: the node used the answer, or did not.
func (i *Interrupt) ResolvedOutcome() Outcome {
	switch i.State {
	case InterruptRetractable, InterruptAnswered:
		if i.Dismissed {
			return OutcomeDismissed
		}
		return OutcomeAnswered
	case InterruptConsumed:
		if i.Reason == ReasonBreakpoint {
			return OutcomeAnswered
		}
	case InterruptExpired:
		if i.Expiry == ExpiryResumeDefault {
			return OutcomeDefault
		}
		return OutcomeExpired
	case InterruptCancelled, InterruptSuperseded:
		if !i.hasAnswer() {
			return OutcomeWithdrawn
		}
	case InterruptOpen:
	}
	return ""
}

// FirstDueTime returns when the first step of an interrupt is due, or its expiry if that is
// earlier; zero = never.
func (i *Interrupt) FirstDueTime() time.Time {
	if len(i.Steps) == 0 {
		return i.Expires
	}
	first := i.Created.Add(i.Steps[0].After)
	if !i.Expires.IsZero() && i.Expires.Before(first) {
		return i.Expires
	}
	return first
}
