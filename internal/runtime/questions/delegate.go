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

// DelegateInterrupt hands the caller's part in an open question to another user: the assignment,
// and, where the policy lets it, the right to answer. A repeated request changes nothing. The
// errors are *Error: INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// ACCESS_DENIED, TRAIL_FULL, INVALID_FIELD, and those of the store.
func (e *Editor) DelegateInterrupt(ctx context.Context, c runtime.DelegateRequest) (checkpoint.Interrupt, error) {
	return e.changeOpen(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		if err := checkAsked(t, q); err != nil {
			return err
		}
		if c.By.Name == "" {
			return RefuseVoter(q, &approval.RefusalError{
				Rule: approval.RuleCallers, Text: "the server does not know who calls, and a delegate answers in the place of a caller; start it with a way to know callers",
			})
		}
		delegations, from, err := changeDelegations(t, q, &c)
		if err != nil {
			return err
		}
		assignees := handOver(q.Assignees, from, c.To)
		if n := len(assignees); n > approval.MaxAssignees {
			return runtime.Errorf(runtime.ReasonInvalidField, "question %q would have %d assignees, the limit is %d", q.ID, n, approval.MaxAssignees).
				WithViolation("to", "must name an assignee: there are as many as may be")
		}
		q.ChangeProperties(func() { q.Delegations, q.Assignees = delegations, assignees })
		if q.ClaimedBy == c.By.Name {
			q.ClaimedBy, q.ClaimExpires = "", time.Time{}
		}
		entry := trail.Entry{Kind: trail.Delegated, Users: []string{c.To}, Note: c.Note}
		if !q.Trail.HasRoom(&entry, trail.MaxBytes) {
			return TrailFullError(q, trail.MaxBytes)
		}
		q.AppendTrail(withCaller(t, c.By, entry))
		return nil
	})
}

// isDelegated reports whether a request was carried out already, and its effect was not changed
// since: a caller who has missed the reply may not be allowed to delegate again.
func isDelegated(q *checkpoint.Interrupt, c *runtime.DelegateRequest) (bool, error) {
	entries, err := readTrail(q)
	if err != nil {
		return false, err
	}
	for i := range slices.Backward(entries) {
		entry := &entries[i]
		isOwn := entry.Principal == c.By.Name
		switch {
		case entry.Kind == trail.Delegated:
			return isOwn && entry.Note == c.Note && slices.Equal(entry.Users, []string{c.To}), nil
		case entry.Kind == trail.Asked, entry.Kind == trail.Changed, entry.Kind == trail.Claimed && isOwn:
			return false, nil
		}
	}
	return false, nil
}

// changeDelegations returns the delegations of a question after a request, and the user in whose
// place the other one stands. A caller who names the own name takes the place back.
func changeDelegations(t *commit.Tx, q *checkpoint.Interrupt, c *runtime.DelegateRequest) (all []approval.Delegation, from string, err error) {
	switch isRepeated, err := isDelegated(q, c); {
	case err != nil:
		return nil, "", err
	case isRepeated:
		return nil, "", commit.ErrNoChange
	}
	if at := slices.IndexFunc(q.Delegations, func(d approval.Delegation) bool { return d.From == c.By.Name }); at >= 0 && c.To == c.By.Name {
		delegate := q.Delegations[at].To
		if hasVote(q, delegate) {
			return nil, "", runtime.Errorf(runtime.ReasonInvalidField, "to: %q has voted in the place of %q already", delegate, c.By.Name).
				WithViolation("to", "must name another user: the delegate has voted")
		}
		return approval.RevokeDelegation(q.Delegations, c.By.Name), delegate, nil
	}
	if err := q.CheckVoter(newVoter(t, c.By)); err != nil {
		return nil, "", RefuseVoter(q, err)
	}
	if q.Policy == nil || !q.Policy.Delegable {
		return q.Delegations, c.By.Name, nil
	}
	all, err = delegateVote(q, c.By.Name, c.To)
	return all, c.By.Name, err
}

func hasVote(q *checkpoint.Interrupt, name string) bool {
	return slices.ContainsFunc(q.Votes, func(v approval.Vote) bool { return v.Voter == name })
}

// delegateVote hands the right to answer on. A caller who has voted takes the vote back first.
func delegateVote(q *checkpoint.Interrupt, from, to string) ([]approval.Delegation, error) {
	if hasVote(q, from) {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "question %q has a vote of yours; take it back before another user votes in your place", q.ID).
			WithViolation("interrupt_id", "must name a question without a vote of the caller")
	}
	if hasVote(q, to) {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "to: %q has voted on question %q already, and has one vote", to, q.ID).
			WithViolation("to", "must name a user who has not voted")
	}
	delegations, err := q.VoterPolicy().DelegateVote(q.Delegations, from, to)
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "to: %v", err).WithViolation("to", "%v", err)
	}
	return delegations, nil
}

// handOver replaces a name by another one, which is added when there was none.
func handOver(names []string, from, to string) []string {
	next := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == from || name == to })
	return append(next, to)
}
