package questions

import (
	"context"

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
		if err := newAttempt(t, q, c.By).checkRetract(); err != nil {
			return err
		}
		votes, isDecided := q.Policy.RetractVote(q.Votes, c.By.Name)
		hasVoted := len(votes) < len(q.Votes)
		if q.State == checkpoint.InterruptOpen && !hasVoted {
			return commit.ErrNoChange
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

// putReopened puts into a change that a question of the thread is open again.
func putReopened(t *commit.Tx, q *checkpoint.Interrupt) {
	t.Head.Retractable = max(0, t.Head.Retractable-1)
	t.ScheduleBy(q.DueTime())
	t.ScheduleBy(commit.RestDueTime(&t.Head))
	t.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: q.Namespace, Node: q.Node, Task: q.Task, Checkpoint: q.Checkpoint,
		Interrupts: []checkpoint.Interrupt{*q},
	})
}
