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

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// progress counts threads.
type progress struct {
	asked, ended, applied, duplicates atomic.Int64
}

// clusterSetup is how a cluster differs from the usual one.
type clusterSetup struct {
	threads int
	spread  time.Duration
	redis   *redistest.Server
	store   string   // URL; "" = redis through a network that can break
	binary  string   // "" = the server as it is
	args    []string // more of them for each server
	env     func(replica int) []string
}

// cluster is a Redis, its servers, and the network between them.
type cluster struct {
	*testing.T
	clusterSetup

	proxies      []*redistest.Proxy
	replicas     []*replica
	servers      []harness.Client
	faults       *harness.Tally
	seen         *harness.Tally
	progress     *progress
	supervisors  *errgroup.Group // the servers
	serverFailed context.Context // ends when a server has ended by itself
}

func newCluster(t *testing.T, how clusterSetup) *cluster {
	t.Helper()
	w := &cluster{T: t, clusterSetup: how, faults: &harness.Tally{}, seen: &harness.Tally{}, progress: &progress{}}
	if w.redis == nil && w.store == "" {
		w.redis = redistest.Start(t)
	}
	if w.binary == "" {
		w.binary = built.Graphd(t)
	}
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.supervisors, w.serverFailed = errgroup.WithContext(ctx)
	for i := range replicas {
		r := w.newReplica(i, dir)
		w.replicas, w.servers = append(w.replicas, r), append(w.servers, newClient(t, r.address))
		w.supervisors.Go(func() error { return r.keepRunning(w.serverFailed) })
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, w.supervisors.Wait())
	})
	w.waitServing()
	return w
}

// newReplica describes one server.
func (w *cluster) newReplica(i int, dir string) *replica {
	w.Helper()
	store := w.store
	if store == "" {
		network := redistest.StartProxy(w.T, w.redis)
		w.proxies = append(w.proxies, network)
		store = network.URL() + "/0"
	}
	address := process.FreeAddress(w.T)
	args := append([]string{
		"serve", "--listen", address, "--store", store, "--lease", lease.String(), "--graphs", "testdata", "--log-format", "json",
	}, w.args...)
	return &replica{address: address, logPath: filepath.Join(dir, fmt.Sprintf("replica%d.log", i)), newCommand: func() *exec.Cmd {
		cmd := exec.Command(w.binary, args...)
		if w.env != nil {
			cmd.Env = append(os.Environ(), w.env(i)...)
		}
		return cmd
	}}
}

// fault breaks things until ctx ends, and leaves all well.
type fault func(ctx context.Context) error

// runUnderFaults runs all threads under faults and checks what became of them.
func (w *cluster) runUnderFaults(faults ...fault) []*threadDriver {
	w.Helper()
	begin := time.Now()
	drivers, ended := w.runThreads(faults...)
	took := time.Since(begin)
	w.verifyThreads(drivers, ended)
	w.verifyLists()
	w.requireCleanLogs()
	w.logSummary("%d threads with seed %d in %.1fs: %d answers applied, %d duplicates acknowledged as such",
		w.threads, *seed, took.Seconds(), w.progress.applied.Load(), w.progress.duplicates.Load())
	w.logSummary("faults: %s", w.faults)
	w.logSummary("callers: %s", w.seen)
	require.EqualValues(w, w.threads, w.progress.applied.Load())
	require.EqualValues(w, w.threads, w.progress.duplicates.Load())
	return drivers
}

// logSummary logs a line that is said again when all tests have ended.
func (w *cluster) logSummary(format string, args ...any) {
	w.Helper()
	w.Logf(format, args...)
	summary.mu.Lock()
	defer summary.mu.Unlock()
	summary.lines = append(summary.lines, strings.TrimPrefix(w.Name(), "Test")+": "+fmt.Sprintf(format, args...))
}

// requireCleanLogs checks that no server logged what must never happen.
func (w *cluster) requireCleanLogs() {
	w.Helper()
	for _, r := range w.replicas {
		data, err := os.ReadFile(r.logPath)
		require.NoError(w, err)
		for _, trouble := range []string{"panic:", "fatal error:", `"grpc.code":"Internal"`, `"grpc.code":"Unknown"`, `"grpc.code":"DataLoss"`} {
			at := bytes.Index(data, []byte(trouble))
			require.Negative(w, at, "there is trouble in %s: %s", filepath.Base(r.logPath), string(data[max(0, at):min(max(0, at)+2000, len(data))]))
		}
	}
}

func newClient(t *testing.T, address string) harness.Client {
	t.Helper()
	return harness.Dial(t, address, grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: time.Second,
	}))
}

// waitServing waits until every server serves.
func (w *cluster) waitServing() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.serverFailed, time.Minute)
	defer cancel()
	for i, c := range w.servers {
		for {
			_, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 1})
			if err == nil {
				break
			}
			if !harness.SleepContext(ctx, 20*time.Millisecond) {
				w.showThreadLogs(err)
				require.NoError(w, err, "server %d does not serve", i)
			}
		}
	}
}

// threadError is what went wrong with one thread.
type threadError struct {
	*threadDriver

	err error
}

func (e *threadError) Error() string {
	return fmt.Sprintf("thread %s, %+v: %v", e.thread, *e.threadPlan, e.err)
}

func (e *threadError) Unwrap() error { return e.err }

// showThreadLogs shows what the servers said about a failure.
func (w *cluster) showThreadLogs(failure error) {
	thread := ""
	if e, ok := errors.AsType[*threadError](failure); ok {
		thread = e.thread
	}
	for _, r := range w.replicas {
		w.Logf("%s:\n%s", filepath.Base(r.logPath), logOfThread(r.logPath, thread))
	}
	w.Logf("faults: %s", w.faults)
}

// runThreads runs all threads while everything around them breaks.
func (w *cluster) runThreads(faults ...fault) ([]*threadDriver, []*graphdv1.Run) {
	w.Helper()
	w.Logf("%d threads over %s with seed %d", w.threads, w.spread, *seed)
	drivers, ended := make([]*threadDriver, w.threads), make([]*graphdv1.Run, w.threads)
	ctx, cancel := context.WithTimeout(w.serverFailed, *limit)
	defer cancel()
	calm, stop := context.WithCancel(ctx)
	defer stop()
	var around errgroup.Group
	for _, f := range append(faults, w.reportProgress) {
		around.Go(func() error { return f(calm) })
	}
	all, ctx := errgroup.WithContext(ctx)
	for n := range w.threads {
		drivers[n] = w.newDriver(n)
		all.Go(func() error {
			run, err := drivers[n].driveThread(ctx)
			if ended[n] = run; err != nil {
				return &threadError{drivers[n], err}
			}
			return nil
		})
	}
	err := all.Wait()
	stop()
	err = errors.Join(err, around.Wait())
	if w.serverFailed.Err() != nil {
		err = errors.Join(err, context.Cause(w.serverFailed))
	}
	if err != nil {
		w.showThreadLogs(err)
		require.NoError(w, err, "seed %d, after %d of %d threads", *seed, w.progress.ended.Load(), w.threads)
	}
	return drivers, ended
}

// newDriver is who takes the n-th thread to its end.
func (w *cluster) newDriver(n int) *threadDriver {
	return &threadDriver{
		threadPlan: newThreadPlan(n, *seed, w.spread), servers: w.servers, chooseServer: rand.IntN, thread: fmt.Sprintf("t%d", n),
		tally: w.seen, progress: w.progress,
	}
}

// reportProgress says how far the threads are, for people who wait.
func (w *cluster) reportProgress(ctx context.Context) error {
	for harness.SleepContext(ctx, 10*time.Second) {
		w.Logf("%d of %d questions were asked, %d threads have ended; faults: %s",
			w.progress.asked.Load(), w.threads, w.progress.ended.Load(), w.faults)
	}
	return nil
}

// verifyThreads looks at every thread when all is calm again.
func (w *cluster) verifyThreads(drivers []*threadDriver, ended []*graphdv1.Run) {
	w.Helper()
	w.waitServing()
	ctx, cancel := context.WithTimeout(w.serverFailed, *limit)
	defer cancel()
	wrong := make([]error, len(drivers))
	var all errgroup.Group
	all.SetLimit(8)
	for i, d := range drivers {
		all.Go(func() error {
			if err := d.verifyThread(ctx, ended[i]); err != nil {
				wrong[i] = &threadError{d, err}
			}
			return nil
		})
	}
	_ = all.Wait()
	if err := errors.Join(wrong...); err != nil {
		w.showThreadLogs(err)
		require.NoError(w, err, "seed %d", *seed)
	}
}

// verifyLists checks that the lists over all threads fit the threads, on each server.
func (w *cluster) verifyLists() {
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
