package access

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// Caller is who calls, as far as decisions depend on it.
type Caller struct {
	// Name of the principal; empty for a call without credentials, which is refused
	// whatever it calls.
	Name   string
	Groups []string
	// Tenant of its own, and all that it may choose. Tenant counts as chosen from
	// Tenants even if it is not among them.
	Tenant  string
	Tenants []string
	// Roles that its credentials give it, in its own tenant and for all graphs.
	// Names that are no roles give nothing.
	Roles []string
	// How it was authenticated, a word for conditions.
	How string
}

func (c *Caller) hasTenant(name string) bool {
	return name != "" && (name == c.Tenant || slices.Contains(c.Tenants, name))
}

// Request is what a caller wants.
type Request struct {
	Caller Caller
	Method string // full name, like "/graphd.v1.GraphService/Stream"
	// Tenant that the call chooses; empty stands for the caller's own.
	Tenant string
	// Graph and Thread that the call concerns, the graph also for calls that name
	// only the thread. Empty for none, see Scope.
	Graph  string
	Thread string
	// Extent says how far Graph and Thread are known.
	Extent Extent
	// Rights that fields of the request need, see Rights.
	Rights []Right
	Now    time.Time // for conditions
}

// Extent says for what a decision is asked.
type Extent int

// The extents.
const (
	// WholeCall asks for a call with the graph and the thread that it names.
	WholeCall Extent = iota
	// EveryGraph asks for a call whose graph is not known if Graph is empty, and whose
	// thread is not if Thread is empty: what is allowed then is allowed for each of them.
	// Without a graph bindings for some graphs don't count. Conditions on what is not
	// known don't count. What is refused
	// may be allowed for some, and CanSee says nothing.
	EveryGraph
	// OneItem asks for an item of those that a call of ScopeTenant returns or touches.
	// An empty Graph stands for an item without one.
	OneItem
)

// Decision is what comes of a request.
type Decision struct {
	Allowed bool
	// Rule says in a few words what decided, for people, errors and records:
	//
	//	binding: line 12          allowed by the binding that begins there
	//	own role                  allowed by a role of the caller's credentials
	//	any caller                allowed to every authenticated caller
	//	role: answerer, admin     refused: the caller has none of them here
	//	right: steer-run          refused: the fields of the request need it
	//	condition: line 12        refused: the binding's condition is false or failed
	//	caller, tenant, method    refused: no name, not the caller's, not served
	Rule string
	// CanSee reports whether the caller may know of the object: of the thread if the
	// request names one, else of the graph, else of the tenant. A refusal of what it
	// can't see must look as if the object did not exist, and must not show Rule.
	// Always set when Allowed is.
	CanSee bool
}

// Rules of decisions that no row of the tables names.
const (
	ruleAnyCaller = "any caller"
	ruleOwnRole   = "own role"
	ruleCaller    = "caller"
	ruleTenant    = "tenant"
	ruleMethod    = "method"

	ruleUnknownRight = "right: unknown"
)

// Policy is what callers may do. It does not change and is safe for concurrent use.
type Policy struct {
	methods      map[string]methodRule
	rights       []rightRule
	seesThreads  roleSet
	seesGraphs   roleSet
	byPrincipal  map[string][]*binding
	byGroup      map[string][]*binding
	bindingCount int
}

type methodRule struct {
	scope   Scope
	roles   roleSet
	refusal string
}

type rightRule struct {
	name       Right
	roles      roleSet
	beside     roleSet
	inBindings bool
	refusal    string
}

// binding gives roles to principals and groups.
type binding struct {
	roles   roleSet
	rights  rightSet // those of the roles as well
	tenants []string // nil for the caller's own
	graphs  []graphPattern
	// anyTenant stands for all tenants of the caller.
	anyTenant bool
	condition *condition
	rule      string // of a request that it allows
	unmetRule string // of a request that its condition refuses
}

// NewPolicy makes a policy without bindings: callers have the roles of their
// credentials.
func NewPolicy() *Policy {
	p := &Policy{
		methods:     map[string]methodRule{},
		byPrincipal: map[string][]*binding{},
		byGroup:     map[string][]*binding{},
	}
	for _, row := range Methods() {
		p.methods[row.Method] = methodRule{scope: row.Scope, roles: makeRoleSet(row.Roles), refusal: "role: " + joinRoles(row.Roles)}
	}
	for _, row := range Rights() {
		p.rights = append(p.rights, rightRule{
			name: row.Right, roles: makeRoleSet(row.Roles), beside: makeRoleSet(row.Beside), inBindings: row.InBindings,
			refusal: "right: " + string(row.Right),
		})
	}
	for _, name := range threadReaders() {
		p.seesThreads |= p.methods[name].roles
	}
	for _, name := range graphReaders() {
		p.seesGraphs |= p.methods[name].roles
	}
	return p
}

func joinRoles(roles []Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// BindingCount returns the number of bindings.
func (p *Policy) BindingCount() int { return p.bindingCount }

// rightsOf returns the rights that roles have.
func (p *Policy) rightsOf(roles roleSet) rightSet {
	var set rightSet
	for i, r := range p.rights {
		if r.roles&roles != 0 {
			set |= 1 << i
		}
	}
	return set
}

// search collects what the bindings of a caller give to a request.
type search struct {
	extent  Extent
	many    bool     // bindings for some graphs count though the graph is not known
	tenant  string   // the chosen one
	roles   roleSet  // any of these gives the method
	sight   roleSet  // any of these sees the object
	lacking rightSet // rights that no binding has given yet
	given   bool
	seen    bool
	rule    string   // of what gave the method
	unmet   *binding // the first one whose condition has refused what is asked for
}

func (s *search) isDone() bool { return s.given && s.seen && s.lacking == 0 }

// addGrant adds what a source of roles and rights gives.
func (s *search) addGrant(roles roleSet, rights rightSet, rule string) {
	if !s.given && roles&s.roles != 0 {
		s.given, s.rule = true, rule
	}
	s.seen = s.seen || roles&s.sight != 0
	s.lacking &^= rights
}

// Decide tells whether a caller may do what it wants. The same request has the same
// answer for ever. A further binding in the policy never turns an allowed request
// into a refused one.
func (p *Policy) Decide(r Request) Decision {
	m, ok := p.methods[r.Method]
	switch {
	case r.Caller.Name == "":
		return Decision{Rule: ruleCaller}
	case r.Tenant != "" && !r.Caller.hasTenant(r.Tenant):
		return Decision{Rule: ruleTenant}
	case !ok || m.scope == ScopeEndpoint:
		return Decision{Rule: ruleMethod}
	}
	var lacking rightSet
	for _, name := range r.Rights {
		lacking |= p.rightBit(name)
	}
	if m.scope.IsForAllCallers() && lacking == 0 {
		return Decision{Allowed: true, Rule: ruleAnyCaller, CanSee: true}
	}
	s := search{
		extent: r.Extent, many: m.scope != ScopeGraph && r.Extent == WholeCall, tenant: cmp.Or(r.Tenant, r.Caller.Tenant), roles: m.roles, sight: p.seesGraphs, lacking: lacking,
	}
	if s.tenant == "" {
		return Decision{Rule: ruleTenant}
	}
	switch {
	case r.Thread != "":
		s.sight = p.seesThreads
	case r.Graph == "" && r.Extent == WholeCall:
		s.seen = true // the tenant, which is the caller's
	}
	p.collectGrants(&s, &r)
	return p.makeDecision(&s, m)
}

// collectGrants looks at the roles and bindings of the caller until nothing is lacking.
func (p *Policy) collectGrants(s *search, r *Request) {
	if s.tenant == r.Caller.Tenant {
		for _, name := range r.Caller.Roles {
			bit := roleBit(name)
			s.addGrant(bit, p.rightsOf(bit), ruleOwnRole)
		}
	}
	for _, b := range p.byPrincipal[r.Caller.Name] {
		if s.isDone() {
			return
		}
		s.takeBinding(b, r)
	}
	for _, g := range r.Caller.Groups {
		for _, b := range p.byGroup[g] {
			if s.isDone() {
				return
			}
			s.takeBinding(b, r)
		}
	}
}

// takeBinding adds what a binding gives. It evaluates the condition only of a
// binding that gives what is lacking.
func (s *search) takeBinding(b *binding, r *Request) {
	helps := !s.given && b.roles&s.roles != 0 || s.lacking&b.rights != 0
	if !helps && (s.seen || b.roles&s.sight == 0) {
		return
	}
	if !b.coversTenant(s.tenant, r.Caller.Tenant) || !b.coversGraph(r.Graph, s.many) {
		return
	}
	if s.extent == EveryGraph && !b.isIndependentOf(r) {
		return
	}
	if b.condition != nil && !b.condition.isTrueFor(*r, s.tenant) {
		if helps && s.unmet == nil {
			s.unmet = b
		}
		return
	}
	s.addGrant(b.roles, b.rights, b.rule)
}

func (p *Policy) makeDecision(s *search, m methodRule) Decision {
	given := s.given || m.scope.IsForAllCallers()
	switch {
	case given && s.lacking == 0:
		return Decision{Allowed: true, Rule: cmp.Or(s.rule, ruleAnyCaller), CanSee: true}
	case s.unmet != nil:
		return Decision{Rule: s.unmet.unmetRule, CanSee: s.seen}
	case !given:
		return Decision{Rule: m.refusal, CanSee: s.seen}
	}
	for i, right := range p.rights {
		if s.lacking&(1<<i) != 0 {
			return Decision{Rule: right.refusal, CanSee: s.seen}
		}
	}
	return Decision{Rule: ruleUnknownRight, CanSee: s.seen}
}

func (b *binding) coversTenant(chosen, own string) bool {
	if b.anyTenant {
		return true
	}
	if b.tenants == nil {
		return chosen == own
	}
	return slices.Contains(b.tenants, chosen)
}

func (b *binding) coversGraph(name string, many bool) bool {
	if b.graphs == nil {
		return true
	}
	if name == "" {
		return many
	}
	for i := range b.graphs {
		if b.graphs[i].matchesGraph(name) {
			return true
		}
	}
	return false
}

// isIndependentOf reports whether the condition does not depend on what a request for
// EveryGraph leaves open.
func (b *binding) isIndependentOf(r *Request) bool {
	return b.condition == nil || (r.Graph != "" || !b.condition.namesGraph) && (r.Thread != "" || !b.condition.namesThread)
}

// graphPattern is a name of a graph, or a pattern of path.Match.
type graphPattern struct {
	text    string
	isExact bool
}

func (p *graphPattern) matchesGraph(name string) bool {
	if p.isExact {
		return p.text == name
	}
	ok, err := path.Match(p.text, name)
	return ok && err == nil
}
