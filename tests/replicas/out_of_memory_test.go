package replicas_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/tests/harness"
)

// Redis that runs out of memory again and again: calls are refused by name, nothing
// is half done, and all goes on when there is memory.
func TestRedisOutOfMemory(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	w := newCluster(t, clusterSetup{threads: n, spread: long})
	w.runUnderFaults(w.fillMemory)
	require.Positive(t, w.seen.CountOf("refused with STORE_UNAVAILABLE"), "no client has met a full Redis")
	var logs []byte
	for _, r := range w.replicas {
		data, err := os.ReadFile(r.logPath)
		require.NoError(t, err)
		logs = append(logs, data...)
	}
	require.True(t, bytes.Contains(logs, []byte("OOM command not allowed")), "the log does not say why")
}

var usedMemory = regexp.MustCompile(`used_memory:(\d+)`)

// fillMemory lets Redis have no more memory than it uses.
func (w *cluster) fillMemory(ctx context.Context) error {
	random := rand.New(rand.NewPCG(*seed, 4))
	for harness.SleepContext(ctx, randomDuration(random, 200*time.Millisecond, time.Second)) {
		calm := context.WithoutCancel(ctx)
		info, err := w.redis.Client.Info(calm, "memory").Result()
		if err != nil {
			return fmt.Errorf("memory of redis: %w", err)
		}
		used, err := strconv.ParseUint(usedMemory.FindStringSubmatch(info)[1], 10, 64)
		if err != nil {
			return fmt.Errorf("memory of redis: %w", err)
		}
		w.faults.CountEvent("redis out of memory")
		if err := w.redis.Client.ConfigSet(calm, "maxmemory", strconv.FormatUint(used+uint64(random.IntN(64<<10)), 10)).Err(); err != nil {
			return fmt.Errorf("less memory for redis: %w", err)
		}
		harness.SleepContext(ctx, randomDuration(random, lease/2, 2*lease))
		if err := w.redis.Client.ConfigSet(calm, "maxmemory", "0").Err(); err != nil {
			return fmt.Errorf("more memory for redis: %w", err)
		}
	}
	return nil
}
