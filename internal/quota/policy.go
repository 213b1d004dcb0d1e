package quota

import (
	"path"
	"slices"
)

// Caller is who makes a call. Calls with the same credentials may share Groups, which
// is not changed.
type Caller struct {
	Tenant    string
	Principal string // "" = the server does not know its callers
	Groups    []string
}

// Policy has the limits of every tenant and caller. It is not changed.
type Policy struct {
	tenant, caller Values
	rules          []rule
	usesGroups     bool // the limits of a caller depend on its groups
	limitsRuns     bool // some callers have a limit of their runs
}

// rule is an override with its names in sets.
type rule struct {
	tenants  map[string]struct{} // exact names; nil and no patterns = all
	patterns []string
	callers  *callerSelection // nil = all

	tenant, caller Values
}

// callerSelection selects callers by name or group.
type callerSelection struct {
	principals, groups map[string]struct{}
}

// newPolicy makes a policy of a file without problems.
func newPolicy(c *Config) *Policy {
	p := &Policy{tenant: c.Tenant, caller: c.Caller, limitsRuns: c.Caller.LiveRuns != nil}
	for _, o := range c.Overrides {
		r := rule{tenant: o.Tenant, caller: o.Caller}
		exact := slices.DeleteFunc(slices.Clone(o.Tenants), isPattern)
		r.patterns = slices.DeleteFunc(slices.Clone(o.Tenants), func(name string) bool { return !isPattern(name) })
		r.tenants = makeSet(exact)
		if o.selectsCallers() {
			r.callers = &callerSelection{makeSet(o.Principals), makeSet(o.Groups)}
			p.usesGroups = p.usesGroups || len(o.Groups) > 0
		}
		p.limitsRuns = p.limitsRuns || o.Caller.LiveRuns != nil
		p.rules = append(p.rules, r)
	}
	return p
}

func makeSet(names []string) map[string]struct{} {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

// TenantLimits returns the limits of a tenant, of all its callers together.
func (p *Policy) TenantLimits(tenant string) LimitSet {
	var layers []*Values
	for i := range p.rules {
		if r := &p.rules[i]; r.callers == nil && r.matchesTenant(tenant) {
			layers = append(layers, &r.tenant)
		}
	}
	return mergeValues(append(layers, &p.tenant))
}

// HasCallerLimit reports whether any caller may have a limit of its runs. limit is LiveRuns.
func (p *Policy) HasCallerLimit(limit Limit) bool { return limit.IsOfRuns() && p.limitsRuns }

// CallerLimits returns the limits of one caller.
func (p *Policy) CallerLimits(c Caller) LimitSet {
	var layers []*Values
	for i := range p.rules {
		if r := &p.rules[i]; r.matchesTenant(c.Tenant) && r.callers.containsCaller(c) {
			layers = append(layers, &r.caller)
		}
	}
	return mergeValues(append(layers, &p.caller))
}

// mergeValues takes every limit from the first layer that has it.
func mergeValues(layers []*Values) LimitSet {
	set := newLimitSet()
	for _, v := range slices.Backward(layers) {
		for _, l := range Limits() {
			if l.IsRate() {
				if r := v.rateOf(l); r != nil {
					set.rates[l] = fillBurst(*r)
				}
			} else if n := v.countOf(l); n != nil {
				set.counts[l] = *n
			}
		}
	}
	return set
}

func (r *rule) matchesTenant(tenant string) bool {
	if len(r.tenants)+len(r.patterns) == 0 {
		return true
	}
	if _, ok := r.tenants[tenant]; ok {
		return true
	}
	return slices.ContainsFunc(r.patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, tenant)
		return ok && err == nil
	})
}

// containsCaller reports whether the selection has a caller. nil has every caller.
func (s *callerSelection) containsCaller(c Caller) bool {
	if s == nil {
		return true
	}
	if _, ok := s.principals[c.Principal]; ok {
		return true
	}
	return slices.ContainsFunc(c.Groups, func(group string) bool {
		_, ok := s.groups[group]
		return ok
	})
}
