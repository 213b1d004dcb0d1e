package questions

import (
	"context"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/trail"
)

// maxRetractions is how often a caller may take a vote or an answer to one question back. Each
// stays in the trail.
const maxRetractions = 20

// RetractResponse takes the answer of the caller back before it takes effect, or the vote of
// the caller before it decides. A question without an answer of the caller stays as it is. The
// errors are *Error: INTERRUPT_NOT_FOUND, RESPONSE_IN_EFFECT, INTERRUPT_EXPIRED for a question
// whose time is over, INTERRUPT_ALREADY_RESOLVED,
// ACCESS_DENIED, TRAIL_FULL, INVALID_FIELD for a breakpoint, and those of the store.
func (e *Editor) RetractResponse(ctx context.Context, c runtime.RetractRequest) (checkpoint.Interrupt, error) {
	err := e.changeQuestion(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		t.Actor = c.By.Name
		if err := checkRetractable(q, c.By.Name, t.Now); err != nil {
			return err
		}
		votes, isDecided := q.Policy.RetractVote(q.Votes, c.By.Name)
		hasVoted := len(votes) < len(q.Votes)
		if q.State == checkpoint.InterruptOpen && !hasVoted {
			return commit.ErrNoChange
		}
		if q.CountEntries(trail.Retracted, c.By.Name) >= maxRetractions {
			return TooManyRetractionsError(q)
		}
		entry := withCaller(t, c.By, trail.Entry{Kind: trail.Retracted, Note: c.Note})
		if q.State == checkpoint.InterruptOpen || hasVoted && isDecided {
			q.AppendTrail(entry)
			q.Votes = votes
			return nil
		}
		q.RetractAnswer(entry, votes)
		putReopened(t, q)
		return nil
	})
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	e.opts.WakeScheduler()
	return e.opts.Reader.Interrupt(ctx, c.Thread, c.Interrupt)
}

// checkRetractable refuses what a caller may not take back, or not any more.
func checkRetractable(q *checkpoint.Interrupt, caller string, now time.Time) error {
	if q.Reason == checkpoint.ReasonBreakpoint {
		return breakpointError(q)
	}
	isVoter := slices.ContainsFunc(q.Votes, func(v approval.Vote) bool { return v.Voter == caller })
	switch q.State {
	case checkpoint.InterruptOpen:
		return nil
	case checkpoint.InterruptRetractable, checkpoint.InterruptAnswered, checkpoint.InterruptConsumed:
		if !isVoter && q.Responder != caller {
			return RefuseVoter(q, &approval.RefusalError{Rule: approval.RuleResponder, Text: "only who has answered may take the answer back"})
		}
		if q.State != checkpoint.InterruptRetractable || !q.Effective.After(now) {
			return InEffectError(q)
		}
		if !q.Expires.IsZero() && !q.Expires.After(now) {
			return ExpiredError(q) // it would end at once, before another answer
		}
		return nil
	case checkpoint.InterruptExpired, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded:
	}
	return ResolvedError(q)
}

// putReopened puts into a change that a question of the thread is open again.
func putReopened(t *commit.Tx, q *checkpoint.Interrupt) {
	t.Head.Retractable = max(0, t.Head.Retractable-1)
	t.ScheduleBy(q.DueTime())
	t.ScheduleBy(commit.ExpiryTime(&t.Head))
	t.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: q.Namespace, Node: q.Node, Task: q.Task, Checkpoint: q.Checkpoint,
		Interrupts: []checkpoint.Interrupt{*q},
	})
}
