// Package backoff computes the delays between attempts, and waits.
package backoff

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Policy describes how the delays between attempts grow. First and Max must be set.
type Policy struct {
	First  time.Duration // before the first repetition
	Max    time.Duration // without jitter
	Factor float64       // ratio of each delay to the one before; 0 = 2
	Jitter time.Duration // bound of the random addition
}

// Delay returns the delay before the n-th repetition, counted from 1.
func (p Policy) Delay(n int) time.Duration {
	d := float64(p.First) * math.Pow(cmp.Or(p.Factor, 2), float64(max(n, 1)-1))
	return time.Duration(min(float64(p.Max), d) + rand.Float64()*float64(p.Jitter))
}

// Wait waits before the n-th repetition. It returns the cause of ctx when ctx ends
// first.
func (p Policy) Wait(ctx context.Context, n int) error { return Sleep(ctx, p.Delay(n)) }

// Sleep waits. It returns the cause of ctx when ctx ends first.
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
