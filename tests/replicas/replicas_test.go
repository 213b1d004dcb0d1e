// Package replicas_test runs several real servers on one Redis and kills,
// pauses and cuts off all of them while people answer questions.
package replicas_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// What `make faults` sets. A seed decides which faults come in which order and
// what each thread does; what meets what is up to the machine.
var (
	threads = flag.Int("threads", 150, "how many threads are run, with one question each")
	rate    = flag.Int("rate", 0, "in place of -threads: so many threads for each second of -over")
	seed    = flag.Uint64("seed", 1, "which faults and threads are drawn")
	over    = flag.Duration("over", 8*time.Second, "over how long threads begin and people think")
	limit   = flag.Duration("limit", 4*time.Minute, "how long all threads may take")
)

const (
	replicas = 2
	// lease is the shortest there is, so that servers often lose theirs.
	lease = time.Second
)

// progress counts threads.
type progress struct {
	asked, ended, applied, duplicates atomic.Int64
}

// Every thread ends as if nothing had happened: its answer was applied once,
// whoever answered a second time is told that it was, history and log have no
// gap and the state is what it must be.
func TestEveryAnswerIsAppliedOnce(t *testing.T) {
	if *rate > 0 {
		*threads = *rate * int(over.Seconds())
	}
	w := newWorld(t)
	begin := time.Now()
	drivers, ended := w.runAll()
	took := time.Since(begin)
	w.verify(drivers, ended)
	w.lists()
	for _, r := range w.replicas {
		data, err := os.ReadFile(r.log)
		require.NoError(t, err)
		for _, trouble := range []string{"panic:", "fatal error:", `"grpc.code":"Internal"`, `"grpc.code":"Unknown"`, `"grpc.code":"DataLoss"`} {
			at := bytes.Index(data, []byte(trouble))
			require.Negative(t, at, "there is trouble in %s: %s", filepath.Base(r.log), string(data[max(0, at):min(max(0, at)+2000, len(data))]))
		}
	}
	t.Logf("%d threads with seed %d in %.1fs: %d answers applied, %d duplicates acknowledged as such",
		*threads, *seed, took.Seconds(), w.progress.applied.Load(), w.progress.duplicates.Load())
	t.Logf("faults: %s", w.faults)
	t.Logf("callers: %s", w.seen)
	require.EqualValues(t, *threads, w.progress.applied.Load())
	require.EqualValues(t, *threads, w.progress.duplicates.Load())
}

// world is a Redis, its servers, and the network between them.
type world struct {
	*testing.T

	redis    *redistest.Server
	networks []*redistest.Proxy
	replicas []*replica
	servers  []client
	faults   *tally
	seen     *tally
	progress *progress
	running  *errgroup.Group // the servers
	failed   context.Context // ends when a server has ended by itself
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, redis: redistest.Start(t), faults: &tally{}, seen: &tally{}, progress: &progress{}}
	binary, dir := graphd(t), t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.running, w.failed = errgroup.WithContext(ctx)
	for i := range replicas {
		network := redistest.StartProxy(t, w.redis)
		address := freeAddress(t)
		r := &replica{address: address, log: filepath.Join(dir, fmt.Sprintf("replica%d.log", i)), command: func() *exec.Cmd {
			return exec.Command(binary, "serve", "--listen", address, "--store", network.URL()+"/0", "--lease", lease.String(),
				"--graphs", "testdata", "--log-format", "json")
		}}
		w.networks, w.replicas = append(w.networks, network), append(w.replicas, r)
		w.servers = append(w.servers, connect(t, address))
		w.running.Go(func() error { return r.supervise(w.failed) })
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, w.running.Wait())
	})
	w.serving()
	return w
}

func connect(t *testing.T, address string) client {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(
		grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return client{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn), graphdv1.NewInterruptServiceClient(conn),
	}
}

// serving waits until every server serves.
func (w *world) serving() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.failed, 30*time.Second)
	defer cancel()
	for i, c := range w.servers {
		for {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 1})
			if err == nil {
				break
			}
			if !pause(ctx, 20*time.Millisecond) {
				w.explain(err)
				require.NoError(w, err, "server %d does not serve", i)
			}
		}
	}
}

// threadError is what went wrong with one thread.
type threadError struct {
	*driver

	err error
}

func (e *threadError) Error() string {
	return fmt.Sprintf("thread %s, %+v: %v", e.thread, *e.plan, e.err)
}

func (e *threadError) Unwrap() error { return e.err }

// explain shows what the servers said about a failure.
func (w *world) explain(failure error) {
	thread := ""
	if e, ok := errors.AsType[*threadError](failure); ok {
		thread = e.thread
	}
	for _, r := range w.replicas {
		w.Logf("%s:\n%s", filepath.Base(r.log), said(r.log, thread))
	}
	w.Logf("faults: %s", w.faults)
}

// runAll runs all threads while everything around them breaks.
func (w *world) runAll() ([]*driver, []*graphdv1.Run) {
	w.Helper()
	w.Logf("%d threads over %s with seed %d", *threads, *over, *seed)
	drivers, ended := make([]*driver, *threads), make([]*graphdv1.Run, *threads)
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	calm, stop := context.WithCancel(ctx)
	defer stop()
	t := &troubles{replicas: w.replicas, networks: w.networks, redis: w.redis, tally: w.faults, seed: *seed}
	var around errgroup.Group
	around.Go(func() error { return t.kill(calm) })
	around.Go(func() error { return t.rest(calm) })
	around.Go(func() error { return w.report(calm) })
	all, ctx := errgroup.WithContext(ctx)
	for n := range *threads {
		drivers[n] = &driver{
			plan: newPlan(n, *seed, *over), servers: w.servers, choose: rand.IntN, thread: fmt.Sprintf("t%d", n),
			tally: w.seen, progress: w.progress,
		}
		all.Go(func() error {
			run, err := drivers[n].drive(ctx)
			if ended[n] = run; err != nil {
				return &threadError{drivers[n], err}
			}
			return nil
		})
	}
	err := all.Wait()
	stop()
	err = errors.Join(err, around.Wait())
	if w.failed.Err() != nil {
		err = errors.Join(err, context.Cause(w.failed))
	}
	if err != nil {
		w.explain(err)
		require.NoError(w, err, "seed %d, after %d of %d threads", *seed, w.progress.ended.Load(), *threads)
	}
	return drivers, ended
}

// report says how far the threads are, for people who wait.
func (w *world) report(ctx context.Context) error {
	for pause(ctx, 10*time.Second) {
		w.Logf("%d of %d questions were asked, %d threads have ended; faults: %s",
			w.progress.asked.Load(), *threads, w.progress.ended.Load(), w.faults)
	}
	return nil
}

// verify looks at every thread when all is calm again.
func (w *world) verify(drivers []*driver, ended []*graphdv1.Run) {
	w.Helper()
	w.serving()
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	wrong := make([]error, len(drivers))
	var all errgroup.Group
	all.SetLimit(8)
	for i, d := range drivers {
		all.Go(func() error {
			if err := d.verify(ctx, ended[i]); err != nil {
				wrong[i] = &threadError{d, err}
			}
			return nil
		})
	}
	_ = all.Wait()
	if err := errors.Join(wrong...); err != nil {
		w.explain(err)
		require.NoError(w, err, "seed %d", *seed)
	}
}

// lists checks that the lists over all threads fit the threads, on each server.
func (w *world) lists() {
	w.Helper()
	for _, c := range w.servers {
		for filter, want := range map[string]int{`state = "CONSUMED"`: *threads, `state = "*"`: *threads, "": 0} {
			questions, token := make(map[string]bool), ""
			for {
				page, err := c.ListInterrupts(w.Context(), &graphdv1.ListInterruptsRequest{PageSize: 500, PageToken: token, Filter: filter})
				require.NoError(w, err)
				for _, q := range page.GetInterrupts() {
					questions[q.GetThreadId()] = true
				}
				if token = page.GetNextPageToken(); token == "" {
					break
				}
			}
			require.Len(w, questions, want, filter)
		}
		listed, token := 0, ""
		for {
			page, err := c.ListThreads(w.Context(), &graphdv1.ListThreadsRequest{PageSize: 500, PageToken: token})
			require.NoError(w, err)
			listed += len(page.GetThreads())
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		require.Equal(w, *threads, listed)
	}
}
