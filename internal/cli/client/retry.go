package client

import (
	"context"
	"time"
)

// IsRetryable reports whether a call that was refused for a reason is made again,
// with the same request id, and whether the reason is known to pass at all. An
// error that needs an operator or a decision of the caller is returned at once.
func IsRetryable(reason string) (again, known bool) {
	switch reason {
	case "SERVER_DRAINING", "SLOW_CONSUMER", "STORE_UNAVAILABLE", "STORE_BUSY", "OUTCOME_UNKNOWN",
		"TOO_MANY_RUNS", "TOO_MANY_SUBSCRIBERS", "TOO_MANY_REQUESTS", "KEYS_UNAVAILABLE":
		return true, true
	case "STORE_FULL", "THREAD_QUEUE_FULL", "RATE_LIMITED", "QUOTA_EXCEEDED", "TOO_MANY_GRAPHS", "TOO_MANY_ASSISTANTS", "TOO_MANY_ITEMS", "TOO_MANY_CRONS", "ITEM_SEARCH_TOO_BROAD", "NO_WORKER_AVAILABLE", "WORKER_SILENT":
		return false, true
	}
	return false, false
}

// RetryTimer spaces attempts and ends them.
type RetryTimer struct {
	timer    *time.Timer
	delay    time.Duration
	timeout  time.Duration
	deadline time.Time
}

const (
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 2 * time.Second
)

// NewRetryTimer makes a timer that ends the attempts when they have failed for
// timeout.
func NewRetryTimer(timeout time.Duration) *RetryTimer {
	r := &RetryTimer{timer: time.NewTimer(0), timeout: timeout}
	<-r.timer.C
	r.ResetDelay()
	return r
}

// ResetDelay starts again with the first delay, after an attempt that has
// succeeded.
func (r *RetryTimer) ResetDelay() { r.delay, r.deadline = firstRetryDelay, time.Time{} }

// StopTimer stops the timer.
func (r *RetryTimer) StopTimer() { r.timer.Stop() }

// WaitForAttempt waits for the next attempt. It reports false when ctx has ended or
// the attempts have failed for too long.
func (r *RetryTimer) WaitForAttempt(ctx context.Context) bool {
	now := time.Now()
	if r.deadline.IsZero() {
		r.deadline = now.Add(r.timeout)
	}
	if now.Add(r.delay).After(r.deadline) {
		return false
	}
	r.timer.Reset(r.delay)
	r.delay = min(2*r.delay, maxRetryDelay)
	select {
	case <-r.timer.C:
		return true
	case <-ctx.Done():
		r.timer.Stop()
		return false
	}
}
