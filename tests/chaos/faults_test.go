package chaos_test

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
)

// tally counts what was done to whom.
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

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, t.counts[what]))
	}
	return strings.Join(parts, ", ")
}

// pause waits. It reports false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// between draws a duration of so many leases.
func (p pace) between(r *rand.Rand, low, high float64) time.Duration {
	return time.Duration((low + r.Float64()*(high-low)) * float64(p.lease))
}

// torment does things to one worker until ctx ends, and leaves it well.
type torment struct {
	worker *process
	net    *proxy
	random *rand.Rand
	tally  *tally
	pace   pace
	// calm is how long the worker is left alone at most.
	calm time.Duration
}

func (t *torment) run(ctx context.Context) error {
	for pause(ctx, time.Duration(t.random.Int64N(int64(t.calm)))) {
		if how, ended := t.worker.ended(); ended {
			return fmt.Errorf("a worker has ended by itself: %s", how)
		}
		if err := t.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *torment) once(ctx context.Context) error {
	switch n := t.random.IntN(100); {
	case n < 25:
		t.tally.add("worker killed")
		t.worker.kill()
		pause(ctx, t.pace.between(t.random, 0, 0.5))
		return t.worker.start()
	case n < 32:
		t.tally.add("worker left")
		t.worker.signal(syscall.SIGTERM)
		if !t.worker.wait(t.pace.stretch(30 * time.Second)) {
			t.worker.signal(syscall.SIGABRT)
			t.worker.wait(10 * time.Second)
			return fmt.Errorf("a worker that was asked to leave did not; see what its threads did in %s", t.worker.log.Name())
		}
		return t.worker.start()
	case n < 52:
		d := t.pace.between(t.random, 0.2, 3)
		if t.tally.add("worker paused"); d > t.pace.lease {
			t.tally.add("worker paused beyond its lease")
		}
		t.worker.signal(syscall.SIGSTOP)
		pause(ctx, d)
		t.worker.signal(syscall.SIGCONT)
	case n < 67:
		t.tally.add("network cut")
		t.net.cut()
	case n < 77:
		t.tally.add("network down")
		t.net.refuse(true)
		pause(ctx, t.pace.between(t.random, 0.2, 2))
		t.net.refuse(false)
	default:
		server, worker := t.random.IntN(3) > 0, t.random.IntN(3) > 0
		t.tally.add(map[[2]bool]string{
			{true, true}: "network held", {true, false}: "network held to the server",
			{false, true}: "network held to the worker", {false, false}: "network left alone",
		}[[2]bool{server, worker}])
		t.net.hold(server, worker)
		pause(ctx, t.pace.between(t.random, 0.3, 4))
		if t.random.IntN(2) == 0 {
			t.net.cut()
		}
		t.net.hold(false, false)
	}
	return nil
}
