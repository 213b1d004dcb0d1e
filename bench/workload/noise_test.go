package workload_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/bench/workload"
)

// pass waits in the time of a bubble.
func pass(d time.Duration) { <-time.NewTimer(d).C }

var errRefused = fmt.Errorf("a call: %w", status.Error(codes.ResourceExhausted, "too many"))

func TestNoiseCallsOnTimeWhateverBecomesOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		n := workload.StartNoise(t.Context(), 1000, func(context.Context, int, *workload.Times) error {
			if made.Add(1)%100 == 1 {
				pass(50 * time.Millisecond) // this one is served
				return nil
			}
			return errRefused
		})
		require.NoError(t, n.AwaitRefusal(t.Context()))
		pass(10 * time.Second)
		perSecond, err := n.Stop()
		require.NoError(t, err)
		require.InDelta(t, 1000, perSecond, 10)
	})
}

func TestNoiseWantsRefusalsForQuotasOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := workload.StartNoise(t.Context(), 1000, func(context.Context, int, *workload.Times) error { return nil })
		pass(time.Second)
		_, err := n.Stop()
		require.ErrorIs(t, err, workload.ErrNotRefused)

		broken := errors.New("the server is gone")
		n = workload.StartNoise(t.Context(), 1000, func(context.Context, int, *workload.Times) error { return broken })
		require.ErrorIs(t, n.AwaitRefusal(t.Context()), broken)
		_, err = n.Stop()
		require.ErrorIs(t, err, broken)

		n = workload.StartNoise(t.Context(), 1000, func(ctx context.Context, _ int, _ *workload.Times) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, n.AwaitRefusal(ctx), workload.ErrNotRefused)
		_, err = n.Stop()
		require.ErrorIs(t, err, workload.ErrNotRefused)
	})
}
