package questions

import (
	"errors"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// ResolvedError refuses to change an interrupt that is over.
func ResolvedError(q *checkpoint.Interrupt) *runtime.Error {
	state := q.ClientState()
	how := string(state)
	switch {
	case q.Dismissed:
		how = "dismissed"
	case state == checkpoint.InterruptConsumed && q.Reason != checkpoint.ReasonBreakpoint:
		how = string(checkpoint.InterruptAnswered) // that the node has used the answer is of no interest here
	}
	err := runtime.Errorf(runtime.ReasonInterruptAlreadyResolved, "question %q was %s already", q.ID, how).
		With("interruptId", q.ID).With("state", string(state))
	if q.Responder != "" {
		err.Message += " by " + q.Responder
		err = err.With("responder", q.Responder)
	}
	if !q.ResponseTime.IsZero() {
		at := q.ResponseTime.UTC().Format(time.RFC3339)
		err.Message += ", at " + at
		err = err.With("resolveTime", at)
	}
	return err
}

// InEffectError refuses to take an answer back that is in effect.
func InEffectError(q *checkpoint.Interrupt) *runtime.Error {
	if q.Effective.IsZero() {
		return runtime.Errorf(runtime.ReasonResponseInEffect, "the answer to question %q took effect at once; a question can be undone when it says undo", q.ID).
			With("interruptId", q.ID)
	}
	at := q.Effective.UTC().Format(time.RFC3339)
	return runtime.Errorf(runtime.ReasonResponseInEffect, "the answer to question %q took effect at %s", q.ID, at).
		With("interruptId", q.ID).With("effectiveTime", at)
}

// TooManyRetractionsError refuses a caller who has taken answers to a question back too often.
func TooManyRetractionsError(q *checkpoint.Interrupt) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTrailFull, "question %q has %d retractions of this caller in its trail, the limit; the answer takes effect", q.ID, maxRetractions).
		With("interruptId", q.ID)
}

func breakpointError(q *checkpoint.Interrupt) *runtime.Error {
	return runtime.Errorf(runtime.ReasonInvalidField, "interrupt_id: %q is a breakpoint and asks nothing", q.ID).
		WithViolation("interrupt_id", "must name a question")
}

// ClaimedError refuses what only the holder of the claim on a question may do.
func ClaimedError(q *checkpoint.Interrupt) *runtime.Error {
	until := q.ClaimExpires.UTC().Format(time.RFC3339)
	return runtime.Errorf(runtime.ReasonInterruptClaimed, "question %q is claimed by %s until %s", q.ID, q.ClaimedBy, until).
		With("interruptId", q.ID).With("claimedBy", q.ClaimedBy).With("claimExpireTime", until)
}

// RefuseVoter translates the refusal of a voter.
func RefuseVoter(q *checkpoint.Interrupt, err error) *runtime.Error {
	refused := runtime.Errorf(runtime.ReasonAccessDenied, "access denied: question %q: %v", q.ID, err).With("interruptId", q.ID)
	if by, ok := errors.AsType[*approval.RefusalError](err); ok {
		refused = refused.With("rule", by.Rule)
	}
	return refused
}

// ExpiredError refuses an interrupt whose time is over.
func ExpiredError(q *checkpoint.Interrupt) *runtime.Error {
	return runtime.Errorf(runtime.ReasonInterruptExpired, "question %q has expired", q.ID).
		With("interruptId", q.ID).With("expireTime", q.Expires.UTC().Format(time.RFC3339))
}

// TrailFullError refuses an entry for which the trail of a question has no room.
func TrailFullError(q *checkpoint.Interrupt, most int) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTrailFull, "the trail of question %q has %d bytes, and takes no more beyond %d", q.ID, q.Trail.Size(), most).
		With("interruptId", q.ID).With("limitBytes", strconv.Itoa(most))
}

// TooManyVotesError refuses a caller who has voted too often on a question.
func TooManyVotesError(q *checkpoint.Interrupt, most int) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTrailFull, "question %q has %d votes of this caller in its trail, the limit; leave the last one, or give an answer that decides", q.ID, most).
		With("interruptId", q.ID)
}
