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

func (t *tally) countEvent(what string) {
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

// sleepContext waits. It reports false when ctx has ended.
func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// randomDelay draws a duration of so many leases.
func (p timing) randomDelay(r *rand.Rand, low, high float64) time.Duration {
	return time.Duration((low + r.Float64()*(high-low)) * float64(p.lease))
}

// faultInjector injects faults into one worker until ctx ends, and leaves it well.
type faultInjector struct {
	worker *process
	proxy  *proxy
	random *rand.Rand
	tally  *tally
	timing timing
	// maxCalm is how long the worker is left alone at most.
	maxCalm time.Duration
}

func (t *faultInjector) injectFaults(ctx context.Context) error {
	for sleepContext(ctx, time.Duration(t.random.Int64N(int64(t.maxCalm)))) {
		if how, ended := t.worker.hasEnded(); ended {
			return fmt.Errorf("a worker has ended by itself: %s", how)
		}
		if err := t.injectOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *faultInjector) injectOne(ctx context.Context) error {
	switch n := t.random.IntN(100); {
	case n < 25:
		t.tally.countEvent("worker killed")
		t.worker.killProcess()
		sleepContext(ctx, t.timing.randomDelay(t.random, 0, 0.5))
		return t.worker.startProcess()
	case n < 32:
		t.tally.countEvent("worker left")
		t.worker.sendSignal(syscall.SIGTERM)
		if !t.worker.waitEnded(t.timing.scaleDuration(30 * time.Second)) {
			t.worker.sendSignal(syscall.SIGABRT)
			t.worker.waitEnded(10 * time.Second)
			return fmt.Errorf("a worker that was asked to leave did not; see what its threads did in %s", t.worker.log.Name())
		}
		return t.worker.startProcess()
	case n < 52:
		d := t.timing.randomDelay(t.random, 0.2, 3)
		if t.tally.countEvent("worker paused"); d > t.timing.lease {
			t.tally.countEvent("worker paused beyond its lease")
		}
		t.worker.sendSignal(syscall.SIGSTOP)
		sleepContext(ctx, d)
		t.worker.sendSignal(syscall.SIGCONT)
	case n < 67:
		t.tally.countEvent("network cut")
		t.proxy.cutLinks()
	case n < 77:
		t.tally.countEvent("network down")
		t.proxy.setRefusing(true)
		sleepContext(ctx, t.timing.randomDelay(t.random, 0.2, 2))
		t.proxy.setRefusing(false)
	default:
		server, worker := t.random.IntN(3) > 0, t.random.IntN(3) > 0
		t.tally.countEvent(map[[2]bool]string{
			{true, true}: "network held", {true, false}: "network held to the server",
			{false, true}: "network held to the worker", {false, false}: "network left alone",
		}[[2]bool{server, worker}])
		t.proxy.setHeld(server, worker)
		sleepContext(ctx, t.timing.randomDelay(t.random, 0.3, 4))
		if t.random.IntN(2) == 0 {
			t.proxy.cutLinks()
		}
		t.proxy.setHeld(false, false)
	}
	return nil
}
