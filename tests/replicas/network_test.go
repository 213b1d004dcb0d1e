package replicas_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// part is the size of a test that tries one kind of fault.
func part() (n int, long time.Duration) {
	return max(40, *threads/5), max(3*time.Second, *over/5)
}

// Redis that answers late, and connections that are gone without a word, for
// longer than a lease.
func TestSlowAndHalfOpenConnections(t *testing.T) {
	t.Parallel()
	n, long := part()
	w := newWorld(t, setup{threads: n, over: long})
	w.prove(w.network)
}

// network makes the way to Redis slow, half open or stuck.
func (w *world) network(ctx context.Context) error {
	random := rand.New(rand.NewPCG(*seed, 3))
	for next := random.IntN(3); pause(ctx, draw(random, 100*time.Millisecond, 500*time.Millisecond)); next++ {
		network := w.networks[random.IntN(len(w.networks))]
		switch next % 3 {
		case 0:
			w.faults.add("answers of redis delayed by 50 to 300 ms")
			network.Delay(50*time.Millisecond, 300*time.Millisecond)
			pause(ctx, draw(random, lease, 3*lease))
			network.Delay(0, 0)
		case 1:
			w.faults.add("connections to redis left half open")
			network.Orphan()
		default:
			w.faults.add("connections to redis held longer than a lease")
			network.Hold()
			pause(ctx, draw(random, lease, 2*lease))
			network.Release()
		}
	}
	return nil
}
