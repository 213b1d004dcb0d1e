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
		a := newAttempt(t, q, c.By)
		if err := a.checkDelegator(); err != nil {
			return err
		}
		delegations, from, err := changeDelegations(a, &c)
		if err != nil {
			return err
		}
		assignees := handOver(q.Assignees, from, c.To)
		if n := len(assignees); n > approval.MaxAssignees {
			return runtime.Errorf(runtime.ReasonInvalidField, "question %q would have %d assignees, the limit is %d", q.ID, n, approval.MaxAssignees).
				WithViolation("to", "must name an assignee: there are as many as may be")
		}
		q.ChangeProperties(func(changes *checkpoint.PropertyChanges) { changes.Delegations, q.Assignees = delegations, assignees })
		if q.ClaimedBy == c.By.Name {
			q.ClaimedBy, q.ClaimExpires = "", time.Time{}
		}
		entry := trail.Entry{Kind: trail.Delegated, Users: []string{c.To}, Note: c.Note}
		if err := a.checkRoom(&entry, trail.MaxBytes); err != nil {
			return err
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
func changeDelegations(a *attempt, c *runtime.DelegateRequest) (all []approval.Delegation, from string, err error) {
	switch isRepeated, err := isDelegated(a.Interrupt, c); {
	case err != nil:
		return nil, "", err
	case isRepeated:
		return nil, "", commit.ErrNoChange
	}
	if delegate := a.delegateOf(c.By.Name); delegate != "" && c.To == c.By.Name {
		return approval.RevokeDelegation(a.PropertyChanges().Delegations, c.By.Name), delegate, a.checkTakeBack(delegate)
	}
	if err := a.checkPlace(); err != nil {
		return nil, "", err
	}
	if !a.isDelegable() {
		return a.PropertyChanges().Delegations, c.By.Name, nil
	}
	all, err = delegateVote(a, c.To)
	return all, c.By.Name, err
}

// delegateVote hands the right to answer on.
func delegateVote(a *attempt, to string) ([]approval.Delegation, error) {
	if a.hasVoted(to) {
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "to: %q has voted on question %q already, and has one vote", to, a.ID).
			WithViolation("to", "must name a user who has not voted")
	}
	delegations, err := a.VoterPolicy().DelegateVote(a.PropertyChanges().Delegations, a.by.Name, to)
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
