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
)

// People who follow and then do not read for a while, or leave without a word
// and come back, while servers are killed and paused: each sees everything
// once, and nobody else waits for them.
func TestWatchersPauseAndVanish(t *testing.T) {
	t.Parallel()
	n, long := part()
	w := newWorld(t, setup{threads: n, over: long})
	faults := &troubles{replicas: w.replicas, networks: w.networks, redis: w.redis, tally: w.faults, seed: *seed}
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	// They come over connections of their own: who does not read them holds up
	// nobody but himself.
	var theirs []client
	for _, r := range w.replicas {
		theirs = append(theirs, connect(t, r.address))
	}
	var watching errgroup.Group
	var idlers []*idler
	for i := range 2 * n {
		d := w.driver(i % n)
		d.servers = theirs
		one := &idler{witness: witness{driver: d}, random: rand.New(rand.NewPCG(*seed, uint64(i)+7)), leaves: i%2 == 0}
		idlers = append(idlers, one)
		watching.Go(func() error { return one.follow(ctx) })
	}
	w.prove(faults.kill, faults.rest)
	require.NoError(t, watching.Wait())
	for _, one := range idlers {
		require.NoError(t, one.verify(ctx))
	}
	w.note("%d watchers have seen everything once: %s", len(idlers), w.seen)
	for _, reason := range tells {
		require.Zero(t, w.seen.of("followers told by "+reason))
	}
}

// idler is one who pauses, or leaves.
type idler struct {
	witness

	random *rand.Rand
	leaves bool
}

// follow watches until the run has ended.
func (w *idler) follow(ctx context.Context) error {
	for {
		once, leave := context.WithCancelCause(ctx)
		left := 4 + w.random.IntN(20)
		done, err := w.watch(once, w.any(), w.request(true), func(e *event) {
			w.take(e)
			switch left--; {
			case left > 0:
			case w.leaves:
				w.tally.add("watchers who left")
				leave(errLeft)
			default:
				w.tally.add("watchers who paused")
				pause(once, draw(w.random, 0, lease/2))
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
		case errors.Is(context.Cause(once), errLeft), reason(err) == "THREAD_NOT_FOUND" && w.cursor == nil, reason(err) == "SLOW_CONSUMER":
		case slices.Contains([]codes.Code{codes.OK, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, code):
		default:
			return fmt.Errorf("watcher of %s: %w", w.thread, err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

var errLeft = errors.New("the watcher has left")
