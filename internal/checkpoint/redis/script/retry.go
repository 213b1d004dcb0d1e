package script

import (
	"context"
	"time"
)

// maxAttempts is how often a call is made before the caller gets
// ErrUnavailable; the owner of a run retries on its own.
const maxAttempts = 3

// Retry makes a call that may be repeated.
func Retry(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == maxAttempts || !isTransient(err) || !SleepContext(ctx, time.Duration(n)*20*time.Millisecond) {
			return err
		}
	}
}

// SleepContext waits, and reports false when ctx ended meanwhile.
func SleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
