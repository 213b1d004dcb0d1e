package superstep

import (
	"cmp"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Defaults of a retry policy, as LangGraph has them.
const (
	defaultAttempts = 3
	defaultInitial  = 500 * time.Millisecond
	defaultBackoff  = 2.0
	defaultMax      = 128 * time.Second
	maxJitter       = time.Second
)

// retryDelay says whether, and after how long, a failed attempt is repeated.
// Of several policies the first that matches the failure counts. n is the
// number of attempts made.
func retryDelay(policies []graph.RetrySpec, f *pregel.Failure, n int) (time.Duration, bool) {
	if f == nil || f.Permanent || isVersionRefusal(f.Reason) {
		return 0, false
	}
	i := slices.IndexFunc(policies, func(p graph.RetrySpec) bool {
		return len(p.On) == 0 || slices.Contains(p.On, f.Type) || slices.Contains(p.On, f.Reason) ||
			slices.ContainsFunc(f.BaseTypes, func(base string) bool { return slices.Contains(p.On, base) })
	})
	if i < 0 {
		return 0, false
	}
	p := policies[i]
	attempts := p.MaxAttempts
	if attempts == 0 {
		attempts = defaultAttempts
	}
	if n >= attempts {
		return 0, false
	}
	return max(f.RetryAfter, backoffInterval(p, n)), true
}

func backoffInterval(p graph.RetrySpec, n int) time.Duration {
	b := backoff.Policy{
		First: cmp.Or(p.InitialInterval, defaultInitial), Factor: cmp.Or(p.Backoff, defaultBackoff), Max: cmp.Or(p.MaxInterval, defaultMax),
	}
	if !p.NoJitter {
		b.Jitter = maxJitter
	}
	return b.Delay(n)
}
