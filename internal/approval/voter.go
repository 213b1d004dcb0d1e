package approval

import (
	"slices"
	"strconv"
	"strings"
)

// Voter is the caller that answers, as the server knows it.
type Voter struct {
	Name   string // "" = the server knows no callers
	Groups []string
	// IsContributor says that the voter has edited the state since the run began.
	IsContributor bool
}

// Rules by which a voter is refused.
const (
	RuleCallers      = "callers"         // the server does not know who calls
	RuleGroup        = "group"           // neither a user nor a member of a group of the policy
	RuleNotRequester = "not_requester"   // who wants it may not answer
	RuleContributor  = "not_contributor" // who has edited the state may not answer
	RuleDelegated    = "delegated"       // a delegate answers in the place of the voter
	RuleResponder    = "responder"       // only who has answered may take the answer back
	RuleExclusive    = "exclusive"       // only the holder of the claim may answer, and there is none
)

// RefusalError says by which rule of a policy a voter may not answer.
type RefusalError struct {
	Rule string
	Text string
}

func (e *RefusalError) Error() string { return e.Text }

// CheckVoter returns a *RefusalError when the voter may not answer.
func (p *Policy) CheckVoter(v Voter) error {
	switch {
	case !p.NeedsCallers():
		return nil
	case v.Name == "":
		return &RefusalError{RuleCallers, "the server does not know who calls, and the question is for certain people; start it with a way to know callers"}
	case p.NotRequester && v.Name == p.Requester:
		return &RefusalError{RuleNotRequester, strconv.Quote(v.Name) + " has asked for it, and may not answer; someone else must"}
	case p.NotContributor && v.IsContributor:
		return &RefusalError{RuleContributor, strconv.Quote(v.Name) + " has edited the state since the run began, and may not answer; someone else must"}
	case !p.includesVoter(v):
		return &RefusalError{RuleGroup, strconv.Quote(v.Name) + " is not among those who may answer: " + p.nameAudience()}
	}
	return nil
}

// includesVoter reports whether the policy is for the voter.
func (p *Policy) includesVoter(v Voter) bool {
	if len(p.Users) == 0 && len(p.Groups) == 0 {
		return true
	}
	return slices.Contains(p.Users, v.Name) ||
		slices.ContainsFunc(v.Groups, func(g string) bool { return slices.Contains(p.Groups, g) })
}

// nameAudience says in words who may answer.
func (p *Policy) nameAudience() string {
	var parts []string
	if len(p.Users) > 0 {
		parts = append(parts, strings.Join(p.Users, ", "))
	}
	if len(p.Groups) > 0 {
		parts = append(parts, "members of "+strings.Join(p.Groups, ", "))
	}
	return strings.Join(parts, "; ")
}
