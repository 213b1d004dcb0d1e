package graph

import (
	"strings"
	"time"
)

// limits checks what holds for the graph as a whole.
func (b *builder) limits() {
	if b.spec.StepLimit < 0 {
		b.add("step_limit", ReasonOutOfRange, "step_limit is negative (%d); leave it out for the server's default", b.spec.StepLimit)
	}
	b.notNegative("step_timeout", b.spec.StepTimeout)
	b.checkPolicy("defaults", &b.spec.Defaults)
	b.drift("", b.spec.Drift, b.spec.DriftIgnore)
}

func (b *builder) notNegative(path string, d time.Duration) {
	if d < 0 {
		b.add(path, ReasonOutOfRange, "the duration is negative (%s)", d)
	}
}

func (b *builder) checkPolicy(path string, p *PolicySpec) {
	b.notNegative(path+".timeout", p.Timeout)
	b.notNegative(path+".idle_timeout", p.IdleTimeout)
	for i := range p.Retry {
		b.checkRetry(index(path+".retry", i), &p.Retry[i])
	}
}

func (b *builder) checkRetry(path string, r *RetrySpec) {
	if r.MaxAttempts < 0 {
		b.add(path+".max_attempts", ReasonOutOfRange, "max_attempts is negative (%d); 1 means no retry", r.MaxAttempts)
	}
	if r.Backoff != 0 && !(r.Backoff >= 1) { // also refuses NaN
		b.add(path+".backoff", ReasonOutOfRange, "backoff is %g; it must be 1 or more", r.Backoff)
	}
	b.notNegative(path+".initial_interval", r.InitialInterval)
	b.notNegative(path+".max_interval", r.MaxInterval)
	for i, kind := range r.On {
		if kind == "" {
			b.add(index(path+".on", i), ReasonMissing, "the failure type is empty")
		}
	}
}

// policy gives a node its own policy where set, else the graph's.
func (b *builder) policy(path string, n *Node) {
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

// handlers resolves error handlers. The graph's default handler is not for
// nodes that are handlers themselves.
func (b *builder) handlers() {
	isHandler := make(map[*Node]bool)
	common := b.handler("defaults.error_handler", b.spec.Defaults.ErrorHandler)
	if common != nil {
		isHandler[common] = true
	}
	for _, n := range b.g.Nodes[1:] {
		n.Handler = b.handler("nodes."+n.Name+".error_handler", n.Spec.Policy.ErrorHandler)
		if n.Handler != nil {
			isHandler[n.Handler] = true
		}
	}
	for _, n := range b.g.Nodes[1:] {
		if n.Handler == nil && n.Spec.Policy.ErrorHandler == "" && !isHandler[n] {
			n.Handler = common
		}
		n.HandlerOnly = isHandler[n] && !b.incoming[n]
	}
	b.handlerCycles()
}

func (b *builder) handler(path, name string) *Node {
	if name == "" {
		return nil
	}
	n, ok := b.g.nodes[name]
	if !ok || n.Spec == nil {
		b.unknown(path, ReasonUnknownNode, "node", name, b.nodeNames)
		return nil
	}
	return n
}

// handlerCycles refuses handlers that would hand a failure round and round.
func (b *builder) handlerCycles() {
	settled := make(map[*Node]bool)
	for _, n := range b.g.Nodes[1:] {
		trail := make(map[*Node]bool)
		at := n
		for at != nil && !settled[at] && !trail[at] {
			trail[at] = true
			at = at.Handler
		}
		if at != nil && trail[at] {
			b.add("nodes."+at.Name+".error_handler", ReasonHandlerCycle,
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
