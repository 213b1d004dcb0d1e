package graph

import "strings"

// handlerResolver gives nodes their error handlers.
type handlerResolver struct {
	*nameResolver

	spec *Spec
}

// resolveHandlers resolves error handlers. The graph's default handler is not for
// nodes that are handlers themselves.
func (r *handlerResolver) resolveHandlers() {
	isHandler := make(map[*Node]bool)
	common := r.resolveHandler("defaults.error_handler", r.spec.Defaults.ErrorHandler)
	if common != nil {
		isHandler[common] = true
	}
	for _, n := range r.graph.Nodes[1:] {
		n.Handler = r.resolveHandler("nodes."+n.Name+".error_handler", n.Spec.Policy.ErrorHandler)
		if n.Handler != nil {
			isHandler[n.Handler] = true
		}
	}
	for _, n := range r.graph.Nodes[1:] {
		if n.Handler == nil && n.Spec.Policy.ErrorHandler == "" && !isHandler[n] {
			n.Handler = common
		}
		n.HandlerOnly = isHandler[n] && !r.hasIncoming[n]
	}
	r.checkHandlerCycles()
}

func (r *handlerResolver) resolveHandler(path, name string) *Node {
	if name == "" {
		return nil
	}
	n, ok := r.graph.nodes[name]
	if !ok || n.Spec == nil {
		r.addUnknown(path, ReasonUnknownNode, "node", name, r.nodeNames)
		return nil
	}
	return n
}

// checkHandlerCycles refuses handlers that would hand a failure round and round.
func (r *handlerResolver) checkHandlerCycles() {
	settled := make(map[*Node]bool)
	for _, n := range r.graph.Nodes[1:] {
		trail := make(map[*Node]bool)
		at := n
		for at != nil && !settled[at] && !trail[at] {
			trail[at] = true
			at = at.Handler
		}
		if at != nil && trail[at] {
			r.addProblem("nodes."+at.Name+".error_handler", ReasonHandlerCycle,
				"the error handlers of %q form a cycle: %s", at.Name, cycleText(at))
		}
		for visited := range trail {
			settled[visited] = true
		}
	}
}

func cycleText(first *Node) string {
	names := []string{first.Name}
	for n := first.Handler; n != nil; n = n.Handler {
		names = append(names, n.Name)
		if n == first {
			break
		}
	}
	return strings.Join(names, " -> ")
}
