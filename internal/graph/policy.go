package graph

import (
	"strings"
	"time"
)

// checkGraphPolicy checks what holds for the graph as a whole.
func (b *builder) checkGraphPolicy() {
	if b.spec.StepLimit < 0 {
		b.addProblem("step_limit", ReasonOutOfRange, "step_limit is negative (%d); leave it out for the server's default", b.spec.StepLimit)
	}
	b.checkNotNegative("step_timeout", b.spec.StepTimeout)
	b.checkPolicy("defaults", &b.spec.Defaults)
	b.checkDrift("", b.spec.Drift, b.spec.DriftIgnore)
}

func (b *builder) checkNotNegative(path string, d time.Duration) {
	if d < 0 {
		b.addProblem(path, ReasonOutOfRange, "the duration is negative (%s)", d)
	}
}

func (b *builder) checkPolicy(path string, p *PolicySpec) {
	b.checkNotNegative(path+".timeout", p.Timeout)
	b.checkNotNegative(path+".idle_timeout", p.IdleTimeout)
	for i := range p.Retry {
		b.checkRetry(indexPath(path+".retry", i), &p.Retry[i])
	}
}

func (b *builder) checkRetry(path string, r *RetrySpec) {
	if r.MaxAttempts < 0 {
		b.addProblem(path+".max_attempts", ReasonOutOfRange, "max_attempts is negative (%d); 1 means no retry", r.MaxAttempts)
	}
	if r.Backoff != 0 && !(r.Backoff >= 1) { // also refuses NaN
		b.addProblem(path+".backoff", ReasonOutOfRange, "backoff is %g; it must be 1 or more", r.Backoff)
	}
	b.checkNotNegative(path+".initial_interval", r.InitialInterval)
	b.checkNotNegative(path+".max_interval", r.MaxInterval)
	for i, kind := range r.On {
		if kind == "" {
			b.addProblem(indexPath(path+".on", i), ReasonMissing, "the failure type is empty")
		}
	}
}

// applyPolicy gives a node its own policy where set, else the graph's.
func (b *builder) applyPolicy(path string, n *Node) {
	own, defaults := &n.Spec.Policy, &b.spec.Defaults
	b.checkPolicy(path, own)
	n.Retry, n.Timeout, n.IdleTimeout = own.Retry, own.Timeout, own.IdleTimeout
	if len(n.Retry) == 0 {
		n.Retry = defaults.Retry
	}
	if n.Timeout == 0 {
		n.Timeout = defaults.Timeout
	}
	if n.IdleTimeout == 0 {
		n.IdleTimeout = defaults.IdleTimeout
	}
}

// resolveHandlers resolves error handlers. The graph's default handler is not for
// nodes that are handlers themselves.
func (b *builder) resolveHandlers() {
	isHandler := make(map[*Node]bool)
	common := b.resolveHandler("defaults.error_handler", b.spec.Defaults.ErrorHandler)
	if common != nil {
		isHandler[common] = true
	}
	for _, n := range b.graph.Nodes[1:] {
		n.Handler = b.resolveHandler("nodes."+n.Name+".error_handler", n.Spec.Policy.ErrorHandler)
		if n.Handler != nil {
			isHandler[n.Handler] = true
		}
	}
	for _, n := range b.graph.Nodes[1:] {
		if n.Handler == nil && n.Spec.Policy.ErrorHandler == "" && !isHandler[n] {
			n.Handler = common
		}
		n.HandlerOnly = isHandler[n] && !b.hasIncoming[n]
	}
	b.checkHandlerCycles()
}

func (b *builder) resolveHandler(path, name string) *Node {
	if name == "" {
		return nil
	}
	n, ok := b.graph.nodes[name]
	if !ok || n.Spec == nil {
		b.addUnknown(path, ReasonUnknownNode, "node", name, b.nodeNames)
		return nil
	}
	return n
}

// checkHandlerCycles refuses handlers that would hand a failure round and round.
func (b *builder) checkHandlerCycles() {
	settled := make(map[*Node]bool)
	for _, n := range b.graph.Nodes[1:] {
		trail := make(map[*Node]bool)
		at := n
		for at != nil && !settled[at] && !trail[at] {
			trail[at] = true
			at = at.Handler
		}
		if at != nil && trail[at] {
			b.addProblem("nodes."+at.Name+".error_handler", ReasonHandlerCycle,
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
