package replicas_test

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/tests/harness"
)

// faultInjector injects faults into the servers, their Redis and the network
// between. The seed decides what comes in which order.
type faultInjector struct {
	replicas []*replica
	proxies  []*redistest.Proxy // of the replicas
	redis    *redistest.Server
	tally    *harness.Tally
	seed     uint64
}

func randomDuration(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// killServers kills one server every few seconds, until ctx ends.
func (t *faultInjector) killServers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 1))
	for harness.SleepContext(ctx, randomDuration(random, 1500*time.Millisecond, 4*time.Second)) {
		which, down := random.IntN(len(t.replicas)), randomDuration(random, 0, time.Second)
		t.tally.CountEvent("replica killed")
		t.replicas[which].killServer(down)
	}
	return nil
}

// injectFaults does everything else, one after the other, and leaves all well.
func (t *faultInjector) injectFaults(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 2))
	for harness.SleepContext(ctx, randomDuration(random, 200*time.Millisecond, 2*time.Second)) {
		which, n := random.IntN(len(t.replicas)), random.IntN(100)
		long := randomDuration(random, lease/5, 2*lease)
		switch {
		case n < 8:
			t.tally.CountEvent("replica told to stop")
			t.replicas[which].stopServer(long / 4)
		case n < 24:
			t.tally.CountEvent("replica paused beyond its lease")
			t.replicas[which].signalServer(syscall.SIGSTOP)
			harness.SleepContext(ctx, lease+long)
			t.replicas[which].signalServer(syscall.SIGCONT)
		case n < 40:
			t.tally.CountEvent("redis killed")
			t.redis.Kill()
			harness.SleepContext(ctx, long/2)
			if err := t.redis.TryRestart(); err != nil {
				return err
			}
		case n < 50:
			t.tally.CountEvent("replicas killed at once")
			for _, r := range t.replicas {
				r.killServer(long / 2)
			}
		case n < 65:
			t.tally.CountEvent("connections to redis cut")
			t.proxies[which].ResetConnections()
		case n < 80:
			t.tally.CountEvent("connections to redis held")
			t.proxies[which].Pause()
			harness.SleepContext(ctx, long)
			if random.IntN(2) == 0 {
				t.proxies[which].ResetConnections()
			}
			t.proxies[which].Resume()
		default:
			t.tally.CountEvent("answers of redis lost")
			t.proxies[which].LoseAnswers(1 + random.Int32N(8))
		}
	}
	return nil
}
