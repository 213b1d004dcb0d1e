package script

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
)

// maxAttempts is how often a call is made before the caller gets
// ErrUnavailable; the owner of a run retries on its own.
const maxAttempts = 3

// Retry makes a call that may be repeated.
func Retry(ctx context.Context, call func() error) error {
	retries := backoff.Policy{First: 20 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == maxAttempts || !isTransient(err) || retries.Wait(ctx, n) != nil {
			return err
		}
	}
}

// SleepContext waits, and reports false when ctx ended meanwhile.
func SleepContext(ctx context.Context, d time.Duration) bool { return backoff.Sleep(ctx, d) == nil }
