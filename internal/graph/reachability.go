package graph

import (
	"slices"
	"strings"
)

// reachability knows which nodes a run can come to.
type reachability struct {
	*nameResolver

	spec     *Spec
	hasEntry bool // something leads away from START
}

// checkReachability reports nodes that no run can come to, and joins that can never be
// complete. Where a node may go anywhere (a function's own goto, a router
// without paths) everything counts as reachable: a false alarm is worse.
func (r *reachability) checkReachability() {
	if r.hasConnectionProblem() {
		return // an edge that leads nowhere makes nodes look lost; say the cause only
	}
	if !r.hasEntry {
		r.addProblem("edges", ReasonNoEntry, "nothing leads away from START; add an edge like START -> %s", r.firstNodeName())
		return
	}
	seen := r.findReachable()
	for _, n := range r.graph.Nodes {
		if !seen[n] {
			r.addProblem("nodes."+n.Name, ReasonUnreachableNode, "no run can reach node %q; lead an edge to it or remove it", n.Name)
		}
	}
	for i := range r.spec.Edges {
		e := &r.spec.Edges[i]
		if len(e.From) < 2 {
			continue
		}
		var dead []string
		for _, name := range e.From {
			if n, ok := r.graph.nodes[name]; ok && !seen[n] {
				dead = append(dead, name)
			}
		}
		if len(dead) > 0 {
			r.addProblem(indexPath("edges", i), ReasonDeadJoin, "the join into %q waits for %s, which no run can reach",
				e.To, strings.Join(dead, ", "))
		}
	}
}

// hasConnectionProblem reports whether a problem was found in how nodes are connected.
func (r *reachability) hasConnectionProblem() bool {
	return slices.ContainsFunc(r.found, func(p Problem) bool { return p.IsConnectionProblem() })
}

// IsConnectionProblem reports whether the problem is in how nodes are connected, so that
// which node can be reached is not known.
func (p Problem) IsConnectionProblem() bool {
	switch p.Reason {
	case ReasonInvalidExpression, ReasonUnknownChannel, ReasonUnknownFunction:
		return false
	default:
		return strings.HasPrefix(p.Path, "edges") || strings.HasPrefix(p.Path, "conditional_edges") ||
			strings.Contains(p.Path, ".destinations") || strings.HasSuffix(p.Path, ".error_handler")
	}
}

// IsConsequence reports whether the problem may only follow from a problem in how
// nodes are connected.
func (p Problem) IsConsequence() bool {
	switch p.Reason {
	case ReasonNoEntry, ReasonUnreachableNode, ReasonDeadJoin:
		return true
	default:
		return false
	}
}

func (r *reachability) firstNodeName() string {
	for _, n := range r.graph.Nodes[1:] {
		return n.Name
	}
	return "first_node"
}

// findReachable returns the nodes that a run may reach from START. A node that may go
// anywhere reaches all.
func (r *reachability) findReachable() map[*Node]bool {
	targets := make(map[int][]*Node) // channel → nodes that it triggers
	for _, n := range r.graph.Nodes {
		for _, c := range n.Triggers {
			targets[c] = append(targets[c], n)
		}
	}
	seen := map[*Node]bool{r.graph.Nodes[0]: true}
	todo := []*Node{r.graph.Nodes[0]}
	visit := func(nodes ...*Node) {
		for _, n := range nodes {
			if n != nil && !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range n.Edges {
			visit(targets[c]...)
		}
		for _, c := range n.Joins {
			visit(targets[c]...)
		}
		visit(n.Handler)
		if n.canGoAnywhere() {
			visit(r.graph.Nodes...)
		}
		names, anywhere := r.chosenTargets(n)
		if anywhere {
			visit(r.graph.Nodes...)
		}
		for _, name := range names {
			visit(r.graph.nodes[name])
		}
	}
	return seen
}

// chosenTargets names the targets of the conditional edges and declared gotos, or
// says that they may be any.
func (r *reachability) chosenTargets(n *Node) (names []string, anywhere bool) {
	if n.Spec != nil {
		names = append(names, n.Spec.Destinations...)
	}
	for i := range r.spec.Branches {
		spec := &r.spec.Branches[i]
		if spec.From != n.Name {
			continue
		}
		for _, c := range spec.Cases {
			names = append(names, c.To...)
		}
		for _, to := range spec.Paths {
			names = append(names, to)
		}
		names = append(names, spec.Then...)
		if (spec.Expr != "" || spec.Router != "") && spec.Paths == nil && spec.Then == nil {
			anywhere = true
		}
	}
	return names, anywhere
}

// canGoAnywhere reports whether the node's own code may choose any next node.
func (n *Node) canGoAnywhere() bool {
	if n.Spec == nil || n.Spec.Destinations != nil {
		return false
	}
	switch n.Kind {
	case KindFunction, KindRemote:
		return true
	case KindExpr:
		return n.Spec.Expr.Goto != ""
	case KindAsk:
		return n.Spec.Ask.Goto != ""
	case KindGraph:
		return n.Sub != nil && n.Sub.mayCommandParent
	case KindStart:
	}
	return false
}
