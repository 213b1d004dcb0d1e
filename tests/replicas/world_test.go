package replicas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// progress counts threads.
type progress struct {
	asked, ended, applied, duplicates atomic.Int64
}

// setup is how a world differs from the usual one.
type setup struct {
	threads int
	over    time.Duration
	redis   *redistest.Server
	store   string   // URL; "" = redis through a network that can break
	binary  string   // "" = the server as it is
	args    []string // more of them for each server
	env     func(replica int) []string
}

// world is a Redis, its servers, and the network between them.
type world struct {
	*testing.T
	setup

	networks []*redistest.Proxy
	replicas []*replica
	servers  []client
	faults   *tally
	seen     *tally
	progress *progress
	running  *errgroup.Group // the servers
	failed   context.Context // ends when a server has ended by itself
}

func newWorld(t *testing.T, how setup) *world {
	t.Helper()
	w := &world{T: t, setup: how, faults: &tally{}, seen: &tally{}, progress: &progress{}}
	if w.redis == nil && w.store == "" {
		w.redis = redistest.Start(t)
	}
	if w.binary == "" {
		w.binary = built.Graphd(t)
	}
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.running, w.failed = errgroup.WithContext(ctx)
	for i := range replicas {
		r := w.replica(i, dir)
		w.replicas, w.servers = append(w.replicas, r), append(w.servers, connect(t, r.address))
		w.running.Go(func() error { return r.supervise(w.failed) })
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, w.running.Wait())
	})
	w.serving()
	return w
}

// replica describes one server.
func (w *world) replica(i int, dir string) *replica {
	w.Helper()
	store := w.store
	if store == "" {
		network := redistest.StartProxy(w.T, w.redis)
		w.networks = append(w.networks, network)
		store = network.URL() + "/0"
	}
	address := freeAddress(w.T)
	args := append([]string{
		"serve", "--listen", address, "--store", store, "--lease", lease.String(), "--graphs", "testdata", "--log-format", "json",
	}, w.args...)
	return &replica{address: address, log: filepath.Join(dir, fmt.Sprintf("replica%d.log", i)), command: func() *exec.Cmd {
		cmd := exec.Command(w.binary, args...)
		if w.env != nil {
			cmd.Env = append(os.Environ(), w.env(i)...)
		}
		return cmd
	}}
}

// fault breaks things until ctx ends, and leaves all well.
type fault func(ctx context.Context) error

// prove runs all threads under faults and checks what became of them.
func (w *world) prove(faults ...fault) []*driver {
	w.Helper()
	begin := time.Now()
	drivers, ended := w.runAll(faults...)
	took := time.Since(begin)
	w.verify(drivers, ended)
	w.lists()
	w.healthy()
	w.note("%d threads with seed %d in %.1fs: %d answers applied, %d duplicates acknowledged as such",
		w.threads, *seed, took.Seconds(), w.progress.applied.Load(), w.progress.duplicates.Load())
	w.note("faults: %s", w.faults)
	w.note("callers: %s", w.seen)
	require.EqualValues(w, w.threads, w.progress.applied.Load())
	require.EqualValues(w, w.threads, w.progress.duplicates.Load())
	return drivers
}

// note logs a line that is said again when all tests have ended.
func (w *world) note(format string, args ...any) {
	w.Helper()
	w.Logf(format, args...)
	summary.mu.Lock()
	defer summary.mu.Unlock()
	summary.lines = append(summary.lines, strings.TrimPrefix(w.Name(), "Test")+": "+fmt.Sprintf(format, args...))
}

// healthy checks that no server logged what must never happen.
func (w *world) healthy() {
	w.Helper()
	for _, r := range w.replicas {
		data, err := os.ReadFile(r.log)
		require.NoError(w, err)
		for _, trouble := range []string{"panic:", "fatal error:", `"grpc.code":"Internal"`, `"grpc.code":"Unknown"`, `"grpc.code":"DataLoss"`} {
			at := bytes.Index(data, []byte(trouble))
			require.Negative(w, at, "there is trouble in %s: %s", filepath.Base(r.log), string(data[max(0, at):min(max(0, at)+2000, len(data))]))
		}
	}
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
	ctx, cancel := context.WithTimeout(w.failed, time.Minute)
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
func (w *world) runAll(faults ...fault) ([]*driver, []*graphdv1.Run) {
	w.Helper()
	w.Logf("%d threads over %s with seed %d", w.threads, w.over, *seed)
	drivers, ended := make([]*driver, w.threads), make([]*graphdv1.Run, w.threads)
	ctx, cancel := context.WithTimeout(w.failed, *limit)
	defer cancel()
	calm, stop := context.WithCancel(ctx)
	defer stop()
	var around errgroup.Group
	for _, f := range append(faults, w.report) {
		around.Go(func() error { return f(calm) })
	}
	all, ctx := errgroup.WithContext(ctx)
	for n := range w.threads {
		drivers[n] = w.driver(n)
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
		require.NoError(w, err, "seed %d, after %d of %d threads", *seed, w.progress.ended.Load(), w.threads)
	}
	return drivers, ended
}

// driver is who takes the n-th thread to its end.
func (w *world) driver(n int) *driver {
	return &driver{
		plan: newPlan(n, *seed, w.over), servers: w.servers, choose: rand.IntN, thread: fmt.Sprintf("t%d", n),
		tally: w.seen, progress: w.progress,
	}
}

// report says how far the threads are, for people who wait.
func (w *world) report(ctx context.Context) error {
	for pause(ctx, 10*time.Second) {
		w.Logf("%d of %d questions were asked, %d threads have ended; faults: %s",
			w.progress.asked.Load(), w.threads, w.progress.ended.Load(), w.faults)
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
		for filter, want := range map[string]int{`state = "CONSUMED"`: w.threads, `state = "*"`: w.threads, "": 0} {
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
		require.Equal(w, w.threads, listed)
	}
}
