package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

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
	if f == nil || f.Permanent {
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
	initial, factor, most := p.InitialInterval, p.Backoff, p.MaxInterval
	if initial == 0 {
		initial = defaultInitial
	}
	if factor == 0 {
		factor = defaultBackoff
	}
	if most == 0 {
		most = defaultMax
	}
	d := min(float64(most), float64(initial)*math.Pow(factor, float64(n-1)))
	if !p.NoJitter {
		d += rand.Float64() * float64(maxJitter)
	}
	return time.Duration(d)
}
