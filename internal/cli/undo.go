package cli

import (
	"context"
	"slices"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// UndoAnswer takes the answer or the vote of the caller back. Errors: those of findUndoable, gRPC
// statuses, and those of the output.
func (s *Session) UndoAnswer(ctx context.Context, name QuestionName, note string) error {
	q, err := s.findUndoable(ctx, name)
	if err != nil {
		return err
	}
	reopened, err := s.Interrupts.RetractResponse(ctx, &graphdv1.RetractResponseRequest{
		ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Note: note,
	})
	if err != nil {
		return err
	}
	what := "open again, and the run waits for an answer"
	switch {
	case reopened.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_OPEN:
		what = "the vote is taken back, the others have decided"
	case q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN && len(reopened.GetVotes()) == len(q.GetVotes()):
		what = "open; there was no answer of yours to take back"
	case q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN:
		what = "the vote is taken back"
	}
	return s.showChanged(reopened, what)
}

// findUndoable finds the question that is named. Without a name it is the only one whose answer
// can be taken back, or else the only open one, or without open ones the last. Errors:
// *exit.UsageError, and those of findQuestion.
func (s *Session) findUndoable(ctx context.Context, name QuestionName) (*graphdv1.Interrupt, error) {
	if name.Interrupt == "" {
		answered, err := s.listQuestions(ctx, name.Thread, `state = "ANSWERED"`)
		if err != nil {
			return nil, err
		}
		answered = slices.DeleteFunc(answered, func(q *graphdv1.Interrupt) bool { return !isRetractable(q) })
		switch len(answered) {
		case 0:
		case 1:
			return answered[0], nil
		default:
			return nil, exit.Usagef("thread %q has %d answers that can be taken back", name.Thread, len(answered)).
				WithHint("name the question with --interrupt ID")
		}
	}
	return s.findQuestion(ctx, name, true)
}

func isRetractable(q *graphdv1.Interrupt) bool {
	return q.GetEffectiveTime() != nil && q.GetEffectiveTime().AsTime().After(time.Now().Add(-time.Minute)) // the server decides, by its clock
}
