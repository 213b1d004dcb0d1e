// Package backoff says how long to wait between attempts, and waits.
package backoff

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Policy is how the waits between attempts grow. First and Max must be set.
type Policy struct {
	First  time.Duration // before the first repetition
	Max    time.Duration // without jitter
	Factor float64       // of one wait to the one before; 0 = 2
	Jitter time.Duration // up to so much is added at random
}

// Delay is how long to wait before the n-th repetition, counted from 1.
func (p Policy) Delay(n int) time.Duration {
	d := float64(p.First) * math.Pow(cmp.Or(p.Factor, 2), float64(max(n, 1)-1))
	return time.Duration(min(float64(p.Max), d) + rand.Float64()*float64(p.Jitter))
}

// Wait waits before the n-th repetition, or returns why ctx ended.
func (p Policy) Wait(ctx context.Context, n int) error { return Sleep(ctx, p.Delay(n)) }

// Sleep waits, or returns why ctx ended.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
