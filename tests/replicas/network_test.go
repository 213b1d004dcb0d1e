package replicas_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/graphd-dev/graphd/tests/harness"
)

// partialSize is the size of a test that tries one kind of fault.
func partialSize() (n int, long time.Duration) {
	return max(24, *threads/5), max(3*time.Second, *spread/5)
}

// Redis that answers late, and connections that are gone without a word, for
// longer than a lease.
func TestSlowAndHalfOpenConnections(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	w := newCluster(t, clusterSetup{threads: n, spread: long})
	w.runUnderFaults(w.breakNetwork)
}

// breakNetwork makes the way to Redis slow, half open or stuck.
func (w *cluster) breakNetwork(ctx context.Context) error {
	random := rand.New(rand.NewPCG(*seed, 3))
	for next := random.IntN(3); harness.SleepContext(ctx, randomDuration(random, 100*time.Millisecond, 500*time.Millisecond)); next++ {
		network := w.proxies[random.IntN(len(w.proxies))]
		switch next % 3 {
		case 0:
			w.faults.CountEvent("answers of redis delayed by 50 to 300 ms")
			network.DelayAnswers(50*time.Millisecond, 300*time.Millisecond)
			harness.SleepContext(ctx, randomDuration(random, lease, 3*lease))
			network.DelayAnswers(0, 0)
		case 1:
			w.faults.CountEvent("connections to redis left half open")
			network.DropSilently()
		default:
			w.faults.CountEvent("connections to redis held longer than a lease")
			network.Pause()
			harness.SleepContext(ctx, randomDuration(random, lease, 2*lease))
			network.Resume()
		}
	}
	return nil
}
