package approval

import "strconv"

// NamesRevealers reports whether the policy says who may see the secret parts.
func (p *Policy) NamesRevealers() bool {
	return p != nil && len(p.RevealUsers)+len(p.RevealGroups) > 0
}

// NamesRevealer reports whether the policy says that the caller may see the secret parts, those of
// answers included.
func (p *Policy) NamesRevealer(v Voter) bool {
	return p.NamesRevealers() && v.Name != "" && v.isAmong(p.RevealUsers, p.RevealGroups)
}

// CheckRevealer returns a *RefusalError when the caller may not see the secret parts of the question.
// Where the policy names no revealer, it is who may answer.
func (p *Policy) CheckRevealer(delegations []Delegation, v Voter) error {
	switch {
	case !p.NamesRevealers():
		return p.CheckDelegate(delegations, v)
	case v.Name == "":
		return &RefusalError{RuleCallers, "the server does not know who calls, and the secret parts are for certain people; start it with a way to know callers"}
	case !p.NamesRevealer(v):
		return &RefusalError{RuleReveal, strconv.Quote(v.Name) + " is not among those who may see the secret parts: " + nameAudience(p.RevealUsers, p.RevealGroups)}
	}
	return nil
}
