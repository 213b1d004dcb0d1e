package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What things cost in steps. A step is some 50 ns.
const (
	visitSteps  = 8  // look at a value with one subschema
	numberSteps = 16 // compare two numbers exactly
)

// plan is a schema as a graph of its subschemas: what is needed to say what a
// check can cost. Subschemas that look at the same value come after the one
// that leads to them.
type plan struct {
	root  int
	nodes []node
	// worst is the most steps that each byte of any value can cost; no
	// bound when the schema leads back to itself.
	worst uint64
	size  int // instructions of all regular expressions
}

const unbounded = math.MaxUint64

// node is one subschema. Others are positions in the plan, -1 = none.
type node struct {
	fixed   bool     // true or false: nothing else is looked at
	types   []string // nil = any
	steps   int      // by itself, for any value
	text    int      // for each byte of a text
	names   int      // for each byte of the names of an object
	scalars int      // comparing with a constant: a text, true, false or null
	others  int      // comparing with a constant: anything else
	unique  bool

	inPlace    []int // look at the same value
	properties map[string]int
	always     []int // look at each property
	unnamed    int   // looks at properties that are not in properties
	nameOf     int   // looks at the name of each property
	prefix     []int
	items      []int // look at each item
	rest       int   // looks at the items after prefix
}

// planner makes a plan.
type planner struct {
	at    map[*jsonschema.Schema]int
	all   []*jsonschema.Schema
	nodes []node
}

// newPlan refuses a schema whose cost has no bound for a single value.
func newPlan(root *jsonschema.Schema, limits Limits) (*plan, error) {
	p := planner{at: make(map[*jsonschema.Schema]int)}
	p.add(root)
	for len(p.nodes) < len(p.all) { // a node adds those that it leads to
		n, err := p.node(p.all[len(p.nodes)])
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	order, err := p.order()
	if err != nil {
		return nil, err
	}
	made := &plan{root: slices.Index(order, 0), nodes: p.sorted(order)}
	made.worst = made.weigh(made.root, make([]uint64, len(made.nodes)))
	for _, s := range p.all {
		made.size += patternSize(s.Pattern)
		for re := range s.PatternProperties {
			made.size += patternSize(re)
		}
	}
	if made.multiplies(uint64(limits.Steps)) {
		return nil, &LimitError{Limit: limitSteps, Max: limits.Steps, What: "the alternatives of the schema multiply: " +
			"checking a single value could take more steps than are allowed"}
	}
	return made, nil
}

// add returns the position of a subschema, -1 for none.
func (p *planner) add(s *jsonschema.Schema) int {
	if s == nil {
		return -1
	}
	if i, ok := p.at[s]; ok {
		return i
	}
	p.at[s] = len(p.all)
	p.all = append(p.all, s)
	return len(p.all) - 1
}

func (p *planner) addAll(list ...*jsonschema.Schema) []int {
	var out []int
	for _, s := range list {
		if s != nil {
			out = append(out, p.add(s))
		}
	}
	return out
}

func (p *planner) node(s *jsonschema.Schema) (node, error) {
	n := node{steps: visitSteps, unnamed: -1, nameOf: -1, rest: -1}
	if s.Bool != nil {
		n.fixed = true
		return n, nil
	}
	if s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor || s.DynamicRef != nil && s.DynamicRef.Anchor != "" &&
		s.DynamicRef.Ref.DynamicAnchor == s.DynamicRef.Anchor {
		return n, fmt.Errorf("%s: a reference that depends on who refers ($dynamicRef, $recursiveRef) is not allowed; use $ref",
			s.Location)
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		n.types = s.Types.ToStrings()
	}
	n.inPlace = p.addAll(s.Ref, s.RecursiveRef)
	if s.DraftVersion < 2019 && s.Ref != nil {
		return n, nil
	}
	if s.DynamicRef != nil {
		n.inPlace = append(n.inPlace, p.add(s.DynamicRef.Ref))
	}
	constants(s, &n)
	p.applied(s, &n)
	p.object(s, &n)
	p.array(s, &n)
	return n, nil
}

func constants(s *jsonschema.Schema, n *node) {
	if s.Enum != nil {
		n.scalars += len(s.Enum.Values) / 4
		n.others += size(s.Enum.Values)
	}
	if s.Const != nil {
		n.others += size(*s.Const)
	}
	n.text = patternSize(s.Pattern)
	if s.Format != nil {
		n.text += 4
	}
	n.steps += len(s.Required)
	for _, names := range s.DependentRequired {
		n.steps += len(names)
	}
	n.unique = s.UniqueItems
}

func (p *planner) applied(s *jsonschema.Schema, n *node) {
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not, s.If, s.Then, s.Else}} {
		n.inPlace = append(n.inPlace, p.addAll(list...)...)
	}
	for _, sub := range s.DependentSchemas {
		n.inPlace = append(n.inPlace, p.add(sub))
	}
	for _, dependency := range s.Dependencies {
		switch d := dependency.(type) {
		case *jsonschema.Schema:
			n.inPlace = append(n.inPlace, p.add(d))
		case []string:
			n.steps += len(d)
		}
	}
}

func (p *planner) object(s *jsonschema.Schema, n *node) {
	n.properties = make(map[string]int, len(s.Properties))
	for name, sub := range s.Properties {
		n.properties[name] = p.add(sub)
	}
	for re, sub := range s.PatternProperties {
		n.always = append(n.always, p.add(sub))
		n.names += patternSize(re)
	}
	n.always = append(n.always, p.addAll(s.UnevaluatedProperties)...)
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		n.unnamed = p.add(sub)
	}
	n.nameOf = p.add(s.PropertyNames)
}

func (p *planner) array(s *jsonschema.Schema, n *node) {
	n.prefix = p.addAll(s.PrefixItems...)
	n.items = p.addAll(s.Contains, s.UnevaluatedItems)
	n.rest = p.add(s.Items2020)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.items = append(n.items, p.add(items))
	case []*jsonschema.Schema:
		n.prefix = p.addAll(items...)
	}
	if sub, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		n.rest = p.add(sub)
	}
}

// order lists the subschemas so that one comes before those that it applies
// to the same value.
func (p *planner) order() ([]int, error) {
	depth := make([]int, len(p.nodes)) // of what follows, 0 = not seen, -1 = being looked at
	order := make([]int, 0, len(p.nodes))
	var visit func(i int) error
	visit = func(i int) error {
		if depth[i] < 0 {
			return fmt.Errorf("%s leads back to itself without going into the value, so no check would end", p.all[i].Location)
		}
		if depth[i] > 0 {
			return nil
		}
		depth[i] = -1
		deepest := 0
		for _, next := range p.nodes[i].inPlace {
			if err := visit(next); err != nil {
				return err
			}
			deepest = max(deepest, depth[next])
		}
		if depth[i] = deepest + 1; depth[i] > maxInPlace {
			return &LimitError{Max: maxInPlace, Got: depth[i], What: "too many subschemas in a row look at the same value"}
		}
		order = append(order, i)
		return nil
	}
	for i := range p.nodes {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	slices.Reverse(order)
	return order, nil
}

// sorted puts the nodes into an order.
func (p *planner) sorted(order []int) []node {
	to := make([]int, len(order))
	for i, old := range order {
		to[old] = i
	}
	move := func(list []int) {
		for i := range list {
			if list[i] >= 0 {
				list[i] = to[list[i]]
			}
		}
	}
	out := make([]node, len(order))
	for i, old := range order {
		n := p.nodes[old]
		one := []int{n.unnamed, n.nameOf, n.rest}
		for _, list := range [][]int{n.inPlace, n.always, n.prefix, n.items, one} {
			move(list)
		}
		n.unnamed, n.nameOf, n.rest = one[0], one[1], one[2]
		for name, at := range n.properties {
			n.properties[name] = to[at]
		}
		out[i] = n
	}
	return out
}

// below lists every subschema that a node leads to, as often as it does.
func (n *node) below() []int {
	out := slices.Concat(n.inPlace, n.always, n.prefix, n.items)
	out = slices.AppendSeq(out, maps.Values(n.properties))
	for _, i := range []int{n.unnamed, n.nameOf, n.rest} {
		if i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// multiplies reports whether the nodes that look at one value can be more than
// a limit.
func (p *plan) multiplies(limit uint64) bool {
	sums := make([]uint64, len(p.nodes))
	for i := len(p.nodes) - 1; i >= 0; i-- {
		sums[i] = uint64(p.nodes[i].steps)
		for _, next := range p.nodes[i].inPlace {
			sums[i] = saturate(sums[i], sums[next])
		}
		if sums[i] > limit {
			return true
		}
	}
	return false
}

func saturate(a, b uint64) uint64 {
	if a > unbounded-b {
		return unbounded
	}
	return a + b
}
