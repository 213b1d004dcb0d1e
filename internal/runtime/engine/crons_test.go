package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// firedRuns are the runs whose node has run. A node may run again for the same one; one on a thread
// that was made again is another.
type firedRuns struct {
	store checkpoint.Store

	mu   sync.Mutex
	runs map[string]bool
}

func (f *firedRuns) newNode() nodeFunc {
	return func(ctx context.Context, c *nodeCall) pregel.Result {
		head, err := f.store.Head(ctx, c.Thread)
		if err != nil {
			return failedResult(err.Error())
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.runs == nil {
			f.runs = map[string]bool{}
		}
		f.runs[c.Thread+" "+head.LogID+" "+c.Run] = true
		return logUpdate(`"fired"`)
	}
}

func (f *firedRuns) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

// newCronCluster returns a cluster whose crons start runs with their text as input, and what has run.
func newCronCluster(t *testing.T, at int64, mode faultMode) (*cluster, *firedRuns) {
	t.Helper()
	c := newCluster(t, memory.New(memory.Options{}), at, mode)
	t.Cleanup(c.closeAll)
	fired := &firedRuns{store: c.store}
	c.nodes.funcs = map[string]nodeFunc{"work": fired.newNode()}
	c.compileGraphs(chainSpec("g", channelsLog, "work"))
	c.opts.ParseCronRun = func(cron *runtime.Cron) (runtime.StartRequest, error) {
		return runtime.StartRequest{CreateThread: true, Concurrency: runtime.EnqueueBusy, Request: newInput(string(cron.Run))}, nil
	}
	return c, fired
}

// createCron makes a cron that fires each minute.
func (c *cluster) createCron(cron runtime.Cron) {
	c.t.Helper()
	cron.Tenant, cron.ID, cron.Graph, cron.StartedBy = "default", "c", "g", "ann"
	if cron.Schedule == "" {
		cron.Schedule = "* * * * *"
	}
	cron.Run = "x"
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Crons().CreateCron(ctx, runtime.CreateCronRequest{Cron: cron, RequestID: "create", Digest: "create"})
		return err
	})
}

func (c *cluster) readCron() runtime.Cron {
	c.t.Helper()
	cron, err := c.engine.Crons().GetCron(context.Background(), "default", "c")
	require.NoError(c.t, err)
	return cron
}

// A cron outlives its server, starts its runs as its caller, and leaves out what it has missed but for
// one firing.
func TestACronFiresByItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := newCronCluster(t, 0, faultRefused)
		c.startEngine(c.faulty)
		begin := time.Now() // it is midnight
		c.createCron(runtime.Cron{Schedule: "*/10 * * * *", Thread: "t"})
		sleepVirtual(35 * time.Minute)
		require.Equal(t, 3, fired.count())
		runs, err := c.store.Runs(t.Context(), "t", 0, 0)
		require.NoError(t, err)
		require.Len(t, runs, 3)
		require.Equal(t, "ann", runs[0].StartedBy)
		cron := c.readCron()
		require.Equal(t, runs[0].ID, cron.Last.Run)
		require.Equal(t, begin.Add(30*time.Minute).UTC(), cron.Last.Time)
		require.Equal(t, begin.Add(40*time.Minute).UTC(), cron.Next)

		c.faulty.killProcess()
		sleepVirtual(58 * time.Minute) // five firings are missed
		require.Equal(t, 3, fired.count())
		c.startEngine(c.store)
		sleepVirtual(time.Minute)
		require.Equal(t, 4, fired.count())
		cron = c.readCron()
		require.Equal(t, begin.Add(40*time.Minute).UTC(), cron.Last.Time)
		require.Equal(t, begin.Add(100*time.Minute).UTC(), cron.Next)
		sleepVirtual(10 * time.Minute)
		require.Equal(t, 5, fired.count())
	})
}

// A refused firing is noted, and the next one comes.
func TestARefusedFiringDoesNotStopTheCron(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := newCronCluster(t, 0, faultRefused)
		c.opts.ParseCronRun = func(*runtime.Cron) (runtime.StartRequest, error) {
			return runtime.StartRequest{Request: newInput("x")}, nil
		}
		c.startEngine(c.store)
		c.createCron(runtime.Cron{Thread: "t"}) // there is no such thread yet
		sleepVirtual(90 * time.Second)
		require.Equal(t, runtime.ReasonThreadNotFound, c.readCron().Last.Reason)
		require.Empty(t, c.readCron().Last.Run)
		_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t"})
		require.NoError(t, err)
		sleepVirtual(time.Minute)
		require.Equal(t, 1, fired.count())
		require.Empty(t, c.readCron().Last.Reason)
	})
}

// Two servers on one store start one run each time.
func TestOneServerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := newCronCluster(t, 0, faultRefused)
		for range 3 {
			c.startEngine(c.store)
		}
		c.createCron(runtime.Cron{ThreadTTL: 5 * time.Minute})
		sleepVirtual(30*time.Minute + 10*time.Second)
		require.Equal(t, 30, fired.count())
		sleepVirtual(time.Minute)
		threads, err := c.store.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "default"})
		require.NoError(t, err)
		require.LessOrEqual(t, len(threads), 7, "the threads of earlier firings are gone")
		require.NotEmpty(t, threads)
	})
}

// A cron that is paused, or over, does not fire.
func TestACronPausesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fired := newCronCluster(t, 0, faultRefused)
		c.startEngine(c.store)
		c.createCron(runtime.Cron{Thread: "t", End: time.Now().Add(20 * time.Minute)})
		update := func(req runtime.UpdateCronRequest) {
			req.Tenant, req.ID = "default", "c"
			_, err := c.engine.Crons().UpdateCron(t.Context(), req)
			require.NoError(t, err)
		}
		sleepVirtual(2*time.Minute + 30*time.Second)
		update(runtime.UpdateCronRequest{IsPaused: new(true)})
		require.True(t, c.readCron().Next.IsZero())
		sleepVirtual(10 * time.Minute)
		require.Equal(t, 2, fired.count())
		update(runtime.UpdateCronRequest{IsPaused: new(false)})
		sleepVirtual(2 * time.Minute)
		require.Equal(t, 4, fired.count(), "what passed meanwhile is left out")
		update(runtime.UpdateCronRequest{Schedule: new("*/2 * * * *")})
		sleepVirtual(time.Hour)
		require.Equal(t, 7, fired.count(), "the last one is at its end")
		require.True(t, c.readCron().Next.IsZero())
		require.NoError(t, c.engine.Crons().DeleteCron(t.Context(), "default", "c", 0, nil))
		_, err := c.engine.Crons().GetCron(t.Context(), "default", "c")
		require.Equal(t, runtime.ReasonCronNotFound, errorReason(err))
	})
}

// Whichever call to the store fails, and if the server dies there: a time of the schedule has one run.
// What a thread remembers of it is gone before another server comes.
func TestACronFiresOnceOverCrashes(t *testing.T) {
	for name, cron := range map[string]runtime.Cron{"on a thread": {Thread: "t"}, "on new threads": {ThreadTTL: time.Minute}} {
		var calls int64
		synctest.Test(t, func(t *testing.T) { calls = fireOverCrash(t, cron, 0, faultRefused) })
		require.GreaterOrEqual(t, calls, int64(8))
		for at := int64(1); at <= calls; at++ {
			for _, mode := range faultModes {
				t.Run(fmt.Sprintf("%s, call %d %s", name, at, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { fireOverCrash(t, cron, at, mode) })
				})
			}
		}
	}
}

// sweepWithoutCrons lets a server remove what has expired that fires no crons.
func (c *cluster) sweepWithoutCrons(d time.Duration) {
	c.t.Helper()
	parse := c.opts.ParseCronRun
	c.opts.ParseCronRun = nil
	c.startEngine(c.store)
	sleepVirtual(d)
	c.engine.Close()
	c.opts.ParseCronRun = parse
}

// fireOverCrash lets a cron fire that has one time, and returns how many calls the first server made
// until its run had ended.
func fireOverCrash(t *testing.T, cron runtime.Cron, at int64, mode faultMode) int64 {
	t.Helper()
	c, fired := newCronCluster(t, at, mode)
	c.startEngine(c.faulty)
	cron.End = time.Now().Add(90 * time.Second)
	c.createCron(cron)
	sleepVirtual(70 * time.Second)
	calls := c.faulty.callCount.Load()
	if c.faulty.isDead.Load() && c.engine == c.engines[0] {
		c.sweepWithoutCrons(5 * time.Minute)
		c.startEngine(c.store)
	}
	sleepVirtual(3 * time.Minute)
	last := c.readCron().Last
	require.NotNil(t, last)
	require.Empty(t, last.Reason)
	require.Equal(t, 1, fired.count())
	threads, err := c.store.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "default"})
	require.NoError(t, err)
	if cron.Thread != "" {
		require.Len(t, threads, 1)
		require.Equal(t, last.Run, threads[0].Run)
		return calls
	}
	require.Empty(t, threads, "the thread has its end")
	return calls
}
