package admission

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// CheckResponses checks answers as ResumeRun does, without storing them, and returns what each of
// them would do. The errors are those of ResumeRun.
func (a *Admitter) CheckResponses(ctx context.Context, req runtime.ResumeRequest) ([]runtime.CheckedResponse, error) {
	r := &resumeCall{opts: &a.opts, req: req}
	head := &checkpoint.Head{}
	reader, err := r.readThread(ctx, head)
	if err != nil {
		return nil, err
	}
	b, err := r.checkAnswers(ctx, reader, head)
	if err != nil {
		return nil, err
	}
	checked := make([]runtime.CheckedResponse, len(req.Responses))
	for i := range checked {
		checked[i] = b.describeOutcome(req.Responses[i].Interrupt)
	}
	return checked, nil
}

// describeOutcome says what the answer to an interrupt would do. One that added nothing to the
// batch is stored already.
func (b *answerBatch) describeOutcome(id string) runtime.CheckedResponse {
	at := func(list []checkpoint.Interrupt) int {
		return slices.IndexFunc(list, func(q checkpoint.Interrupt) bool { return q.ID == id })
	}
	out := runtime.CheckedResponse{Interrupt: id}
	if i := at(b.voted); i >= 0 {
		q := &b.voted[i]
		out.MissingVotes, out.Undo = countMissing(q), q.Undo
		return out
	}
	for _, list := range [][]checkpoint.Interrupt{b.answered, b.retractable} {
		if i := at(list); i >= 0 {
			out.Undo = list[i].Undo
			if out.MissingVotes = countMissing(&list[i]); out.MissingVotes > 0 {
				return out
			}
		}
	}
	out.Decides = at(b.answered) >= 0 || at(b.retractable) >= 0
	out.IsRepeated = !out.Decides
	return out
}

// countMissing returns how many more votes like the last one would decide. Where votes have secret
// parts those of others are not counted: a caller could try what they are, and leave no trace.
func countMissing(q *checkpoint.Interrupt) int {
	switch n := len(q.Votes); {
	case n == 0:
		return 0
	case slices.ContainsFunc(q.Votes, func(v approval.Vote) bool { return !v.Hidden.IsEmpty() }):
		return q.Policy.CountMissing(q.Votes[n-1:])
	default:
		return q.Policy.CountMissing(q.Votes)
	}
}
