package graph

// nameResolver resolves the names of a Spec in the graph under construction, and
// reports unknown names.
type nameResolver struct {
	problemList

	graph *Graph
	// hasIncoming marks nodes that an edge, a branch or a goto names as target.
	hasIncoming map[*Node]bool
}

// resolveSource resolves the beginning of an edge.
func (r *nameResolver) resolveSource(path, name string) (*Node, bool) {
	if name == End {
		r.addProblem(path, ReasonInvalidEdge, "END cannot be the source of an edge")
		return nil, false
	}
	n, ok := r.graph.nodes[name]
	if !ok {
		r.addUnknown(path, ReasonUnknownNode, "node", name, r.nodeNamesAnd("START"))
	}
	return n, ok
}

// resolveTarget resolves the end of an edge; END is no node.
func (r *nameResolver) resolveTarget(path, name string) (*Node, bool) {
	switch name {
	case End:
		return nil, true
	case Start:
		r.addProblem(path, ReasonInvalidEdge, "START cannot be the target of an edge")
		return nil, false
	}
	n, ok := r.graph.nodes[name]
	if !ok {
		r.addUnknown(path, ReasonUnknownNode, "node", name, r.nodeNamesAnd("END"))
	}
	return n, ok
}

func (r *nameResolver) markIncoming(target *Node, ok bool) {
	if ok && target != nil {
		r.hasIncoming[target] = true
	}
}

// resolveKeys resolves a list of state keys; an empty list is all of them.
func (r *nameResolver) resolveKeys(path string, names []string) []int {
	if len(names) == 0 {
		return r.graph.StateKeys
	}
	positions := make([]int, 0, len(names))
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		at, ok := r.graph.channels[name]
		switch {
		case !ok || !r.graph.Channels[at].IsStateKey:
			r.addUnknown(indexPath(path, i), ReasonUnknownChannel, "channel", name, r.keyNames)
		case seen[name]:
			r.addProblem(indexPath(path, i), ReasonDuplicateName, "channel %q is listed twice", name)
		default:
			positions = append(positions, at)
		}
		seen[name] = true
	}
	return positions
}

// nodeNames lists the declared nodes.
func (r *nameResolver) nodeNames() []string {
	names := make([]string, 0, len(r.graph.nodes))
	for _, n := range r.graph.Nodes {
		if n.Spec != nil {
			names = append(names, n.Name)
		}
	}
	return names
}

// nodeNamesAnd lists the declared nodes and a name that every graph has.
func (r *nameResolver) nodeNamesAnd(name string) func() []string {
	return func() []string { return append(r.nodeNames(), name) }
}

// keyNames lists the state keys.
func (r *nameResolver) keyNames() []string {
	names := make([]string, 0, len(r.graph.StateKeys))
	for _, i := range r.graph.StateKeys {
		names = append(names, r.graph.Channels[i].Name)
	}
	return names
}
