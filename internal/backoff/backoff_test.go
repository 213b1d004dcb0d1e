package backoff_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
)

func TestDelaysGrowUpToTheLongest(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy backoff.Policy
		delays []time.Duration // from the first repetition
	}{
		"doubled":          {backoff.Policy{First: 20 * ms, Max: 100 * ms}, []time.Duration{20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms}},
		"by a factor":      {backoff.Policy{First: 100 * ms, Max: time.Second, Factor: 1.5}, []time.Duration{100 * ms, 150 * ms, 225 * ms}},
		"always the same":  {backoff.Policy{First: ms, Max: time.Second, Factor: 1}, []time.Duration{ms, ms, ms}},
		"longer than most": {backoff.Policy{First: time.Minute, Max: time.Second}, []time.Duration{time.Second, time.Second}},
		"none":             {backoff.Policy{Max: time.Second}, []time.Duration{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, d := range c.delays {
				require.Equal(t, d, c.policy.Delay(i+1))
			}
		})
	}
	require.Equal(t, ms, backoff.Policy{First: ms, Max: time.Hour}.Delay(0), "before the first repetition")
	require.Equal(t, time.Hour, backoff.Policy{First: ms, Max: time.Hour}.Delay(math.MaxInt))
}

func TestJitterIsAddedAndBounded(t *testing.T) {
	p := backoff.Policy{First: time.Second, Max: time.Second, Jitter: time.Second}
	seen := map[time.Duration]struct{}{}
	for range 100 {
		d := p.Delay(1)
		require.GreaterOrEqual(t, d, time.Second)
		require.Less(t, d, 2*time.Second)
		seen[d] = struct{}{}
	}
	require.Greater(t, len(seen), 1)
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := backoff.Policy{First: time.Second, Max: time.Minute}, time.Now()
		require.NoError(t, p.Wait(t.Context(), 3))
		require.Equal(t, 4*time.Second, time.Since(began))

		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		require.ErrorIs(t, p.Wait(ctx, 9), cause)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}
