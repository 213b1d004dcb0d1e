package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// The server is idle when it uses less than a tenth of a processor for this long. It is not
// waited for any longer than that.
const (
	idleWindow = 5 * time.Second
	idleShare  = 0.1
	mostOfRest = 10 * time.Minute
)

// settle waits for so long, in which graphd tidies up the threads at rest, and then until the
// server is idle.
func (b *inbox) settle(ctx context.Context, rest time.Duration) error {
	if rest == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "inbox: %s: %v of rest\n", b.setting, rest)
	began := time.Now()
	if err := pause(ctx, rest); err != nil {
		return err
	}
	for time.Since(began) < mostOfRest {
		before, err := b.server.ProcessorTime(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, idleWindow); err != nil {
			return err
		}
		after, err := b.server.ProcessorTime(ctx)
		if err != nil || (after-before).Seconds() < idleShare*idleWindow.Seconds() {
			return err
		}
	}
	return nil
}

// pause waits. The error is that of ctx.
func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
