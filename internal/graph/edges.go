package graph

import (
	"cmp"
	"slices"
	"strconv"
)

// edges compiles plain edges and joins.
func (b *builder) edges() {
	b.incoming = make(map[*Node]bool)
	for i := range b.spec.Edges {
		e := &b.spec.Edges[i]
		path := index("edges", i)
		switch len(e.From) {
		case 0:
			b.add(path, ReasonInvalidEdge, "the edge has no source")
		case 1:
			b.edge(path, e.From[0], e.To)
		default:
			b.join(path, e.From, e.To)
		}
	}
	for _, n := range b.g.Nodes {
		slices.SortFunc(n.Triggers, func(x, y int) int {
			return cmp.Compare(b.g.Channels[x].Name, b.g.Channels[y].Name)
		})
	}
}

func (b *builder) edge(path, from, to string) {
	source, okFrom := b.source(path, from)
	target, okTo := b.target(path, to)
	if !okFrom || !okTo {
		return
	}
	if source.Spec == nil {
		b.entry = true
	}
	if target == nil {
		return // END: the branch of the run just stops
	}
	b.incoming[target] = true
	if !slices.Contains(source.Edges, target.Channel) {
		source.Edges = append(source.Edges, target.Channel)
	}
}

func (b *builder) join(path string, from []string, to string) {
	target, ok := b.target(path, to)
	sources := make([]*Node, 0, len(from))
	seen := make(map[string]bool, len(from))
	for _, name := range from {
		if seen[name] {
			b.add(path, ReasonInvalidEdge, "node %q appears twice in the join", name)
			ok = false
			continue
		}
		seen[name] = true
		if name == Start {
			b.add(path, ReasonInvalidEdge, "START cannot be part of a join; it has finished before any node runs")
			ok = false
			continue
		}
		source, known := b.source(path, name)
		ok = ok && known
		sources = append(sources, source)
	}
	if !ok || target == nil {
		return
	}
	b.incoming[target] = true
	at, added := b.barrier(from, target)
	if !added {
		return
	}
	target.Triggers = append(target.Triggers, at)
	for _, source := range sources {
		source.Joins = append(source.Joins, at)
	}
}

// source resolves the beginning of an edge.
func (b *builder) source(path, name string) (*Node, bool) {
	if name == End {
		b.add(path, ReasonInvalidEdge, "END cannot be the source of an edge")
		return nil, false
	}
	n, ok := b.g.nodes[name]
	if !ok {
		b.unknown(path, ReasonUnknownNode, "node", name, b.namesAnd("START"))
	}
	return n, ok
}

// target resolves the end of an edge; END is no node.
func (b *builder) target(path, name string) (*Node, bool) {
	switch name {
	case End:
		return nil, true
	case Start:
		b.add(path, ReasonInvalidEdge, "START cannot be the target of an edge")
		return nil, false
	}
	n, ok := b.g.nodes[name]
	if !ok {
		b.unknown(path, ReasonUnknownNode, "node", name, b.namesAnd("END"))
	}
	return n, ok
}

// branches compiles conditional edges.
func (b *builder) branches() {
	b.named = make(map[[2]string]bool, len(b.spec.Branches))
	for i := range b.spec.Branches {
		b.branch(index("conditional_edges", i), &b.spec.Branches[i])
	}
}

func (b *builder) branch(path string, spec *BranchSpec) {
	source, ok := b.source(path+".from", spec.From)
	if ok && source.Spec == nil {
		b.entry = true
	}
	b.branchKind(path, spec)
	compiled := Branch{Name: spec.Name, Router: spec.Router, InWorker: spec.InWorker, Paths: spec.Paths}
	for i := range spec.Cases {
		compiled.Cases = append(compiled.Cases, b.branchCase(index(path+".cases", i), &spec.Cases[i]))
	}
	compiled.Expr = b.program(path+".expr", spec.Expr)
	if spec.Router != "" && !spec.InWorker && b.env.HasFunction != nil && !b.env.HasFunction(spec.Router) {
		b.add(path+".router", ReasonUnknownFunction, "no function %q is registered", spec.Router)
	}
	for _, key := range sortedKeys(spec.Paths) {
		b.mark(b.target(path+".paths."+key, spec.Paths[key]))
	}
	for i, name := range spec.Then {
		b.mark(b.target(index(path+".then", i), name))
	}
	if !ok {
		return
	}
	if compiled.Name == "" {
		compiled.Name = strconv.Itoa(len(source.Branches))
	}
	if at := [2]string{spec.From, compiled.Name}; b.named[at] {
		b.add(path+".name", ReasonDuplicateName, "%q has two conditional edges named %q", spec.From, compiled.Name)
	}
	b.named[[2]string{spec.From, compiled.Name}] = true
	source.Branches = append(source.Branches, compiled)
}

func (b *builder) branchKind(path string, spec *BranchSpec) {
	if spec.InWorker && spec.Router == "" {
		b.add(path, ReasonMissing, "the conditional edge names no function of the worker")
	}
	kinds := 0
	for _, set := range []bool{len(spec.Cases) > 0, spec.Expr != "", spec.Router != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		b.add(path, ReasonMissing, "the conditional edge needs one of cases, expr, router")
	case kinds > 1:
		b.add(path, ReasonConflict, "the conditional edge has several of cases, expr, router; keep one")
	case len(spec.Cases) > 0 && len(spec.Paths)+len(spec.Then) > 0:
		b.add(path, ReasonConflict, "paths and then go with expr or router; cases name their targets themselves")
	case len(spec.Paths) > 0 && len(spec.Then) > 0:
		b.add(path, ReasonConflict, "then repeats what paths says; keep one")
	}
}

func (b *builder) branchCase(path string, spec *CaseSpec) Case {
	if len(spec.To) == 0 {
		b.add(path+".to", ReasonMissing, "the case leads nowhere; name a node or END")
	}
	for _, name := range spec.To {
		b.mark(b.target(path+".to", name))
	}
	return Case{When: b.condition(path+".when", spec.When), To: spec.To}
}

func (b *builder) mark(target *Node, ok bool) {
	if ok && target != nil {
		b.incoming[target] = true
	}
}
