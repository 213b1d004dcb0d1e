package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Costs in steps. A step is some 50 ns.
const (
	visitSteps  = 8  // apply a subschema to a value
	numberSteps = 16 // compare two numbers exactly
)

// costPlan is a schema as a graph of its subschemas, with their costs. Subschemas
// that apply to the same value come after the subschema that leads to them.
type costPlan struct {
	root  int
	nodes []planNode
	// maxStepsPerByte bounds the steps for each byte of any value; it is unbounded
	// when the schema refers back to itself.
	maxStepsPerByte uint64
	patternSizes    int // instructions of all regular expressions
}

const unbounded = math.MaxUint64

// planNode is a subschema. Others are positions in the plan, -1 = none.
type planNode struct {
	isBoolean   bool     // true or false: it has no subschemas
	types       []string // nil = any
	steps       int      // by itself, for any value
	textSteps   int      // for each byte of a text
	nameSteps   int      // for each byte of the names of an object
	scalarSteps int      // comparing with a constant: a text, true, false or null
	otherSteps  int      // comparing with a constant: anything else
	isUnique    bool

	inPlace       []int // apply to the same value
	properties    map[string]int
	everyProperty []int // apply to each property
	otherProperty int   // applies to properties that are not in properties
	propertyName  int   // applies to the name of each property
	prefixItems   []int
	everyItem     []int // apply to each item
	otherItem     int   // applies to the items after prefix
}

// planBuilder builds a costPlan.
type planBuilder struct {
	positions map[*jsonschema.Schema]int
	schemas   []*jsonschema.Schema
	nodes     []planNode
}

// newCostPlan makes the plan of a schema. It returns an error if the cost for a
// single value has no bound.
func newCostPlan(root *jsonschema.Schema, limits Limits) (*costPlan, error) {
	p := planBuilder{positions: make(map[*jsonschema.Schema]int)}
	p.addSchema(root)
	for len(p.nodes) < len(p.schemas) { // a node adds the subschemas that it leads to
		n, err := p.buildNode(p.schemas[len(p.nodes)])
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	order, err := p.orderNodes()
	if err != nil {
		return nil, err
	}
	made := &costPlan{root: slices.Index(order, 0), nodes: p.reorderNodes(order)}
	made.maxStepsPerByte = made.maxStepsFrom(made.root, make([]uint64, len(made.nodes)))
	for _, s := range p.schemas {
		made.patternSizes += patternSize(s.Pattern)
		for re := range s.PatternProperties {
			made.patternSizes += patternSize(re)
		}
	}
	if made.exceedsPerValue(uint64(limits.Steps)) {
		return nil, &LimitError{Limit: limitSteps, Max: limits.Steps, Problem: "the alternatives of the schema multiply: " +
			"checking a single value could take more steps than are allowed"}
	}
	return made, nil
}

// addSchema returns the position of a subschema, -1 for none.
func (p *planBuilder) addSchema(s *jsonschema.Schema) int {
	if s == nil {
		return -1
	}
	if i, ok := p.positions[s]; ok {
		return i
	}
	p.positions[s] = len(p.schemas)
	p.schemas = append(p.schemas, s)
	return len(p.schemas) - 1
}

func (p *planBuilder) addSchemas(list ...*jsonschema.Schema) []int {
	var out []int
	for _, s := range list {
		if s != nil {
			out = append(out, p.addSchema(s))
		}
	}
	return out
}

func (p *planBuilder) buildNode(s *jsonschema.Schema) (planNode, error) {
	n := planNode{steps: visitSteps, otherProperty: -1, propertyName: -1, otherItem: -1}
	if s.Bool != nil {
		n.isBoolean = true
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
	n.inPlace = p.addSchemas(s.Ref, s.RecursiveRef)
	if s.DraftVersion < 2019 && s.Ref != nil {
		return n, nil
	}
	if s.DynamicRef != nil {
		n.inPlace = append(n.inPlace, p.addSchema(s.DynamicRef.Ref))
	}
	addConstants(s, &n)
	p.addInPlace(s, &n)
	p.addObjectParts(s, &n)
	p.addArrayParts(s, &n)
	return n, nil
}

func addConstants(s *jsonschema.Schema, n *planNode) {
	if s.Enum != nil {
		n.scalarSteps += len(s.Enum.Values) / 4
		n.otherSteps += countValues(s.Enum.Values)
	}
	if s.Const != nil {
		n.otherSteps += countValues(*s.Const)
	}
	n.textSteps = patternSize(s.Pattern)
	if s.Format != nil {
		n.textSteps += 4
	}
	n.steps += len(s.Required)
	for _, names := range s.DependentRequired {
		n.steps += len(names)
	}
	n.isUnique = s.UniqueItems
}

func (p *planBuilder) addInPlace(s *jsonschema.Schema, n *planNode) {
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not, s.If, s.Then, s.Else}} {
		n.inPlace = append(n.inPlace, p.addSchemas(list...)...)
	}
	for _, sub := range s.DependentSchemas {
		n.inPlace = append(n.inPlace, p.addSchema(sub))
	}
	for _, dependency := range s.Dependencies {
		switch d := dependency.(type) {
		case *jsonschema.Schema:
			n.inPlace = append(n.inPlace, p.addSchema(d))
		case []string:
			n.steps += len(d)
		}
	}
}

func (p *planBuilder) addObjectParts(s *jsonschema.Schema, n *planNode) {
	n.properties = make(map[string]int, len(s.Properties))
	for name, sub := range s.Properties {
		n.properties[name] = p.addSchema(sub)
	}
	for re, sub := range s.PatternProperties {
		n.everyProperty = append(n.everyProperty, p.addSchema(sub))
		n.nameSteps += patternSize(re)
	}
	n.everyProperty = append(n.everyProperty, p.addSchemas(s.UnevaluatedProperties)...)
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		n.otherProperty = p.addSchema(sub)
	}
	n.propertyName = p.addSchema(s.PropertyNames)
}

func (p *planBuilder) addArrayParts(s *jsonschema.Schema, n *planNode) {
	n.prefixItems = p.addSchemas(s.PrefixItems...)
	n.everyItem = p.addSchemas(s.Contains, s.UnevaluatedItems)
	n.otherItem = p.addSchema(s.Items2020)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.everyItem = append(n.everyItem, p.addSchema(items))
	case []*jsonschema.Schema:
		n.prefixItems = p.addSchemas(items...)
	}
	if sub, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		n.otherItem = p.addSchema(sub)
	}
}

// orderNodes lists the subschemas so that each comes before those that it applies
// to the same value.
func (p *planBuilder) orderNodes() ([]int, error) {
	depth := make([]int, len(p.nodes)) // of the subschemas below, 0 = not visited, -1 = being visited
	order := make([]int, 0, len(p.nodes))
	var visit func(i int) error
	visit = func(i int) error {
		if depth[i] < 0 {
			return fmt.Errorf("%s leads back to itself without going into the value, so no check would end", p.schemas[i].Location)
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
			return &LimitError{Max: maxInPlace, Got: depth[i], Problem: "too many subschemas in a row look at the same value"}
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

// reorderNodes returns the nodes in a given order, with their references adjusted.
func (p *planBuilder) reorderNodes(order []int) []planNode {
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
	out := make([]planNode, len(order))
	for i, old := range order {
		n := p.nodes[old]
		one := []int{n.otherProperty, n.propertyName, n.otherItem}
		for _, list := range [][]int{n.inPlace, n.everyProperty, n.prefixItems, n.everyItem, one} {
			move(list)
		}
		n.otherProperty, n.propertyName, n.otherItem = one[0], one[1], one[2]
		for name, at := range n.properties {
			n.properties[name] = to[at]
		}
		out[i] = n
	}
	return out
}

// listSuccessors lists every subschema that a node leads to, each as often as it
// occurs.
func (n *planNode) listSuccessors() []int {
	out := slices.Concat(n.inPlace, n.everyProperty, n.prefixItems, n.everyItem)
	out = slices.AppendSeq(out, maps.Values(n.properties))
	for _, i := range []int{n.otherProperty, n.propertyName, n.otherItem} {
		if i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// exceedsPerValue reports whether more nodes than a limit can apply to one value.
func (p *costPlan) exceedsPerValue(limit uint64) bool {
	sums := make([]uint64, len(p.nodes))
	for i := len(p.nodes) - 1; i >= 0; i-- {
		sums[i] = uint64(p.nodes[i].steps)
		for _, next := range p.nodes[i].inPlace {
			sums[i] = saturatingAdd(sums[i], sums[next])
		}
		if sums[i] > limit {
			return true
		}
	}
	return false
}

func saturatingAdd(a, b uint64) uint64 {
	if a > unbounded-b {
		return unbounded
	}
	return a + b
}
