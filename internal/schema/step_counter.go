package schema

import (
	"encoding/json"
	"math/bits"
	"slices"
)

// The limits, as the options of the server that set them.
const (
	limitBytes   = "max-schema-bytes"
	limitObjects = "max-schema-objects"
	limitSteps   = "max-schema-steps"
)

// maxStepsFrom returns the most steps that each byte of a value can cost from a
// node on. known keeps computed results; 1 marks a node that is being computed.
func (p *costPlan) maxStepsFrom(at int, known []uint64) uint64 {
	if known[at] == 1 {
		return unbounded
	}
	if known[at] > 0 {
		return known[at]
	}
	known[at] = 1
	n := &p.nodes[at]
	sum := uint64(n.steps + n.textSteps + n.nameSteps + n.otherSteps + n.scalarSteps + numberSteps)
	if n.isUnique {
		sum = unbounded // grows with the square
	}
	for _, next := range n.listSuccessors() {
		sum = saturatingAdd(sum, p.maxStepsFrom(next, known))
	}
	known[at] = sum
	return sum
}

// boundSteps returns the most steps that a check can take. It does not look at the
// value when its size in bytes alone shows that the check is cheap. The bound is
// often a thousand times the real number of steps.
func (p *costPlan) boundSteps(value any, size, limit int) int {
	if p.maxStepsPerByte <= uint64(min(limit, expensiveSteps)/(size+1)) {
		return int(p.maxStepsPerByte) * (size + 1)
	}
	return p.countSteps(value, limit)
}

// countSteps counts the most steps that a check can take, as if every alternative
// were tried and every regular expression matched. It stops beyond the limit, so
// that counting never costs more than the limit.
func (p *costPlan) countSteps(value any, limit int) int {
	c := stepCounter{plan: p, remaining: limit}
	c.frameAt(0).addVisits(p.root, 1)
	c.visitValue(value, 0)
	return limit - c.remaining
}

// stepCounter walks through a value, and counts how often each subschema applies to
// each place.
type stepCounter struct {
	plan      *costPlan
	remaining int
	frames    []*valueFrame // by depth of the value
}

// valueFrame counts how often each node applies to one value.
type valueFrame struct {
	times      []int
	nodeBits   []uint64     // bits of the nodes whose times is not 0
	descending []nodeVisits // nodes that apply to parts of the value
}

type nodeVisits struct{ node, times int }

func (c *stepCounter) frameAt(depth int) *valueFrame {
	if depth == len(c.frames) {
		n := len(c.plan.nodes)
		c.remaining -= n
		c.frames = append(c.frames, &valueFrame{times: make([]int, n), nodeBits: make([]uint64, n/64+1)})
	}
	return c.frames[depth]
}

func (f *valueFrame) addVisits(node, times int) {
	if node < 0 {
		return
	}
	f.times[node] = int(min(int64(f.times[node])+int64(times), maxVisits))
	f.nodeBits[node/64] |= 1 << (node % 64)
}

// takeNext removes the first remaining node.
func (f *valueFrame) takeNext() (nodeVisits, bool) {
	for w, word := range f.nodeBits {
		if word == 0 {
			continue
		}
		i := w*64 + bits.TrailingZeros64(word)
		l := nodeVisits{i, f.times[i]}
		f.nodeBits[w] &^= 1 << (i % 64)
		f.times[i] = 0
		return l, true
	}
	return nodeVisits{}, false
}

// maxVisits is beyond any limit, which is 1 << 30 at most, and fits an int of 32 bits.
const maxVisits = 1<<30 + 1

func (c *stepCounter) spendSteps(times, steps int) {
	if steps > 0 && times > maxVisits/steps {
		c.remaining = -1
		return
	}
	c.remaining -= times * steps
}

// visitValue subtracts the cost of the nodes in the frame of a depth for a value.
func (c *stepCounter) visitValue(value any, depth int) {
	f := c.frameAt(depth)
	f.descending = f.descending[:0]
	kind := typeName(value)
	for l, ok := f.takeNext(); ok && c.remaining >= 0; l, ok = f.takeNext() {
		c.visitNode(f, l, value, kind)
		c.remaining -= len(f.nodeBits) / 8 // the search for the next node
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			c.visitProperty(f, name, item, depth+1)
		}
	case []any:
		for i, item := range v {
			c.visitItem(f, i, item, depth+1)
		}
	}
}

// visitNode subtracts the cost of a node, and adds those that apply to the same
// value.
func (c *stepCounter) visitNode(f *valueFrame, l nodeVisits, value any, kind string) {
	n := &c.plan.nodes[l.node]
	if n.isBoolean || n.types != nil && !slices.Contains(n.types, kind) && (kind != "number" || !slices.Contains(n.types, "integer")) {
		c.spendSteps(l.times, visitSteps)
		return
	}
	c.spendSteps(l.times, n.ownSteps(value)+len(c.frames)/16)
	for _, next := range n.inPlace {
		f.addVisits(next, l.times)
	}
	switch value.(type) {
	case map[string]any, []any:
		f.descending = append(f.descending, l)
	}
}

func (c *stepCounter) visitProperty(f *valueFrame, name string, item any, depth int) {
	if c.remaining < 0 || len(f.descending) == 0 {
		return
	}
	values, names := c.frameAt(depth), false
	for _, l := range f.descending {
		n := &c.plan.nodes[l.node]
		c.spendSteps(1, 1+len(n.everyProperty))
		if at, ok := n.properties[name]; ok {
			values.addVisits(at, l.times)
		} else {
			values.addVisits(n.otherProperty, l.times)
		}
		for _, at := range n.everyProperty {
			values.addVisits(at, l.times)
		}
		names = names || n.propertyName >= 0
	}
	c.visitValue(item, depth)
	if !names || c.remaining < 0 {
		return
	}
	for _, l := range f.descending {
		values.addVisits(c.plan.nodes[l.node].propertyName, l.times)
	}
	c.visitValue(name, depth)
}

func (c *stepCounter) visitItem(f *valueFrame, i int, item any, depth int) {
	if c.remaining < 0 || len(f.descending) == 0 {
		return
	}
	values := c.frameAt(depth)
	for _, l := range f.descending {
		n := &c.plan.nodes[l.node]
		c.spendSteps(1, 1+len(n.everyItem))
		if i < len(n.prefixItems) {
			values.addVisits(n.prefixItems[i], l.times)
		} else {
			values.addVisits(n.otherItem, l.times)
		}
		for _, at := range n.everyItem {
			values.addVisits(at, l.times)
		}
	}
	c.visitValue(item, depth)
}

// ownSteps returns the steps that one check of a value by a node costs.
func (n *planNode) ownSteps(value any) int {
	switch v := value.(type) {
	case map[string]any:
		steps := n.steps + n.otherSteps + len(v)
		if n.nameSteps > 0 {
			for name := range v {
				steps += 1 + (len(name)+1)*n.nameSteps/2
			}
		}
		return steps
	case []any:
		return n.steps + n.otherSteps + len(v) + n.uniqueSteps(v)
	case string:
		return n.steps + n.scalarSteps + len(v)/64 + (len(v)+1)*n.textSteps/2
	case json.Number:
		return n.steps + n.otherSteps + numberSteps + len(v)/8
	}
	return n.steps + n.scalarSteps
}

// uniqueSteps returns the cost of finding equal items. Hashes of texts and numbers
// can't be made to collide; those of lists and objects can.
func (n *planNode) uniqueSteps(list []any) int {
	if !n.isUnique {
		return 0
	}
	steps, nested := 0, 0
	for _, item := range list {
		steps += numberSteps
		if !isScalar(item) {
			nested++
			steps += countValues(item)
		}
	}
	return steps + nested*nested/4
}

// typeName returns the name of a type in schemas.
func typeName(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}
