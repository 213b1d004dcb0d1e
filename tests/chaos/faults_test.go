package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// faultInjector injects faults into one worker until ctx ends, and leaves it well.
type faultInjector struct {
	worker *process.Process
	proxy  *network.Proxy
	random *rand.Rand
	tally  *harness.Tally
	timing timing
	// maxCalm is how long the worker is left alone at most.
	maxCalm time.Duration
}

func (t *faultInjector) injectFaults(ctx context.Context) error {
	for harness.SleepContext(ctx, time.Duration(t.random.Int64N(int64(t.maxCalm)))) {
		if how := t.worker.EndState(); how != "" {
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
		t.tally.CountEvent("worker killed")
		t.worker.Kill()
		harness.SleepContext(ctx, t.timing.randomDelay(t.random, 0, 0.5))
		return t.worker.Start()
	case n < 32:
		t.tally.CountEvent("worker left")
		t.worker.SendSignal(syscall.SIGTERM)
		if !t.worker.WaitForEnd(t.timing.scaleDuration(30 * time.Second)) {
			t.worker.SendSignal(syscall.SIGABRT)
			t.worker.WaitForEnd(10 * time.Second)
			return fmt.Errorf("a worker that was asked to leave did not; see what its threads did in %s", t.worker.LogPath())
		}
		return t.worker.Start()
	case n < 52:
		d := t.timing.randomDelay(t.random, 0.2, 3)
		if t.tally.CountEvent("worker paused"); d > t.timing.lease {
			t.tally.CountEvent("worker paused beyond its lease")
		}
		t.worker.SendSignal(syscall.SIGSTOP)
		harness.SleepContext(ctx, d)
		t.worker.SendSignal(syscall.SIGCONT)
	case n < 67:
		t.tally.CountEvent("network cut")
		t.proxy.Cut()
	case n < 77:
		t.tally.CountEvent("network down")
		t.proxy.Refuse(true)
		harness.SleepContext(ctx, t.timing.randomDelay(t.random, 0.2, 2))
		t.proxy.Refuse(false)
	default:
		server, worker := t.random.IntN(3) > 0, t.random.IntN(3) > 0
		t.tally.CountEvent(map[[2]bool]string{
			{true, true}: "network held", {true, false}: "network held to the server",
			{false, true}: "network held to the worker", {false, false}: "network left alone",
		}[[2]bool{server, worker}])
		t.proxy.Hold(server, worker)
		harness.SleepContext(ctx, t.timing.randomDelay(t.random, 0.3, 4))
		if t.random.IntN(2) == 0 {
			t.proxy.Cut()
		}
		t.proxy.Hold(false, false)
	}
	return nil
}
