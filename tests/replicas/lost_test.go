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
)

// With appendfsync everysec a crash of the process takes nothing, and one of
// the machine about the last second. Whoever had seen what is lost is told.
func TestCrashWithEverysec(t *testing.T) {
	t.Parallel()
	n, long := part()
	server := redistest.Start(t, "--appendfsync", "everysec")
	w := newWorld(t, setup{threads: n, over: long, redis: server})
	w.lose(func(ctx context.Context) error {
		for end := time.Now().Add(long); time.Now().Before(end); {
			pause(ctx, long/8)
			before, err := heads(ctx, server.Client)
			if err != nil {
				return err
			}
			if err := server.Again(); err != nil {
				return err
			}
			if err := w.count(ctx, "by a crash of the process", before, server.Client); err != nil {
				return err
			}
			pause(ctx, long/8)
			written, err := server.Written()
			if err != nil {
				return err
			}
			pause(ctx, time.Second)
			if before, err = heads(ctx, server.Client); err != nil {
				return err
			}
			if err := server.Rewind(written); err != nil {
				return err
			}
			if err := w.count(ctx, "by a crash of the machine a second after the last sync", before, server.Client); err != nil {
				return err
			}
		}
		return nil
	})
}

// A failover takes what the replica had not received. Whoever had seen it is
// told.
func TestFailoverToALateReplica(t *testing.T) {
	t.Parallel()
	n, long := part()
	s := redistest.StartSentinel(t)
	w := newWorld(t, setup{threads: n, over: long, store: s.URL()})
	w.lose(func(ctx context.Context) error {
		pause(ctx, long/4)
		if err := s.Part(ctx); err != nil {
			return err
		}
		pause(ctx, time.Second)
		before, err := heads(ctx, s.Master.Client)
		if err != nil {
			return err
		}
		if err := s.Lose(ctx); err != nil {
			return err
		}
		return w.count(ctx, "by a failover to a replica that was a second late", before, s.Replica.Client)
	})
}

// lose runs threads with followers while changes get lost, and checks that
// nobody believes what is not so.
func (w *world) lose(losing func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	watching, enough := context.WithCancel(ctx)
	defer enough()
	safe := make(chan struct{})
	drivers, witnesses, runs := make([]*driver, w.threads), make([]*witness, w.threads), make([]*graphdv1.Run, w.threads)
	var followers sync.WaitGroup
	var driving errgroup.Group
	looked := make([]error, w.threads)
	for i := range drivers {
		drivers[i] = w.driver(i)
		drivers[i].followed = false
		witnesses[i] = &witness{driver: drivers[i]}
		followers.Go(func() { looked[i] = witnesses[i].look(watching, true) })
		driving.Go(func() (err error) {
			if runs[i], err = drivers[i].insistOnEnd(ctx, safe); err != nil {
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
		w.explain(err)
		require.NoError(w, err)
	}
	for i, d := range drivers {
		_, _, err := d.whole(ctx, runs[i])
		if err = errors.Join(looked[i], err, witnesses[i].verify(ctx)); err != nil {
			w.explain(&threadError{d, err})
			require.NoError(w, err, d.thread)
		}
	}
	w.lists()
	w.healthy()
	w.note("told: %s", w.seen)
}

// place is where a thread stands.
type place struct{ revision, events int }

// heads reads where all threads stand.
func heads(ctx context.Context, c *goredis.Client) (map[string]place, error) {
	out := make(map[string]place)
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
		p := place{}
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

// count says what is lost. What threads have gained meanwhile hides some of it.
func (w *world) count(ctx context.Context, how string, before map[string]place, c *goredis.Client) error {
	after, err := heads(ctx, c)
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
	w.note("lost %s: %d changes and %d events of %d threads, of which %d are gone", how, changes, events, back+gone, gone)
	return nil
}
