// Package ledger_test kills real servers, and cuts connections, while real workers
// are in the middle of effects. Each worker writes down every effect before it happens, in a file of
// its own: no effect behind a memo happens twice while its worker lives.
package ledger_test

import (
	"context"
	"encoding/json"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// What `make ledger` sets.
var (
	kills = flag.Int("kills", 3, "how often servers are killed on each store")
	seed  = flag.Uint64("seed", 1, "which servers are killed, and when")
	cut   = flag.Duration("cut", 500*time.Millisecond, "how long until the next connection is cut; up to half as long again")
	every = flag.Duration("every", 3*time.Second, "how long a server lives; up to half as long again")
	// A killed server starts within 2 s on a busy machine, and the connections of its
	// workers may be cut twice meanwhile. A lease of 3 s ends before some workers have
	// reached a server again.
	lease = flag.Duration("lease", 8*time.Second, "how long a task waits for its worker; longer than a worker takes to reach a server again")
	limit = flag.Duration("limit", 5*time.Minute, "how long all may take")
)

const (
	maxActiveThreads = 10 // that are under way at the same time
	roundsPerRun     = 1  // of each run
	// effectsPerRound of a round: two each of left and right, four of inner, of which two
	// may be in the graph that it calls, and that of close.
	effectsPerRound = 9
)

// One server owns a file, and is killed.
func TestEffectsHappenOnceOnSQLite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "graphd.db")
	w := newCluster(t, scenario{store: "sqlite:" + file, serverCount: 1, calls: true})
	w.verifyLedgers(w.runWithFaults())
}

// Two servers share a Redis, and one of them is killed: the other takes its
// threads over, whose workers come back to the first.
func TestEffectsHappenOnceOnRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendfsync", "no")
	w := newCluster(t, scenario{store: redis.URL(""), serverCount: 2, calls: true})
	w.verifyLedgers(w.runWithFaults())
}

// Workers whose connections are cut come to the other server, while the first lives
// and has their tasks. No node calls a graph: its worker and that of the called node
// may come to different servers, see "What remains" in docs/concepts.md.
func TestEffectsMoveWithTheirWorkers(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendfsync", "no")
	w := newCluster(t, scenario{store: redis.URL(""), serverCount: 2, redirects: true})
	w.verifyLedgers(w.runWithFaults())
}

// scenario is what breaks, and under what.
type scenario struct {
	store       string
	serverCount int
	calls       bool // a node calls a graph
	redirects   bool // a worker whose connection is cut comes to any server
}

// cluster is some servers on one store, each with its workers.
type cluster struct {
	*testing.T

	scenario      scenario
	dir           string
	servers       []*server
	workers       []*process.Process
	proxies       []*network.Proxy // to the server of each worker
	ledgers       []string
	random        *rand.Rand
	startedRuns   atomic.Int64 // runs
	killCount     int
	cutCount      int
	redirectCount int // of the cuts, those after which the worker came to another server
}

type server struct {
	harness.Client
	*process.Process

	address string
}

func newCluster(t *testing.T, of scenario) *cluster {
	t.Helper()
	binary := built.Graphd(t)
	w := &cluster{T: t, scenario: of, dir: t.TempDir(), random: rand.New(rand.NewPCG(*seed, uint64(of.serverCount)))}
	for i := range of.serverCount {
		address := process.FreeAddress(t)
		p := process.Launch(t, fmt.Sprint("server", i), func() *exec.Cmd {
			return exec.Command(binary, "serve", "--listen", address, "--store", of.store, "--log-format", "json", "--log-level", "warn",
				"--lease", "1s", "--worker-beat", (*lease / 8).String(), "--worker-lease", lease.String())
		})
		w.servers = append(w.servers, &server{harness.Dial(t, address), p, address})
	}
	for i := range 4 {
		w.startWorker(process.Python(t), i, w.servers[i%of.serverCount])
	}
	for _, s := range w.servers {
		w.waitConnected(s, 4/of.serverCount)
	}
	return w
}

// startWorker starts a worker that is attached to a server.
func (w *cluster) startWorker(interpreter string, i int, at *server) {
	w.Helper()
	calls := "no"
	if w.scenario.calls {
		calls = "yes"
	}
	ledger := filepath.Join(w.dir, fmt.Sprintf("ledger%d", i))
	w.ledgers = append(w.ledgers, ledger)
	proxy := network.NewProxy(w.T, at.address)
	w.proxies = append(w.proxies, proxy)
	w.workers = append(w.workers, process.Launch(w.T, fmt.Sprint("worker", i), func() *exec.Cmd {
		cmd := exec.Command(interpreter, "charging_worker.py")
		cmd.Env = append(os.Environ(), "LEDGER_NAME="+fmt.Sprint("w", i), "LEDGER_FILE="+ledger, "LEDGER_SERVER="+proxy.Address(),
			"LEDGER_LONGEST=0.5", "LEDGER_CALLS="+calls)
		return cmd
	}))
}

// waitConnected waits until so many workers are attached to a server.
func (w *cluster) waitConnected(s *server, workers int) {
	w.Helper()
	require.Eventually(w, func() bool {
		list, err := s.ListWorkers(w.Context(), &graphdv1.ListWorkersRequest{})
		return err == nil && len(list.GetWorkers()) == workers
	}, time.Minute, 20*time.Millisecond)
}

// runWithFaults kills servers while runs go on, and returns how many runs there
// were.
func (w *cluster) runWithFaults() int {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), *limit)
	defer cancel()
	var over atomic.Bool
	all, ctx := errgroup.WithContext(ctx)
	for range maxActiveThreads {
		all.Go(func() error {
			for !over.Load() {
				if err := w.driveThread(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Go(func() error {
		defer over.Store(true)
		return w.killServers(ctx)
	})
	all.Go(func() error {
		w.cutConnections(ctx, &over)
		return nil
	})
	require.NoError(w, all.Wait(), "after %d kills, seed %d", w.killCount, *seed)
	return int(w.startedRuns.Load())
}

// killServers kills one server after the other.
func (w *cluster) killServers(ctx context.Context) error {
	for w.killCount < *kills {
		if !harness.SleepContext(ctx, *every+time.Duration(w.random.Int64N(int64(*every)/2))) {
			return ctx.Err()
		}
		s := w.servers[w.random.IntN(len(w.servers))]
		if s.HasEnded() {
			return fmt.Errorf("the server at %s has ended by itself: %s", s.address, s.LogTail(20))
		}
		s.Kill()
		w.killCount++
		if !harness.SleepContext(ctx, time.Duration(w.random.Int64N(int64(*every)/8))) {
			return ctx.Err()
		}
		if err := s.Start(); err != nil {
			return err
		}
		if w.killCount%20 == 0 {
			w.Logf("%d kills, %d runs begun", w.killCount, w.startedRuns.Load())
		}
	}
	return nil
}

// cutConnections breaks the connections of one worker after the other. For a moment
// before, the server gets nothing from the worker, but goes on to offer it tasks.
// Where connections are redirected the worker comes back to any server, while the one
// before may live.
func (w *cluster) cutConnections(ctx context.Context, over *atomic.Bool) {
	random := rand.New(rand.NewPCG(*seed, uint64(len(w.servers)+100)))
	for !over.Load() && harness.SleepContext(ctx, *cut+time.Duration(random.Int64N(int64(*cut)/2))) {
		proxy := w.proxies[random.IntN(len(w.proxies))]
		proxy.Mute(network.ToServer)
		harness.SleepContext(ctx, time.Duration(random.Int64N(int64(*cut))))
		if w.scenario.redirects && proxy.Redirect(w.servers[random.IntN(len(w.servers))].address) {
			w.redirectCount++
		}
		proxy.Cut()
		w.cutCount++
	}
}

// driveThread takes one thread from its input to its end.
func (w *cluster) driveThread(ctx context.Context) error {
	n := int(w.startedRuns.Add(1))
	thread := fmt.Sprint("t", n)
	run, err := callUntilAnswered(ctx, w, n, func(ctx context.Context, s *server) (*graphdv1.Run, error) {
		return s.StartRun(ctx, &graphdv1.StartRunRequest{
			RequestId: "start-" + thread,
			Run: &graphdv1.RunSpec{
				ThreadId: thread, CreateThread: true, Graph: "ledger",
				Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(fmt.Sprintf(`{"rounds":%d,"paid":[]}`, roundsPerRun))},
			},
		})
	})
	if err != nil {
		return fmt.Errorf("start of %s: %w", thread, err)
	}
	run, err = callUntilAnswered(ctx, w, n, func(ctx context.Context, s *server) (*graphdv1.Run, error) {
		stopped, err := s.WaitRun(ctx, &graphdv1.WaitRunRequest{
			ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(5 * time.Second),
		})
		if err == nil && !harness.IsStopped(stopped.GetState()) {
			return nil, status.Error(codes.DeadlineExceeded, "the run goes on")
		}
		return stopped, err
	})
	if err != nil {
		return fmt.Errorf("end of %s: %w", thread, err)
	}
	var out struct{ Paid []string }
	if err := json.Unmarshal([]byte(run.GetOutput().GetJson()), &out); err != nil || len(out.Paid) != roundsPerRun*effectsPerRound {
		return fmt.Errorf("%s ended as %s with %s %v", thread, run.GetState(), run.GetOutput().GetJson(), run.GetFailure())
	}
	return nil
}

// callUntilAnswered repeats a call, at one server after the other, while they are away.
func callUntilAnswered(
	ctx context.Context, w *cluster, n int, call func(context.Context, *server) (*graphdv1.Run, error),
) (*graphdv1.Run, error) {
	away := []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.NotFound}
	run, _, err := harness.RepeatCall(ctx, away, 50*time.Millisecond, func(ctx context.Context) (*graphdv1.Run, error) {
		n++
		return call(ctx, w.servers[n%len(w.servers)])
	})
	return run, err
}

// ledgerEntry is a line of a ledger.
type ledgerEntry struct{ Event, Value, Key, Thread, Task, What string }

// verifyLedgers reads the ledgers: every effect happened, and happened once, under a key
// of its own.
func (w *cluster) verifyLedgers(runs int) {
	w.Helper()
	begun, byKey, ended := make(map[[3]string][]string), make(map[string][3]string), 0
	for i, ledger := range w.ledgers {
		require.False(w, w.workers[i].HasEnded(), "a worker has left: %s", w.workers[i].LogTail(20))
		entries, err := harness.ReadLedger[ledgerEntry](ledger, false)
		require.NoError(w, err)
		for _, e := range entries {
			at := [3]string{e.Thread, e.Task, e.What}
			if e.Event == "end" {
				ended++
				continue
			}
			begun[at] = append(begun[at], e.Value)
			other, known := byKey[e.Key]
			require.True(w, e.Key != "" && (!known || other == at), "%v and %v have the key %q", at, other, e.Key)
			byKey[e.Key] = at
		}
	}
	doubled := 0
	for at, values := range begun {
		if len(values) > 1 {
			doubled++
			w.Errorf("%v happened %d times: %v", at, len(values), values)
		}
	}
	w.Logf("%d kills, %d cuts, %d of them to another server, seed %d: %d runs, %d effects, %d of them doubled",
		w.killCount, w.cutCount, w.redirectCount, *seed, runs, len(begun), doubled)
	require.Len(w, begun, runs*roundsPerRun*effectsPerRound)
	require.Equal(w, len(begun)+doubled, ended)
}
