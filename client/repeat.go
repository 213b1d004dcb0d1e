package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// backoff is how long a broken stream or call waits before it is begun again, and for how long in all.
type backoff struct{ first, most, patience time.Duration }

func defaultBackoff() backoff {
	return backoff{200 * time.Millisecond, 5 * time.Second, 30 * time.Second}
}

// pauses are those between the attempts of one call.
type pauses struct {
	policy backoff
	next   time.Duration
	waited time.Duration
}

func (b backoff) begin() pauses { return pauses{policy: b, next: b.first} }

// mayWait reports whether another attempt is made.
func (p *pauses) mayWait() bool { return p.waited < p.policy.patience }

// wait waits before the next attempt. The error is the cause of ctx.
func (p *pauses) wait(ctx context.Context) error {
	d := p.next
	p.waited += d
	p.next = min(2*d, p.policy.most)
	return sleep(ctx, d)
}

// repeat makes a call that may be made twice, until the server has answered it. The error of a
// server that was never reached is returned at once: its address may be wrong.
func repeat[T any](ctx context.Context, c *Client, call func() (T, error)) (T, error) {
	for p := c.retries.begin(); ; {
		answer, err := call()
		if err == nil || !isBroken(err) {
			c.isReached.Store(true)
			return answer, toError(ctx, err)
		}
		if ctx.Err() != nil || !c.isReached.Load() || !p.mayWait() {
			return answer, toError(ctx, err)
		}
		if err := p.wait(ctx); err != nil {
			return answer, err
		}
	}
}

// isBroken reports whether an error is one of the connection, or of a server that goes down or can't
// reach its store for a while.
func isBroken(err error) bool {
	e, ok := errors.AsType[*Error](FromGRPC(err))
	if !ok || e.Code != codes.Unavailable {
		return false
	}
	switch e.Reason {
	case "", ServerDraining, StoreUnavailable, StoreBusy, OutcomeUnknown, KeysUnavailable:
		return true
	default:
		return false
	}
}

// sleep waits for a time. The error is the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
