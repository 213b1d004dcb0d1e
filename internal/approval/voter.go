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
	RuleReveal       = "reveal"          // not among those who may see the secret parts
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
		return &RefusalError{RuleGroup, strconv.Quote(v.Name) + " is not among those who may answer: " + nameAudience(p.Users, p.Groups)}
	}
	return nil
}

// includesVoter reports whether the policy is for the voter.
func (p *Policy) includesVoter(v Voter) bool {
	return len(p.Users) == 0 && len(p.Groups) == 0 || v.isAmong(p.Users, p.Groups)
}

// isAmong reports whether the voter is one of some users, or a member of one of some groups.
func (v Voter) isAmong(users, groups []string) bool {
	return slices.Contains(users, v.Name) || slices.ContainsFunc(v.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// nameAudience names users and groups in words.
func nameAudience(users, groups []string) string {
	var parts []string
	if len(users) > 0 {
		parts = append(parts, strings.Join(users, ", "))
	}
	if len(groups) > 0 {
		parts = append(parts, "members of "+strings.Join(groups, ", "))
	}
	return strings.Join(parts, "; ")
}
