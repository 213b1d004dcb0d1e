package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/tests/harness"
)

// People who follow and then do not read for a while, or leave without a word and
// come back, while servers are killed and paused: each sees everything once, and no
// other client waits for them.
func TestWatchersPauseAndVanish(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	w := newCluster(t, clusterSetup{threads: n, spread: long})
	faults := &faultInjector{replicas: w.replicas, proxies: w.proxies, redis: w.redis, tally: w.faults, seed: *seed}
	ctx, cancel := context.WithTimeout(w.serverFailed, *limit)
	defer cancel()
	// They come over connections of their own: a client that does not read them
	// delays itself alone.
	var theirs []harness.Client
	for _, r := range w.replicas {
		theirs = append(theirs, newClient(t, r.address))
	}
	var watching errgroup.Group
	var idlers []*pausingWatcher
	for i := range 2 * n {
		d := w.newDriver(i % n)
		d.servers = theirs
		one := &pausingWatcher{lossWatcher: lossWatcher{threadDriver: d}, random: rand.New(rand.NewPCG(*seed, uint64(i)+7)), disconnects: i%2 == 0}
		idlers = append(idlers, one)
		watching.Go(func() error { return one.followThread(ctx) })
	}
	w.runUnderFaults(faults.killServers, faults.injectFaults)
	require.NoError(t, watching.Wait())
	for _, one := range idlers {
		require.NoError(t, one.verifySeen(ctx))
	}
	w.logSummary("%d watchers have seen everything once: %s", len(idlers), w.seen)
	for _, reason := range lossReasons {
		require.Zero(t, w.seen.CountOf("followers told by "+reason))
	}
}

// pausingWatcher is a watcher that stops reading for a while, or disconnects.
type pausingWatcher struct {
	lossWatcher

	random      *rand.Rand
	disconnects bool
}

// followThread watches until the run has ended.
func (w *pausingWatcher) followThread(ctx context.Context) error {
	for {
		once, leave := context.WithCancelCause(ctx)
		left := 4 + w.random.IntN(20)
		done, err := harness.ReadStream(once, w.anyServer(), w.newWatchRequest(true), func(e *event) {
			w.recordEvent(e)
			switch left--; {
			case left > 0:
			case w.disconnects:
				w.tally.CountEvent("watchers who left")
				leave(errWatcherLeft)
			default:
				w.tally.CountEvent("watchers who paused")
				harness.SleepContext(once, randomDuration(w.random, 0, lease/2))
				left = 4 + w.random.IntN(20)
			}
		})
		leave(nil)
		code := status.Code(err)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("watcher of %s: %w", w.thread, ctx.Err())
		case errors.Is(context.Cause(once), errWatcherLeft), harness.ReasonOf(err) == "THREAD_NOT_FOUND" && w.cursor == nil, harness.ReasonOf(err) == "SLOW_CONSUMER":
		case slices.Contains([]codes.Code{codes.OK, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, code):
		default:
			return fmt.Errorf("watcher of %s: %w", w.thread, err)
		}
		harness.SleepContext(ctx, 50*time.Millisecond)
	}
}

var errWatcherLeft = errors.New("the watcher has left")
