// Package chaos_test kills, pauses and cuts off real workers and real servers
// while runs ask interrupts.
package chaos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// What `make chaos` sets. A seed decides which faults each worker gets and how
// interrupts are answered; when that happens is up to the machine.
var (
	runs  = flag.Int("runs", 100, "how many threads are run")
	seed  = flag.Uint64("seed", 1, "which faults and answers are drawn")
	store = flag.String("store", "sqlite", "sqlite, or memory: then the server is not killed")
	limit = flag.Duration("limit", 20*time.Minute, "how long all runs may take")
)

const maxActiveThreads = 24 // threads that are under way at the same time

// Every run ends as if nothing had happened; every memo has one value and is
// not run again once that is recorded; every answer is used once.
func TestEveryRunSurvives(t *testing.T) {
	python := pythonWorker(t, "")
	newCluster(t, []workerKind{python, python, python, python}).surviveRuns(*runs)
}

// A run is not bound to a language: any attempt of a task may be that of a worker in
// Python, TypeScript or Go, also the replay that uses an answer.
func TestEveryRunSurvivesInThreeLanguages(t *testing.T) {
	python, typescript, golang := pythonWorker(t, "chaos"), typescriptWorker(t), goWorker(t)
	w := newCluster(t, []workerKind{python, typescript, golang, python, typescript, golang})
	w.surviveRuns((*runs + 2) / 3)
}

// surviveRuns runs so many threads while everything around them breaks, and verifies them.
func (w *cluster) surviveRuns(count int) {
	t := w.T
	t.Helper()
	begin := time.Now()
	drivers, ended := w.runThreads(count)
	took := time.Since(begin)
	w.waitHealthy()

	ledger, err := readLedger(w.ledgerPath)
	require.NoError(t, err)
	found, err := checkMemos(ledger)
	require.NoError(t, err)
	byThread := make(map[string][]ledgerEntry)
	for _, e := range ledger {
		byThread[e.Thread] = append(byThread[e.Thread], e)
	}
	for i, d := range drivers {
		require.NoError(t, d.verifyThread(t.Context(), ended[i], found.values, byThread[d.thread]), d.thread)
	}
	want := 0
	for n := range count {
		want += (1 + n%2) * (3 + 1 + n%3)
	}
	require.Equal(t, want, found.records, "every memo is recorded")
	late := 0
	for _, p := range w.processes() {
		log := p.LogPath()
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		text := string(data)
		for _, trouble := range []string{"Traceback", "panic:", " ERROR "} {
			if at := strings.Index(text, trouble); at >= 0 {
				require.FailNow(t, "there is trouble in "+filepath.Base(log), text[at:min(at+2000, len(text))])
			}
		}
		late += strings.Count(text, "was not taken: the lease is not valid any more")
	}
	t.Logf("%d runs with seed %d on %s in %.1fs", count, *seed, *store, took.Seconds())
	t.Logf("faults: %s", w.faults)
	t.Logf("clients: %s; workers: %d late results refused", w.seen, late)
	t.Logf("memos: %d recorded, %d times replayed; of %d side effects %d were of workers that had lost the task, "+
		"%d of workers that were gone before they could record it, %d were overruled by an unknown record",
		found.records, found.replays, found.ran, found.refused, found.gone, found.overruled)
}

// cluster is a server with its workers, and the network between them.
type cluster struct {
	*testing.T

	dir, ledgerPath string
	address         string
	server          *process.Process
	kinds           []workerKind
	workers         []*faultInjector
	client          harness.Client
	timing          timing
	faults          *harness.Tally
	seen            *harness.Tally
	endedRuns       atomic.Int64
}

func newCluster(t *testing.T, kinds []workerKind) *cluster {
	t.Helper()
	w := &cluster{T: t, kinds: kinds, dir: t.TempDir(), address: process.FreeAddress(t), faults: &harness.Tally{}, seen: &harness.Tally{}}
	w.ledgerPath = filepath.Join(w.dir, "ledger")
	at := "memory"
	if *store == "sqlite" {
		at = "sqlite:" + filepath.Join(w.dir, "graphd.db")
	}
	binary := built.Graphd(t)
	pace := measurePace(t)
	w.timing = pace
	w.server = process.Launch(t, "server", func() *exec.Cmd {
		// With a key of its own a server does not know the leases of the one
		// before; both ways must do.
		return exec.Command(binary, "serve", "--listen", w.address, "--store", at, "--log-format", "json",
			"--worker-key", map[bool]string{true: "the same for all"}[*seed%2 == 1], "--worker-losses", "1000000",
			"--worker-beat", pace.heartbeat.String(), "--worker-lease", pace.lease.String())
	})
	w.client = harness.Dial(t, w.address)
	w.putGraph()
	for i, kind := range kinds {
		proxy := network.NewProxy(t, w.address)
		worker := process.Launch(t, fmt.Sprintf("worker%d-%s", i, kind.language), func() *exec.Cmd {
			cmd := exec.Command(kind.command[0], kind.command[1:]...)
			cmd.Env = append(os.Environ(), "CHAOS_SERVER="+proxy.Address(), "CHAOS_LEDGER="+w.ledgerPath)
			cmd.Env = append(cmd.Env, kind.environment...)
			return cmd
		})
		w.workers = append(w.workers, &faultInjector{
			worker: worker, proxy: proxy, random: rand.New(rand.NewPCG(*seed, uint64(i))), tally: w.faults,
			timing: pace, maxCalm: pace.scaleDuration(1500 * time.Millisecond),
		})
	}
	w.waitConnected()
	return w
}

// putGraph gives the server the graph that workers in several languages are part of. The
// graph that workers bring along has the same name, and is another version of it.
func (w *cluster) putGraph() {
	w.Helper()
	document, err := os.ReadFile("graph.yaml")
	require.NoError(w, err)
	put := &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: string(document)}}
	_, _, err = callUntilAnswered(w.Context(), w.client.PutGraph, put)
	require.NoError(w, err)
}

// processes lists the server and its workers.
func (w *cluster) processes() []*process.Process {
	all := []*process.Process{w.server}
	for _, t := range w.workers {
		all = append(all, t.worker)
	}
	return all
}

// waitConnected waits until every worker is.
func (w *cluster) waitConnected() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for {
		list, err := w.client.ListWorkers(ctx, &graphdv1.ListWorkersRequest{})
		if err == nil && len(list.GetWorkers()) == len(w.workers) {
			return
		}
		if !harness.SleepContext(ctx, 20*time.Millisecond) {
			require.FailNow(w, "not every worker is connected", "%v %v", list.GetWorkers(), err)
		}
	}
}

// runThreads runs all threads while everything around them breaks.
func (w *cluster) runThreads(count int) ([]*threadDriver, []*graphdv1.Run) {
	w.Helper()
	drivers, ended := make([]*threadDriver, count), make([]*graphdv1.Run, count)
	ctx, cancel := context.WithTimeout(w.Context(), *limit)
	defer cancel()
	calm, stop := context.WithCancel(ctx)
	defer stop()
	var troubles errgroup.Group
	for _, t := range w.workers {
		troubles.Go(func() error { return t.injectFaults(calm) })
	}
	troubles.Go(func() error { return w.breakServer(calm) })
	troubles.Go(func() error { return w.reportProgress(calm, count) })
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(maxActiveThreads)
	for n := range count {
		drivers[n] = newDriver(w.client, n, w.kinds[0].bringsGraph, *seed, w.seen)
		all.Go(func() error {
			run, err := drivers[n].driveThread(ctx)
			if ended[n] = run; err != nil {
				return fmt.Errorf("thread t%d: %w", n, err)
			}
			w.endedRuns.Add(1)
			return nil
		})
	}
	err := all.Wait()
	stop()
	if err = errors.Join(err, troubles.Wait()); err != nil {
		w.Logf("faults: %s", w.faults)
		require.NoError(w, err, "seed %d, after %d of %d runs", *seed, w.endedRuns.Load(), count)
	}
	return drivers, ended
}

// breakServer kills the server or lets it hang, now and then.
func (w *cluster) breakServer(ctx context.Context) error {
	random := rand.New(rand.NewPCG(*seed, 99))
	for harness.SleepContext(ctx, w.timing.scaleDuration(2*time.Second+time.Duration(random.Int64N(int64(6*time.Second))))) {
		if how := w.server.EndState(); how != "" {
			return fmt.Errorf("the server has ended by itself: %s", how)
		}
		if *store == "sqlite" && random.IntN(3) > 0 {
			w.faults.CountEvent("server killed")
			w.server.Kill()
			harness.SleepContext(ctx, w.timing.randomDelay(random, 0, 2))
			if err := w.server.Start(); err != nil {
				return err
			}
			continue
		}
		w.faults.CountEvent("server paused")
		w.server.SendSignal(syscall.SIGSTOP)
		harness.SleepContext(ctx, w.timing.randomDelay(random, 0.3, 3))
		w.server.SendSignal(syscall.SIGCONT)
	}
	return nil
}

// reportProgress says how far the runs are, for people who wait.
func (w *cluster) reportProgress(ctx context.Context, count int) error {
	for harness.SleepContext(ctx, 10*time.Second) {
		w.Logf("%d of %d runs have ended; faults: %s", w.endedRuns.Load(), count, w.faults)
	}
	return nil
}

// waitHealthy waits until everything is well again: a worker that lives must find
// its way back, whatever was done to it.
func (w *cluster) waitHealthy() {
	w.Helper()
	w.waitConnected()
	for i, t := range w.workers {
		require.Empty(w, t.worker.EndState(), "worker %d has ended by itself: %s", i, t.worker.LogTail(20))
	}
}
