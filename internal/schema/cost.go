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

// weigh is the most steps that each byte of a value can cost from a node on.
// known keeps what was weighed; 1 marks what is being weighed.
func (p *plan) weigh(at int, known []uint64) uint64 {
	if known[at] == 1 {
		return unbounded
	}
	if known[at] > 0 {
		return known[at]
	}
	known[at] = 1
	n := &p.nodes[at]
	sum := uint64(n.steps + n.text + n.names + n.others + n.scalars + numberSteps)
	if n.unique {
		sum = unbounded // grows with the square
	}
	for _, next := range n.below() {
		sum = saturate(sum, p.weigh(next, known))
	}
	known[at] = sum
	return sum
}

// cost is the most steps that a check can take. It does not look at the value
// when its size in bytes alone says that the check is cheap: that bound is often
// a thousand times what the check takes.
func (p *plan) cost(value any, size, limit int) int {
	if p.worst <= uint64(min(limit, dearSteps)/(size+1)) {
		return int(p.worst) * (size + 1)
	}
	return p.steps(value, limit)
}

// steps counts what a check can cost at most: as if every alternative were
// tried and every regular expression matched. It stops beyond the limit, so
// that counting is never dearer than what is allowed.
func (p *plan) steps(value any, limit int) int {
	c := counter{plan: p, left: limit}
	c.frame(0).add(p.root, 1)
	c.visit(value, 0)
	return limit - c.left
}

// counter walks through a value, and knows how often each subschema looks at
// each place.
type counter struct {
	plan   *plan
	left   int
	frames []*frame // by depth of the value
}

// frame is what looks at one value: how often by which node.
type frame struct {
	times   []int
	set     []uint64 // bits of the nodes whose times is not 0
	descend []looks  // those that look at what is in the value
}

type looks struct{ node, times int }

func (c *counter) frame(depth int) *frame {
	if depth == len(c.frames) {
		n := len(c.plan.nodes)
		c.left -= n
		c.frames = append(c.frames, &frame{times: make([]int, n), set: make([]uint64, n/64+1)})
	}
	return c.frames[depth]
}

func (f *frame) add(node, times int) {
	if node < 0 {
		return
	}
	f.times[node] = min(f.times[node]+times, maxTimes)
	f.set[node/64] |= 1 << (node % 64)
}

// take removes the first node that is left.
func (f *frame) take() (looks, bool) {
	for w, word := range f.set {
		if word == 0 {
			continue
		}
		i := w*64 + bits.TrailingZeros64(word)
		l := looks{i, f.times[i]}
		f.set[w] &^= 1 << (i % 64)
		f.times[i] = 0
		return l, true
	}
	return looks{}, false
}

// maxTimes is beyond any limit and far from overflow.
const maxTimes = 1 << 31

func (c *counter) spend(times, steps int) {
	if steps > 0 && times > maxTimes/steps {
		c.left = -1
		return
	}
	c.left -= times * steps
}

// visit spends what the nodes in the frame of a depth cost for a value.
func (c *counter) visit(value any, depth int) {
	f := c.frame(depth)
	f.descend = f.descend[:0]
	kind := kindOf(value)
	for l, ok := f.take(); ok && c.left >= 0; l, ok = f.take() {
		c.look(f, l, value, kind)
		c.left -= len(f.set) / 8 // the search for the next one
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			c.property(f, name, item, depth+1)
		}
	case []any:
		for i, item := range v {
			c.item(f, i, item, depth+1)
		}
	}
}

// look spends what one node costs, and adds those that look at the same value.
func (c *counter) look(f *frame, l looks, value any, kind string) {
	n := &c.plan.nodes[l.node]
	if n.fixed || n.types != nil && !slices.Contains(n.types, kind) && (kind != "number" || !slices.Contains(n.types, "integer")) {
		c.spend(l.times, visitSteps)
		return
	}
	c.spend(l.times, n.own(value)+len(c.frames)/16)
	for _, next := range n.inPlace {
		f.add(next, l.times)
	}
	switch value.(type) {
	case map[string]any, []any:
		f.descend = append(f.descend, l)
	}
}

func (c *counter) property(f *frame, name string, item any, depth int) {
	if c.left < 0 || len(f.descend) == 0 {
		return
	}
	values, names := c.frame(depth), false
	for _, l := range f.descend {
		n := &c.plan.nodes[l.node]
		c.spend(1, 1+len(n.always))
		if at, ok := n.properties[name]; ok {
			values.add(at, l.times)
		} else {
			values.add(n.unnamed, l.times)
		}
		for _, at := range n.always {
			values.add(at, l.times)
		}
		names = names || n.nameOf >= 0
	}
	c.visit(item, depth)
	if !names || c.left < 0 {
		return
	}
	for _, l := range f.descend {
		values.add(c.plan.nodes[l.node].nameOf, l.times)
	}
	c.visit(name, depth)
}

func (c *counter) item(f *frame, i int, item any, depth int) {
	if c.left < 0 || len(f.descend) == 0 {
		return
	}
	values := c.frame(depth)
	for _, l := range f.descend {
		n := &c.plan.nodes[l.node]
		c.spend(1, 1+len(n.items))
		if i < len(n.prefix) {
			values.add(n.prefix[i], l.times)
		} else {
			values.add(n.rest, l.times)
		}
		for _, at := range n.items {
			values.add(at, l.times)
		}
	}
	c.visit(item, depth)
}

// own is what one look of a node at a value costs by itself.
func (n *node) own(value any) int {
	switch v := value.(type) {
	case map[string]any:
		steps := n.steps + n.others + len(v)
		if n.names > 0 {
			for name := range v {
				steps += 1 + (len(name)+1)*n.names/2
			}
		}
		return steps
	case []any:
		return n.steps + n.others + len(v) + n.uniqueSteps(v)
	case string:
		return n.steps + n.scalars + len(v)/64 + (len(v)+1)*n.text/2
	case json.Number:
		return n.steps + n.others + numberSteps + len(v)/8
	}
	return n.steps + n.scalars
}

// uniqueSteps is the cost of finding equal items. Hashes of texts and numbers
// can't be made to collide, those of lists and objects can.
func (n *node) uniqueSteps(list []any) int {
	if !n.unique {
		return 0
	}
	steps, nested := 0, 0
	for _, item := range list {
		steps += numberSteps
		if !isScalar(item) {
			nested++
			steps += size(item)
		}
	}
	return steps + nested*nested/4
}

// kindOf names a type as schemas do.
func kindOf(value any) string {
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
