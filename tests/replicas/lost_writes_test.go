package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/tests/harness"
)

// With appendfsync everysec a crash of the process takes nothing, and one of the
// machine about the last second. A reader of what is lost is told.
func TestCrashWithEverysec(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	server := redistest.Start(t, "--appendfsync", "everysec")
	w := newCluster(t, clusterSetup{threads: n, spread: long, redis: server})
	w.runWithLosses(func(ctx context.Context) error {
		for end := time.Now().Add(long); time.Now().Before(end); {
			harness.SleepContext(ctx, long/8)
			before, err := readPositions(ctx, server.Client)
			if err != nil {
				return err
			}
			if err := server.TryRestart(); err != nil {
				return err
			}
			if err := w.countLosses(ctx, "by a crash of the process", before, server.Client); err != nil {
				return err
			}
			harness.SleepContext(ctx, long/8)
			written, err := server.AppendedBytes()
			if err != nil {
				return err
			}
			harness.SleepContext(ctx, time.Second)
			if before, err = readPositions(ctx, server.Client); err != nil {
				return err
			}
			if err := server.RestartTruncated(written); err != nil {
				return err
			}
			if err := w.countLosses(ctx, "by a crash of the machine a second after the last sync", before, server.Client); err != nil {
				return err
			}
		}
		return nil
	})
}

// A failover takes what the replica had not received. A reader of it is told.
func TestFailoverToALateReplica(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	s := redistest.StartSentinel(t)
	w := newCluster(t, clusterSetup{threads: n, spread: long, store: s.URL()})
	w.runWithLosses(func(ctx context.Context) error {
		harness.SleepContext(ctx, long/4)
		if err := s.DisconnectReplica(ctx); err != nil {
			return err
		}
		harness.SleepContext(ctx, time.Second)
		before, err := readPositions(ctx, s.Master.Client)
		if err != nil {
			return err
		}
		if err := s.Lose(ctx); err != nil {
			return err
		}
		return w.countLosses(ctx, "by a failover to a replica that was a second late", before, s.Replica.Client)
	})
}

// runWithLosses runs threads with followers while changes get lost, and checks that
// no client believes what is not so.
func (w *cluster) runWithLosses(losing func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.serverFailed, *limit)
	defer cancel()
	watching, enough := context.WithCancel(ctx)
	defer enough()
	safe := make(chan struct{})
	drivers, witnesses, runs := make([]*threadDriver, w.threads), make([]*lossWatcher, w.threads), make([]*graphdv1.Run, w.threads)
	var followers sync.WaitGroup
	var driving errgroup.Group
	looked := make([]error, w.threads)
	for i := range drivers {
		drivers[i] = w.newDriver(i)
		drivers[i].isFollowed = false
		witnesses[i] = &lossWatcher{threadDriver: drivers[i]}
		followers.Go(func() { looked[i] = witnesses[i].followLog(watching, true) })
		driving.Go(func() (err error) {
			if runs[i], err = drivers[i].driveUntilSafe(ctx, safe); err != nil {
				return &threadError{drivers[i], err}
			}
			return nil
		})
	}
	lost := losing(ctx)
	close(safe)
	err := driving.Wait()
	enough()
	followers.Wait()
	require.NoError(w, lost)
	if err != nil {
		w.showThreadLogs(err)
		require.NoError(w, err)
	}
	for i, d := range drivers {
		_, _, err := d.verifyComplete(ctx, runs[i])
		if err = errors.Join(looked[i], err, witnesses[i].verifySeen(ctx)); err != nil {
			w.showThreadLogs(&threadError{d, err})
			require.NoError(w, err, d.thread)
		}
	}
	w.verifyLists()
	w.requireCleanLogs()
	w.logSummary("told: %s", w.seen)
}

// threadPosition is where a thread stands.
type threadPosition struct{ revision, events int }

// readPositions reads where all threads stand.
func readPositions(ctx context.Context, c *goredis.Client) (map[string]threadPosition, error) {
	out := make(map[string]threadPosition)
	keys, err := c.Keys(ctx, "graphd{*}:h:*").Result()
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	for _, key := range keys {
		h, err := c.Eval(ctx, `local n = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'n'))
			return {string.format('%.0f', n[1]), string.format('%.0f', n[4])}`, []string{key}).Slice()
		if err != nil {
			return nil, fmt.Errorf("heads: %w", err)
		}
		p := threadPosition{}
		for i, at := range []*int{&p.revision, &p.events} {
			if text, ok := h[i].(string); ok {
				if *at, err = strconv.Atoi(text); err != nil {
					return nil, fmt.Errorf("heads: %w", err)
				}
			}
		}
		out[key] = p
	}
	return out, nil
}

// countLosses says what is lost. What threads have gained meanwhile hides some of it.
func (w *cluster) countLosses(ctx context.Context, how string, before map[string]threadPosition, c *goredis.Client) error {
	after, err := readPositions(ctx, c)
	if err != nil {
		return err
	}
	changes, events, back, gone := 0, 0, 0, 0
	for key, was := range before {
		is, ok := after[key]
		switch {
		case !ok:
			gone++
		case is.revision < was.revision:
			back++
		}
		changes += max(0, was.revision-is.revision)
		events += max(0, was.events-is.events)
	}
	w.logSummary("lost %s: %d changes and %d events of %d threads, of which %d are gone", how, changes, events, back+gone, gone)
	return nil
}
