// Package replicas_test runs several real servers on one Redis and kills,
// pauses and cuts off all of them while people answer interrupts.
package replicas_test

import (
	"flag"
	"testing"
	"time"
)

// What `make faults` sets. A seed decides which faults come in which order and
// what each thread does; what meets what is up to the machine.
var (
	threads = flag.Int("threads", 150, "how many threads are run, with one question each")
	seed    = flag.Uint64("seed", 1, "which faults and threads are drawn")
	spread  = flag.Duration("over", 8*time.Second, "over how long threads begin and people think")
	limit   = flag.Duration("limit", 20*time.Minute, "how long all threads may take")
)

const (
	replicas = 2
	// lease is the shortest there is, so that servers often lose theirs.
	lease = time.Second
)

// Every thread ends as if nothing had happened: its answer was applied once, a
// person who answered a second time is told that it was, history and log have no
// gap and the state is what it must be.
func TestEveryAnswerIsAppliedOnce(t *testing.T) {
	t.Parallel()
	w := newCluster(t, clusterSetup{threads: *threads, spread: *spread})
	faults := &faultInjector{replicas: w.replicas, proxies: w.proxies, redis: w.redis, tally: w.faults, seed: *seed}
	w.runUnderFaults(faults.killServers, faults.injectFaults)
}
