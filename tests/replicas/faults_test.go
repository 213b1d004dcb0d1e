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

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[what]++
}

// of is how often something happened.
func (t *tally) of(what string) int {
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

// troubles are what is done to the servers, their Redis and the network
// between. The seed decides what comes in which order.
type troubles struct {
	replicas []*replica
	networks []*redistest.Proxy // of the replicas
	redis    *redistest.Server
	tally    *tally
	seed     uint64
}

func draw(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// kill kills one server every few seconds, until ctx ends.
func (t *troubles) kill(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 1))
	for pause(ctx, draw(random, 1500*time.Millisecond, 4*time.Second)) {
		which, down := random.IntN(len(t.replicas)), draw(random, 0, time.Second)
		t.tally.add("replica killed")
		t.replicas[which].kill(down)
	}
	return nil
}

// rest does everything else, one after the other, and leaves all well.
func (t *troubles) rest(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 2))
	for pause(ctx, draw(random, 200*time.Millisecond, 2*time.Second)) {
		which, n := random.IntN(len(t.replicas)), random.IntN(100)
		long := draw(random, lease/5, 2*lease)
		switch {
		case n < 8:
			t.tally.add("replica told to stop")
			t.replicas[which].stop(long / 4)
		case n < 24:
			t.tally.add("replica paused beyond its lease")
			t.replicas[which].signal(syscall.SIGSTOP)
			pause(ctx, lease+long)
			t.replicas[which].signal(syscall.SIGCONT)
		case n < 40:
			t.tally.add("redis killed")
			t.redis.Kill()
			pause(ctx, long/2)
			if err := t.redis.Again(); err != nil {
				return err
			}
		case n < 50:
			t.tally.add("replicas killed at once")
			for _, r := range t.replicas {
				r.kill(long / 2)
			}
		case n < 65:
			t.tally.add("connections to redis cut")
			t.networks[which].Cut()
		case n < 80:
			t.tally.add("connections to redis held")
			t.networks[which].Hold()
			pause(ctx, long)
			if random.IntN(2) == 0 {
				t.networks[which].Cut()
			}
			t.networks[which].Release()
		default:
			t.tally.add("answers of redis lost")
			t.networks[which].LoseAnswers(1 + random.Int32N(8))
		}
	}
	return nil
}
