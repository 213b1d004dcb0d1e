package approval

import (
	"fmt"
	"slices"
	"strconv"
)

// MaxDelegations bounds the delegations of a question.
const MaxDelegations = 64

// Delegation says that one user answers in the place of another.
type Delegation struct {
	From string
	To   string
}

// CheckDelegate is CheckVoter for a question with delegations: a delegate may answer, and who
// has named a delegate may not.
func (p *Policy) CheckDelegate(delegations []Delegation, v Voter) error {
	for _, d := range delegations {
		switch v.Name {
		case "":
		case d.From:
			return &RefusalError{RuleDelegated, strconv.Quote(d.To) + " answers in the place of " + strconv.Quote(d.From)}
		case d.To:
			open := *p
			open.Users, open.Groups = []string{v.Name}, nil
			return open.CheckVoter(v)
		}
	}
	return p.CheckVoter(v)
}

// RevokeDelegation returns the delegations without the one that a user has made.
func RevokeDelegation(delegations []Delegation, from string) []Delegation {
	return slices.DeleteFunc(slices.Clone(delegations), func(d Delegation) bool { return d.From == from })
}

// DelegateVote returns the delegations after a user has named another one. Who is a delegate passes
// the place on, and gives it back by naming the one who has it from. The error says why it
// can't be.
func (p *Policy) DelegateVote(delegations []Delegation, from, to string) ([]Delegation, error) {
	isTaken := func(name string) bool {
		return slices.ContainsFunc(delegations, func(d Delegation) bool { return d.From == name || d.To == name })
	}
	all := slices.Clone(delegations)
	at := slices.IndexFunc(all, func(d Delegation) bool { return d.To == from })
	switch {
	case to == from:
		return nil, fmt.Errorf("%q is the caller; name another user", to)
	case at >= 0 && all[at].From == to:
		return slices.Delete(all, at, at+1), nil
	case isTaken(to) || slices.Contains(p.Users, to):
		return nil, fmt.Errorf("%q may answer already, and has one vote; name another user", to)
	case at >= 0:
		all[at].To = to
		return all, nil
	case len(all) >= MaxDelegations:
		return nil, fmt.Errorf("the question has %d delegations, the limit", len(all))
	}
	return append(all, Delegation{From: from, To: to}), nil
}
