package graph

import (
	"cmp"
	"slices"
	"strconv"
)

// edgeBuilder compiles edges, joins and conditional edges.
type edgeBuilder struct {
	expressionCompiler

	spec        *Spec
	hasFunction func(name string) bool // nil = not checked
	hasEntry    bool                   // something leads away from START
	branchNames map[[2]string]bool     // conditional edges, by source and name
}

// buildEdges compiles plain edges and joins.
func (b *edgeBuilder) buildEdges() {
	for i := range b.spec.Edges {
		e := &b.spec.Edges[i]
		path := indexPath("edges", i)
		switch len(e.From) {
		case 0:
			b.addProblem(path, ReasonInvalidEdge, "the edge has no source")
		case 1:
			b.buildEdge(path, e.From[0], e.To)
		default:
			b.buildJoin(path, e.From, e.To)
		}
	}
	for _, n := range b.graph.Nodes {
		slices.SortFunc(n.Triggers, func(x, y int) int {
			return cmp.Compare(b.graph.Channels[x].Name, b.graph.Channels[y].Name)
		})
	}
}

func (b *edgeBuilder) buildEdge(path, from, to string) {
	source, okFrom := b.resolveSource(path, from)
	target, okTo := b.resolveTarget(path, to)
	if !okFrom || !okTo {
		return
	}
	if source.Spec == nil {
		b.hasEntry = true
	}
	if target == nil {
		return // END: the branch of the run just stops
	}
	b.hasIncoming[target] = true
	if !slices.Contains(source.Edges, target.TriggerChannel) {
		source.Edges = append(source.Edges, target.TriggerChannel)
	}
}

// buildJoin adds an edge that waits for all of its sources.
func (b *edgeBuilder) buildJoin(path string, from []string, to string) {
	target, ok := b.resolveTarget(path, to)
	sources := make([]*Node, 0, len(from))
	seen := make(map[string]bool, len(from))
	for _, name := range from {
		if seen[name] {
			b.addProblem(path, ReasonInvalidEdge, "node %q appears twice in the join", name)
			ok = false
			continue
		}
		seen[name] = true
		if name == Start {
			b.addProblem(path, ReasonInvalidEdge, "START cannot be part of a join; it has finished before any node runs")
			ok = false
			continue
		}
		source, known := b.resolveSource(path, name)
		ok = ok && known
		sources = append(sources, source)
	}
	if !ok || target == nil {
		return
	}
	b.hasIncoming[target] = true
	at, added := b.graph.addBarrier(from, target)
	if !added {
		return
	}
	target.Triggers = append(target.Triggers, at)
	for _, source := range sources {
		source.Joins = append(source.Joins, at)
	}
}

// buildBranches compiles conditional edges.
func (b *edgeBuilder) buildBranches() {
	b.branchNames = make(map[[2]string]bool, len(b.spec.Branches))
	for i := range b.spec.Branches {
		b.buildBranch(indexPath("conditional_edges", i), &b.spec.Branches[i])
	}
}

func (b *edgeBuilder) buildBranch(path string, spec *BranchSpec) {
	source, ok := b.resolveSource(path+".from", spec.From)
	if ok && source.Spec == nil {
		b.hasEntry = true
	}
	b.checkBranchKind(path, spec)
	compiled := Branch{Name: spec.Name, Router: spec.Router, InWorker: spec.InWorker, Paths: spec.Paths}
	for i := range spec.Cases {
		compiled.Cases = append(compiled.Cases, b.buildCase(indexPath(path+".cases", i), &spec.Cases[i]))
	}
	compiled.Expr = b.compileExpression(path+".expr", spec.Expr)
	if spec.Router != "" && !spec.InWorker && b.hasFunction != nil && !b.hasFunction(spec.Router) {
		b.addProblem(path+".router", ReasonUnknownFunction, "no function %q is registered", spec.Router)
	}
	for _, key := range sortedKeys(spec.Paths) {
		b.markIncoming(b.resolveTarget(path+".paths."+key, spec.Paths[key]))
	}
	for i, name := range spec.Then {
		b.markIncoming(b.resolveTarget(indexPath(path+".then", i), name))
	}
	if !ok {
		return
	}
	if compiled.Name == "" {
		compiled.Name = strconv.Itoa(len(source.Branches))
	}
	if at := [2]string{spec.From, compiled.Name}; b.branchNames[at] {
		b.addProblem(path+".name", ReasonDuplicateName, "%q has two conditional edges named %q", spec.From, compiled.Name)
	}
	b.branchNames[[2]string{spec.From, compiled.Name}] = true
	source.Branches = append(source.Branches, compiled)
}

func (b *edgeBuilder) checkBranchKind(path string, spec *BranchSpec) {
	if spec.InWorker && spec.Router == "" {
		b.addProblem(path, ReasonMissing, "the conditional edge names no function of the worker")
	}
	kinds := 0
	for _, set := range []bool{len(spec.Cases) > 0, spec.Expr != "", spec.Router != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		b.addProblem(path, ReasonMissing, "the conditional edge needs one of cases, expr, router")
	case kinds > 1:
		b.addProblem(path, ReasonConflict, "the conditional edge has several of cases, expr, router; keep one")
	case len(spec.Cases) > 0 && len(spec.Paths)+len(spec.Then) > 0:
		b.addProblem(path, ReasonConflict, "paths and then go with expr or router; cases name their targets themselves")
	case len(spec.Paths) > 0 && len(spec.Then) > 0:
		b.addProblem(path, ReasonConflict, "then repeats what paths says; keep one")
	}
}

func (b *edgeBuilder) buildCase(path string, spec *CaseSpec) Case {
	if len(spec.To) == 0 {
		b.addProblem(path+".to", ReasonMissing, "the case leads nowhere; name a node or END")
	}
	for _, name := range spec.To {
		b.markIncoming(b.resolveTarget(path+".to", name))
	}
	return Case{When: b.compileCondition(path+".when", spec.When), To: spec.To}
}
