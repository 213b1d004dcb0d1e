package replicas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// Keys that vanish behind graphd's back, as an evicting Redis or a person with
// redis-cli lets them: no client is told anything wrong about the threads they
// belong to, servers say which key it was, and all other threads end as if nothing
// had happened.
func TestDeletedKeys(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	w := newCluster(t, clusterSetup{threads: n, spread: long})
	ctx, cancel := context.WithTimeout(w.serverFailed, *limit)
	defer cancel()
	random := rand.New(rand.NewPCG(*seed, 5))
	drivers, ended := make([]*threadDriver, n), make([]driverOutcome, n)
	damaged := make([]deletedKey, n/2) // of the first threads
	over, stops := make([]<-chan struct{}, n), make([]context.CancelFunc, n)
	var all errgroup.Group
	for i := range drivers {
		drivers[i] = w.newDriver(i)
		drivers[i].isFollowed = drivers[i].isFollowed && i >= len(damaged)
		driving, stop := context.WithCancel(ctx)
		over[i], stops[i] = driving.Done(), stop
		all.Go(func() error {
			defer stop()
			run, err := drivers[i].driveThread(driving)
			if err == nil {
				err = drivers[i].verifyThread(driving, run)
			}
			ended[i] = driverOutcome{err, time.Now()}
			return nil
		})
	}
	for i := range damaged {
		when := drivers[i].startDelay + randomDuration(random, 0, drivers[i].answerDelay+time.Millisecond)
		all.Go(func() (err error) {
			harness.SleepContext(ctx, when)
			damaged[i], err = w.awaitAndDeleteKey(ctx, over[i], "vsqroeh"[i%7], drivers[i].thread)
			if damaged[i].key != "" { // what is left of the thread may wait for ever
				time.AfterFunc(5*lease, stops[i])
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
	for i := range drivers {
		if i < len(damaged) && damaged[i].key != "" {
			w.verifyDamagedThread(ctx, drivers[i], damaged[i], ended[i])
		} else if ended[i].err != nil {
			w.showThreadLogs(&threadError{drivers[i], ended[i].err})
			require.NoError(t, ended[i].err, "thread %s was not touched", drivers[i].thread)
		}
	}
	w.logSummary("%d of %d threads lost a key: %s", w.faults.CountOf("key taken away"), n, w.seen)
	require.Equal(t, len(damaged), w.faults.CountOf("key taken away"))
}

// deletedKey is the key that a thread has lost, "" for none, and when.
type deletedKey struct {
	key string
	at  time.Time
}

// driverOutcome is how the driver of a thread ended.
type driverOutcome struct {
	err error
	at  time.Time
}

// awaitAndDeleteKey takes a key of a thread away as soon as the thread has it, unless
// the thread is not driven any more by then.
func (w *cluster) awaitAndDeleteKey(ctx context.Context, over <-chan struct{}, letter byte, thread string) (deletedKey, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		lost, err := w.deleteKey(ctx, letter, thread)
		if err != nil || lost.key != "" {
			return lost, err
		}
		select {
		case <-tick.C:
		case <-over:
			return lost, nil
		}
	}
}

// deleteKey takes one key of a thread away, if it has it.
func (w *cluster) deleteKey(ctx context.Context, letter byte, thread string) (deletedKey, error) {
	keys, err := w.redis.Client.Keys(ctx, fmt.Sprintf("graphd{*}:%c:%s", letter, thread)).Result()
	if err != nil || len(keys) == 0 {
		return deletedKey{}, err
	}
	w.faults.CountEvent("key taken away")
	return deletedKey{keys[0], time.Now()}, w.redis.Client.Del(ctx, keys[0]).Err()
}

// verifyDamagedThread checks that no client was told that a damaged thread ended as
// it should, that it is called damaged, by the key in the log, and that it can be
// deleted.
func (w *cluster) verifyDamagedThread(ctx context.Context, d *threadDriver, lost deletedKey, how driverOutcome) {
	w.Helper()
	switch {
	case how.err != nil:
		w.seen.CountEvent("heard " + harness.ReasonOf(how.err))
	case how.at.Before(lost.at):
		w.seen.CountEvent("had ended before")
	default:
		w.showThreadLogs(&threadError{d, how.err})
		require.Fail(w, "a damaged thread ended as if nothing had happened", "%s without %s", d.thread, lost.key)
	}
	_, err := callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Thread, error) {
		return c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: d.thread})
	})
	require.Equal(w, "CHECKPOINT_CORRUPT", harness.ReasonOf(err), "%s without %s: %v", d.thread, lost.key, err)
	logged := ""
	for _, r := range w.replicas {
		logged += logOfThread(r.logPath, d.thread)
	}
	require.Contains(w, logged, lost.key)
	if strings.Contains(lost.key, ":h:") {
		return // there is no thread any more, only what is left of it
	}
	_, err = callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*emptypb.Empty, error) {
		return c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: d.thread, Force: true})
	})
	require.NoError(w, err)
	_, err = callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Thread, error) {
		return c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: d.thread})
	})
	require.Equal(w, "THREAD_NOT_FOUND", harness.ReasonOf(err))
}
