package replicas_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// tally counts what happened.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) countEvent(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[what]++
}

// countOf is how often something happened.
func (t *tally) countOf(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[what]
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, t.counts[what]))
	}
	return strings.Join(parts, ", ")
}

// faultInjector injects faults into the servers, their Redis and the network
// between. The seed decides what comes in which order.
type faultInjector struct {
	replicas []*replica
	proxies  []*redistest.Proxy // of the replicas
	redis    *redistest.Server
	tally    *tally
	seed     uint64
}

func randomDuration(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// killServers kills one server every few seconds, until ctx ends.
func (t *faultInjector) killServers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 1))
	for sleepContext(ctx, randomDuration(random, 1500*time.Millisecond, 4*time.Second)) {
		which, down := random.IntN(len(t.replicas)), randomDuration(random, 0, time.Second)
		t.tally.countEvent("replica killed")
		t.replicas[which].killServer(down)
	}
	return nil
}

// injectFaults does everything else, one after the other, and leaves all well.
func (t *faultInjector) injectFaults(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 2))
	for sleepContext(ctx, randomDuration(random, 200*time.Millisecond, 2*time.Second)) {
		which, n := random.IntN(len(t.replicas)), random.IntN(100)
		long := randomDuration(random, lease/5, 2*lease)
		switch {
		case n < 8:
			t.tally.countEvent("replica told to stop")
			t.replicas[which].stopServer(long / 4)
		case n < 24:
			t.tally.countEvent("replica paused beyond its lease")
			t.replicas[which].signalServer(syscall.SIGSTOP)
			sleepContext(ctx, lease+long)
			t.replicas[which].signalServer(syscall.SIGCONT)
		case n < 40:
			t.tally.countEvent("redis killed")
			t.redis.Kill()
			sleepContext(ctx, long/2)
			if err := t.redis.TryRestart(); err != nil {
				return err
			}
		case n < 50:
			t.tally.countEvent("replicas killed at once")
			for _, r := range t.replicas {
				r.killServer(long / 2)
			}
		case n < 65:
			t.tally.countEvent("connections to redis cut")
			t.proxies[which].ResetConnections()
		case n < 80:
			t.tally.countEvent("connections to redis held")
			t.proxies[which].Pause()
			sleepContext(ctx, long)
			if random.IntN(2) == 0 {
				t.proxies[which].ResetConnections()
			}
			t.proxies[which].Resume()
		default:
			t.tally.countEvent("answers of redis lost")
			t.proxies[which].LoseAnswers(1 + random.Int32N(8))
		}
	}
	return nil
}
