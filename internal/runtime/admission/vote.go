package admission

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/questions"
	"github.com/graphd-dev/graphd/internal/trail"
)

// castVote counts an answer as the vote of its caller, and adds it to the question. The answer
// is also given with its secret parts apart. Without a policy each answer decides, and the
// question has no votes. Errors: ACCESS_DENIED with the rule that refuses the caller,
// INTERRUPT_CLAIMED, INVALID_FIELD for an answer of which the policy can't say whether it
// agrees, TRAIL_FULL and PAYLOAD_TOO_LARGE.
func (r *resumeCall) castVote(
	ctx context.Context, q *checkpoint.Interrupt, resp runtime.Response, answer redact.Value, field string,
) (approval.Outcome, error) {
	p := q.Policy
	if p == nil {
		return approval.Decided, nil
	}
	by := r.req.By
	if err := q.CheckVoter(r.newVoter()); err != nil {
		return 0, questions.RefuseVoter(q, err)
	}
	vote := approval.Vote{
		Voter: by.Name, How: by.How, Method: by.Method, Agrees: !resp.Dismissed, Note: resp.Note, Request: r.req.RequestID,
	}
	if !resp.Dismissed {
		vote.Value, vote.Hidden = answer.Shown, answer.Hidden
		if p.Agree != "" {
			agrees, err := r.opts.Conditions.Holds(ctx, p.Agree, resp.Value)
			if err != nil && !answer.Hidden.IsEmpty() {
				err = errors.New("why is not shown, because the answer has secret parts")
			}
			if err != nil {
				return 0, runtime.Errorf(runtime.ReasonInvalidField, "%s.value: whether the answer agrees can't be decided: %v", field, err).
					WithViolation(field+".value", "must be an answer for which the policy's condition holds or not: %s", p.Agree).With("interruptId", q.ID)
			}
			vote.Agrees = agrees
		}
	}
	votes, outcome := p.Cast(q.Votes, vote)
	if outcome == approval.Repeated {
		return outcome, nil
	}
	if err := questions.CheckClaimOfVoter(q, by.Name, r.opts.Now()); err != nil {
		return 0, err
	}
	isBounded := outcome == approval.Counted || triesSecrets(p, &vote)
	if isChanged := len(votes) == len(q.Votes); isChanged && isBounded && q.CountEntries(trail.Voted, by.Name) >= maxVotesOfVoter {
		return 0, questions.TooManyVotesError(q, maxVotesOfVoter)
	}
	if isBounded {
		if n := countVoteBytes(p, votes); n > approval.MaxVoteBytes {
			if triesSecrets(p, &vote) {
				n = vote.Size() // that of the others would tell how long their secret parts are
			}
			return 0, runtime.Errorf(runtime.ReasonPayloadTooLarge,
				"the votes of question %q, with those that this answer still needs, would have more than %d bytes; answer shorter", q.ID, approval.MaxVoteBytes).
				With("field", field+".value").With("sizeBytes", strconv.Itoa(n)).With("limitBytes", strconv.Itoa(approval.MaxVoteBytes))
		}
	}
	q.Votes = votes
	if q.ClaimedBy == by.Name {
		q.ClaimedBy, q.ClaimExpires = "", time.Time{} // it has done what it was for
	}
	return outcome, nil
}

// triesSecrets reports whether what becomes of a vote would tell the voter of secret parts of other
// votes. A refusal leaves no trace, so such a vote is refused or stored whatever the others are.
func triesSecrets(p *approval.Policy, vote *approval.Vote) bool {
	return !vote.Hidden.IsEmpty() && p.CountMissing([]approval.Vote{*vote}) > 0
}

// countVoteBytes returns how many bytes the votes of a question need with the last of them.
func countVoteBytes(p *approval.Policy, votes []approval.Vote) int {
	last := &votes[len(votes)-1]
	if triesSecrets(p, last) {
		return approval.SizeOfVotes(votes) + p.CountMissing([]approval.Vote{*last})*last.Size()
	}
	return p.NeededBytes(votes)
}

// maxVotesOfVoter is how often a person may vote on a question without deciding it. Each vote
// stays in the trail.
const maxVotesOfVoter = 20

func (r *resumeCall) newVoter() approval.Voter {
	return approval.Voter{Name: r.req.By.Name, Groups: r.req.By.Groups, IsContributor: r.isContributor}
}

// checkLateVoter refuses a caller who could not have answered a question that is decided:
// it learns nothing of the decision.
func (r *resumeCall) checkLateVoter(q *checkpoint.Interrupt) error {
	if q.Policy == nil {
		return nil
	}
	if err := q.CheckVoter(r.newVoter()); err != nil && !r.hasVoted(q) {
		return questions.RefuseVoter(q, err)
	}
	return nil
}

// hasVoted reports whether an answer of the caller may be a repetition: with a policy only
// that of a voter.
func (r *resumeCall) hasVoted(q *checkpoint.Interrupt) bool {
	return q.Policy == nil || slices.ContainsFunc(q.Votes, func(v approval.Vote) bool { return v.Voter == r.req.By.Name })
}

// mayRepeatAnswer reports whether an equal answer of the caller is a repetition. Where the answer
// has secret parts it is only for a caller who has given it: others could try what they are.
func (r *resumeCall) mayRepeatAnswer(q *checkpoint.Interrupt) bool {
	switch {
	case q.Hidden.Response.IsEmpty():
		return r.hasVoted(q)
	case q.Policy == nil:
		return q.Responder == r.req.By.Name
	}
	return slices.ContainsFunc(q.Votes, func(v approval.Vote) bool {
		return v.Voter == r.req.By.Name && q.HasAnswer(v.Value, v.Hidden)
	})
}

// putVotes adds to a change the questions that got votes and stay open. The time of the last
// vote of each question is that of the change.
func (b *answerBatch) putVotes(t *commit.Tx) {
	for i := range b.voted {
		b.voted[i].Updated = t.Now
	}
	for _, list := range [][]checkpoint.Interrupt{b.voted, b.answered, b.retractable} {
		for i := range list {
			if votes := list[i].Votes; len(votes) > 0 {
				votes[len(votes)-1].Time = t.Now // Cast has made them anew
			}
		}
	}
	t.Interrupts = append(t.Interrupts, b.voted...)
}
