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
)

// Keys that vanish behind graphd's back, as an evicting Redis or a person with
// redis-cli lets them: nobody is told anything wrong about the threads they
// belong to, servers say which key it was, and all other threads end as if
// nothing had happened.
func TestDeletedKeys(t *testing.T) {
	t.Parallel()
	n, long := part()
	w := newWorld(t, setup{threads: n, over: long})
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	random := rand.New(rand.NewPCG(*seed, 5))
	drivers, ended := make([]*driver, n), make([]outcome, n)
	damaged := make([]damage, n/2) // of the first threads
	var all errgroup.Group
	for i := range drivers {
		drivers[i] = w.driver(i)
		patient, cancel := ctx, context.CancelFunc(func() {})
		if i < len(damaged) {
			drivers[i].followed = false
			patient, cancel = context.WithTimeout(ctx, drivers[i].begins+drivers[i].thinks+5*lease)
		}
		all.Go(func() error {
			defer cancel()
			run, err := drivers[i].drive(patient)
			if err == nil {
				err = drivers[i].verify(patient, run)
			}
			ended[i] = outcome{err, time.Now()}
			return nil
		})
	}
	for i := range damaged {
		when := drivers[i].begins + draw(random, 0, drivers[i].thinks+time.Millisecond)
		all.Go(func() (err error) {
			pause(ctx, when)
			damaged[i], err = w.take(ctx, "vsqroeh"[i%7], drivers[i].thread)
			return err
		})
	}
	require.NoError(t, all.Wait())
	for i := range drivers {
		if i < len(damaged) && damaged[i].key != "" {
			w.verifyDamage(ctx, drivers[i], damaged[i], ended[i])
		} else if ended[i].err != nil {
			w.explain(&threadError{drivers[i], ended[i].err})
			require.NoError(t, ended[i].err, "thread %s was not touched", drivers[i].thread)
		}
	}
	w.note("%d of %d threads lost a key: %s", w.faults.of("key taken away"), n, w.seen)
	require.GreaterOrEqual(t, w.faults.of("key taken away"), len(damaged)/2)
}

// damage is the key that a thread has lost, "" for none, and when.
type damage struct {
	key string
	at  time.Time
}

// outcome is how the driver of a thread ended.
type outcome struct {
	err error
	at  time.Time
}

// take takes one key of a thread away, if it has it.
func (w *world) take(ctx context.Context, letter byte, thread string) (damage, error) {
	keys, err := w.redis.Client.Keys(ctx, fmt.Sprintf("graphd{*}:%c:%s", letter, thread)).Result()
	if err != nil || len(keys) == 0 {
		return damage{}, err
	}
	w.faults.add("key taken away")
	return damage{keys[0], time.Now()}, w.redis.Client.Del(ctx, keys[0]).Err()
}

// verifyDamage checks that nobody was told that a damaged thread ended as it
// should, that it is called damaged, by the key in the log, and that it can be
// deleted.
func (w *world) verifyDamage(ctx context.Context, d *driver, lost damage, how outcome) {
	w.Helper()
	switch {
	case how.err != nil:
		w.seen.add("heard " + reason(how.err))
	case how.at.Before(lost.at):
		w.seen.add("had ended before")
	default:
		w.explain(&threadError{d, how.err})
		require.Fail(w, "a damaged thread ended as if nothing had happened", "%s without %s", d.thread, lost.key)
	}
	_, err := insist(ctx, d, func(ctx context.Context, c client) (*graphdv1.Thread, error) {
		return c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: d.thread})
	})
	require.Equal(w, "CHECKPOINT_CORRUPT", reason(err), "%s without %s: %v", d.thread, lost.key, err)
	logged := ""
	for _, r := range w.replicas {
		logged += said(r.log, d.thread)
	}
	require.Contains(w, logged, lost.key)
	if strings.Contains(lost.key, ":h:") {
		return // there is no thread any more, only what is left of it
	}
	_, err = insist(ctx, d, func(ctx context.Context, c client) (*emptypb.Empty, error) {
		return c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: d.thread, Force: true})
	})
	require.NoError(w, err)
	_, err = insist(ctx, d, func(ctx context.Context, c client) (*graphdv1.Thread, error) {
		return c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: d.thread})
	})
	require.Equal(w, "THREAD_NOT_FOUND", reason(err))
}
