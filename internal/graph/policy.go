package graph

import "time"

// checkGraphPolicy checks the settings of the graph as a whole.
func (b *builder) checkGraphPolicy() {
	if b.spec.StepLimit < 0 {
		b.addProblem("step_limit", ReasonOutOfRange, "step_limit is negative (%d); leave it out for the server's default", b.spec.StepLimit)
	}
	b.checkNotNegative("step_timeout", b.spec.StepTimeout)
	b.checkPolicy("defaults", &b.spec.Defaults)
	b.checkDrift("", b.spec.Drift, b.spec.DriftIgnore)
}

func (p *problemList) checkNotNegative(path string, d time.Duration) {
	if d < 0 {
		p.addProblem(path, ReasonOutOfRange, "the duration is negative (%s)", d)
	}
}

func (p *problemList) checkPolicy(path string, spec *PolicySpec) {
	p.checkNotNegative(path+".timeout", spec.Timeout)
	p.checkNotNegative(path+".idle_timeout", spec.IdleTimeout)
	for i := range spec.Retry {
		p.checkRetry(indexPath(path+".retry", i), &spec.Retry[i])
	}
}

func (p *problemList) checkRetry(path string, r *RetrySpec) {
	if r.MaxAttempts < 0 {
		p.addProblem(path+".max_attempts", ReasonOutOfRange, "max_attempts is negative (%d); 1 means no retry", r.MaxAttempts)
	}
	if r.Backoff != 0 && !(r.Backoff >= 1) { // also refuses NaN
		p.addProblem(path+".backoff", ReasonOutOfRange, "backoff is %g; it must be 1 or more", r.Backoff)
	}
	p.checkNotNegative(path+".initial_interval", r.InitialInterval)
	p.checkNotNegative(path+".max_interval", r.MaxInterval)
	for i, kind := range r.On {
		if kind == "" {
			p.addProblem(indexPath(path+".on", i), ReasonMissing, "the failure type is empty")
		}
	}
}

// applyPolicy gives a node its own policy where set, else the graph's.
func (b *nodeBuilder) applyPolicy(path string, n *Node) {
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
