package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Bounds of a measurement.
const (
	maxRuns  = 100_000         // the tasks of one worker
	lanes    = 64              // clients that start runs
	patience = 5 * time.Minute // until what should happen has happened
	glance   = 50 * time.Millisecond
)

// bench is one measurement: servers on a store, a worker, and runs that wait for it.
type bench struct {
	options options
	count   int
	dir     string
	redis   *process.Redis // nil = another store
	store   string         // its URL

	addresses []string // of the servers
	server    *process.Graphd
	heir      *process.Graphd // takes over, nil = the server is not killed, or is started again
	client    *client.Client
	task      *task
	endWorker func() error
}

// task is the node of the runs. It waits until it is released.
type task struct {
	waiting atomic.Int64 // attempts that wait
	release chan struct{}
}

type state struct {
	Done bool `json:"done"`
}

func (t *task) wait(ctx context.Context, _ state) (any, error) {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case <-t.release:
		return state{Done: true}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// measureRuns puts up the servers and the worker, and takes the figures.
func measureRuns(ctx context.Context, o options, store string, count int) (*figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends every process
	b := &bench{options: o, count: count, task: &task{release: make(chan struct{})}}
	defer b.closeAll()
	if err := errors.Join(b.openStore(ctx, store), b.chooseAddresses(ctx)); err != nil {
		return nil, err
	}
	if err := b.startServers(ctx); err != nil {
		return nil, err
	}
	if err := b.startWorker(ctx); err != nil {
		return nil, err
	}
	f := &figures{commands: -1}
	for _, part := range []func(context.Context, *figures) error{b.startRuns, b.watchIdle, b.killServer, b.endRuns} {
		if err := part(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (b *bench) openStore(ctx context.Context, store string) (err error) {
	if b.dir, err = os.MkdirTemp("", "graphd-bench-live-"); err != nil {
		return err
	}
	switch fsync, isRedis := strings.CutPrefix(store, "redis-"); {
	case isRedis:
		b.redis, err = process.StartRedis(ctx, fsync)
		if err == nil {
			b.store = b.redis.URL(0)
		}
	case store == "sqlite":
		b.store = "sqlite:" + filepath.Join(b.dir, "graphd.db")
	default:
		b.store = store
	}
	return err
}

func (b *bench) chooseAddresses(ctx context.Context) error {
	for range 2 {
		address, err := process.FreeAddress(ctx)
		if err != nil {
			return err
		}
		b.addresses = append(b.addresses, address)
	}
	return nil
}

// startServers starts the server, and beside it, on Redis, the one that takes over.
func (b *bench) startServers(ctx context.Context) (err error) {
	if b.server, err = b.startServer(ctx, b.addresses[0]); err != nil {
		return err
	}
	if b.options.kill && b.redis != nil {
		b.heir, err = b.startServer(ctx, b.addresses[1])
	}
	return err
}

func (b *bench) startServer(ctx context.Context, address string) (*process.Graphd, error) {
	graphs := filepath.Join(b.dir, "graphs")
	if err := os.MkdirAll(graphs, 0o700); err != nil {
		return nil, err
	}
	return process.StartGraphd(ctx, process.Launch{
		Binary: b.options.graphd, Store: b.store, Graphs: graphs, Address: address,
		Options: []string{"--max-live-runs", fmt.Sprint(2 * maxRuns)},
	})
}

// startWorker starts the worker, which goes to the next server when one is away.
func (b *bench) startWorker(ctx context.Context) (err error) {
	next := grpc.WithContextDialer(b.dialNext)
	if b.client, err = client.Dial(b.addresses[0], next); err != nil {
		return err
	}
	serves := graph.New("live").State(state{}).Node("wait", graph.Typed(b.task.wait)).Chain(graph.Start, "wait", graph.End)
	w, err := worker.Dial(b.addresses[0], worker.Options{Graphs: []*graph.Builder{serves}, Slots: maxRuns, DrainTimeout: time.Second}, next)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	b.endWorker = func() error {
		stop()
		return <-ended
	}
	select {
	case <-w.Ready():
		return nil
	case err := <-ended:
		return errors.Join(errors.New("the worker has ended"), err)
	}
}

// dialNext connects to the first server that is there.
func (b *bench) dialNext(ctx context.Context, _ string) (conn net.Conn, err error) {
	for _, address := range b.addresses {
		if conn, err = new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// startRuns starts the runs, and waits until each has a task that waits.
func (b *bench) startRuns(ctx context.Context, f *figures) error {
	var before usage
	if err := before.readUsage(ctx, b); err != nil {
		return err
	}
	began := time.Now()
	var next atomic.Int64
	_, err := workload.Repeat(ctx, lanes, 1, 1, func(ctx context.Context, _ int, _ *workload.Times) error {
		for n := int(next.Add(1)) - 1; n < b.count; n = int(next.Add(1)) - 1 {
			spec := &graphdv1.RunSpec{ThreadId: threadName(n), Graph: "live", CreateThread: true}
			spec.Start = &graphdv1.RunSpec_Input{Input: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "{}"}}}
			if _, err := b.client.Graphs().StartRun(ctx, &graphdv1.StartRunRequest{Run: spec}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.awaitCount(ctx, "tasks that wait", func() (int, error) { return int(b.task.waiting.Load()), nil }); err != nil {
		return err
	}
	f.started = time.Since(began)
	var after usage
	if err := after.readUsage(ctx, b); err != nil {
		return err
	}
	runs := float64(b.count)
	f.memory, f.heap, f.stacks = (after.memory-before.memory)/runs, (after.heap-before.heap)/runs, (after.stacks-before.stacks)/runs
	f.goroutines = (after.goroutines - before.goroutines) / runs
	return nil
}

func threadName(n int) string { return fmt.Sprintf("live-%d", n) }

// watchIdle measures what the runs cost while nothing happens.
func (b *bench) watchIdle(ctx context.Context, f *figures) error {
	var before, after usage
	if err := before.readUsage(ctx, b); err != nil {
		return err
	}
	if err := sleep(ctx, b.options.quiet); err != nil {
		return err
	}
	if err := after.readUsage(ctx, b); err != nil {
		return err
	}
	seconds := after.at.Sub(before.at).Seconds()
	f.processor = (after.processor - before.processor).Seconds() / seconds
	if b.redis != nil {
		f.commands = (after.commands - before.commands) / seconds
	}
	return nil
}

// killServer kills the server, and waits until another one has taken over all runs.
func (b *bench) killServer(ctx context.Context, f *figures) error {
	if !b.options.kill || b.store == "memory" {
		return nil
	}
	began := time.Now()
	b.server.Kill()
	if b.heir == nil {
		var err error
		if b.heir, err = b.startServer(ctx, b.addresses[1]); err != nil {
			return err
		}
	}
	err := b.awaitCount(ctx, "runs that are driven", func() (int, error) {
		n, err := b.heir.Metric(ctx, `graphd_runs_active{graph="live"}`)
		if err != nil {
			n = 0 // it has driven none yet
		}
		return int(n), ctx.Err()
	})
	f.takenOver = time.Since(began)
	return err
}

// endRuns lets the tasks end, and waits for the end of every run.
func (b *bench) endRuns(ctx context.Context, f *figures) error {
	began := time.Now()
	close(b.task.release)
	var next atomic.Int64
	_, err := workload.Repeat(ctx, lanes, 1, 1, func(ctx context.Context, _ int, _ *workload.Times) error {
		for n := int(next.Add(1)) - 1; n < b.count; n = int(next.Add(1)) - 1 {
			if err := b.awaitEnd(ctx, threadName(n)); err != nil {
				return err
			}
		}
		return nil
	})
	f.ended = time.Since(began)
	return err
}

func (b *bench) awaitEnd(ctx context.Context, thread string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		t, err := b.client.Threads().GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: thread, View: graphdv1.ThreadView_THREAD_VIEW_FULL})
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", thread, err)
		case t.GetState() == graphdv1.ThreadState_THREAD_STATE_IDLE && t.GetValues().GetJson() == `{"done":true}`:
			return nil
		case t.GetState() == graphdv1.ThreadState_THREAD_STATE_FAILED:
			return fmt.Errorf("the run of %s has failed", thread)
		}
		if err := sleep(ctx, glance); err != nil {
			return fmt.Errorf("%s does not end: %w", thread, err)
		}
	}
}

// awaitCount waits until a number is that of the runs.
func (b *bench) awaitCount(ctx context.Context, what string, read func() (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, err := read()
		if err != nil || n >= b.count {
			return err
		}
		if err := sleep(ctx, glance); err != nil {
			return fmt.Errorf("%d %s of %d: %w", n, what, b.count, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *bench) closeAll() {
	if b.endWorker != nil {
		_ = b.endWorker()
	}
	if b.client != nil {
		_ = b.client.Close()
	}
	for _, server := range []*process.Graphd{b.server, b.heir} {
		if server != nil {
			server.Stop()
		}
	}
	if b.redis != nil {
		b.redis.Stop()
	}
	_ = os.RemoveAll(b.dir)
}
