package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newLiveCluster makes a cluster in real time with one engine.
func newLiveCluster(t *testing.T, code map[string]nodeFunc, specs ...*graph.Spec) *cluster {
	t.Helper()
	c := newCluster(t, memory.New(memory.Options{}), 0, faultRefused)
	c.nodes.funcs = code
	c.compileGraphs(specs...)
	c.startEngine(c.store)
	t.Cleanup(c.closeAll)
	return c
}

// callTogether makes n calls at the same time and returns how often each reason came
// out, "" for success.
func callTogether(n int, call func(i int) error) map[string]int {
	out := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gun
			r := errorReason(call(i))
			mu.Lock()
			defer mu.Unlock()
			out[r]++
		})
	}
	close(gun)
	all.Wait()
	return out
}

// blockedNode is a node that waits until the test lets it go, and counts its runs.
type blockedNode struct {
	runCount atomic.Int64
	proceed  chan struct{}
}

func newBlockedNode() *blockedNode { return &blockedNode{proceed: make(chan struct{})} }

func (b *blockedNode) runNode(ctx context.Context, c *nodeCall) pregel.Result {
	b.runCount.Add(1)
	select {
	case <-b.proceed:
		return logUpdate(`"` + c.Node.Name + `"`)
	case <-ctx.Done():
		return failedResult("cut off")
	}
}

const clientCount = 16

func newInput(text string) checkpoint.RunRequest {
	return checkpoint.RunRequest{Input: payload.JSON(`{"log":["` + text + `"]}`)}
}

func TestConcurrentStarts(t *testing.T) {
	for name, create := range map[string]bool{"of a new thread": true, "of a thread": false} {
		t.Run(name, func(t *testing.T) {
			work := newBlockedNode()
			c := newLiveCluster(t, map[string]nodeFunc{"work": work.runNode}, chainSpec("g", channelsLog, "work"))
			if !create {
				_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
				require.NoError(t, err)
			}
			got := callTogether(clientCount, func(i int) error {
				_, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: create, Graph: "g", Request: newInput(fmt.Sprint(i))})
				return err
			})
			close(work.proceed)
			require.Equal(t, map[string]int{"": 1, runtime.ReasonThreadBusy: clientCount - 1}, got)
			r, err := c.engine.WaitRun(t.Context(), "t", "")
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.EqualValues(t, 1, work.runCount.Load())
		})
	}
}

func TestSameRequestAtOnce(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"work": work.runNode}, chainSpec("g", channelsLog, "work"))
	ids := make([]string, clientCount)
	got := callTogether(clientCount, func(i int) error {
		s, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Graph: "g", Request: newInput("x"), RequestID: "again", Digest: "d",
		})
		if err == nil {
			ids[i] = s.Run.Thread + "/" + s.Run.ID
		}
		return err
	})
	require.Equal(t, map[string]int{"": clientCount}, got)
	require.Len(t, slices.Compact(ids), 1)
	close(work.proceed)
	thread, _, _ := strings.Cut(ids[0], "/")
	_, err := c.engine.WaitRun(t.Context(), thread, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, work.runCount.Load())

	_, err = c.engine.Start(t.Context(), runtime.StartRequest{Graph: "g", Request: newInput("y"), RequestID: "again", Digest: "other"})
	require.Equal(t, runtime.ReasonRequestIDConflict, errorReason(err))

	threads := callTogether(clientCount, func(int) error {
		_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Graph: "g", RequestID: "make", Digest: "d"})
		return err
	})
	require.Equal(t, map[string]int{"": clientCount}, threads)
	updates := callTogether(clientCount, func(int) error {
		_, err := c.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{
			Thread: thread, Values: `{"log":["update"]}`, AsNode: "work", RequestID: "update", Digest: "d",
		})
		return err
	})
	require.Equal(t, map[string]int{"": clientCount}, updates)
	s, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(t, err)
	require.JSONEq(t, `{"log":["x","work","update"],"n":1}`, string(s.Values))
}

func TestSameRunQueuedAtOnce(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"work": work.runNode}, chainSpec("g", channelsLog, "work"))
	c.beginRun("first")
	start := func(run, text string) error {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Run: run, Concurrency: runtime.EnqueueBusy, Request: newInput(text),
		})
		return err
	}
	require.Equal(t, map[string]int{"": clientCount}, callTogether(clientCount, func(int) error { return start("mine", "second") }))
	require.Equal(t, runtime.ReasonRunExists, errorReason(start("mine", "third")))
	head, err := c.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, head.Queue, "queued once")
	close(work.proceed)
	r, err := c.engine.WaitRun(t.Context(), "t", "mine")
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	require.EqualValues(t, 2, work.runCount.Load())
}

// rendezvousStore is a store whose readers of a run or an interrupt wait for each other,
// so that all of them decide on the same one.
type rendezvousStore struct {
	checkpoint.Store

	mu           sync.Mutex
	missingCalls int
	allMet       chan struct{}
}

func (r *rendezvousStore) expectCalls(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missingCalls, r.allMet = n, make(chan struct{})
}

func (r *rendezvousStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	defer r.waitForOthers()
	return r.Store.Run(ctx, thread, run)
}

func (r *rendezvousStore) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	defer r.waitForOthers()
	return r.Store.Interrupt(ctx, thread, id)
}

func (r *rendezvousStore) waitForOthers() {
	r.mu.Lock()
	met := r.allMet
	wait := r.missingCalls > 0
	if r.missingCalls--; r.missingCalls == 0 {
		close(met)
	}
	r.mu.Unlock()
	if wait {
		<-met
	}
}

// TestDecisionsOnTheSameHead lets many callers decide on one head of a busy thread.
func TestDecisionsOnTheSameHead(t *testing.T) {
	build := func(t *testing.T, c *cluster) {
		t.Helper()
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(parallelSpec("g", "slow", "ask"))
		m := &rendezvousStore{Store: c.store}
		c.opts.ScanInterval = time.Hour
		c.startEngine(m)
		c.beginRun("r")
		sleepVirtual(time.Second)
		m.expectCalls(clientCount)
	}
	t.Run("one run id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newBubbleCluster(t)
			build(t, c)
			got := callTogether(clientCount, func(int) error {
				_, err := c.engine.Start(t.Context(), runtime.StartRequest{
					Thread: "t", Graph: "g", Run: "mine", Concurrency: runtime.EnqueueBusy, Request: newInput("x"),
				})
				return err
			})
			require.Equal(t, map[string]int{"": clientCount}, got)
			head, err := c.engine.Thread(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, []string{"mine"}, head.Queue)
		})
	})
	t.Run("one question", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newBubbleCluster(t)
			build(t, c)
			q := c.listOpen("t")[0]
			got := callTogether(clientCount, func(i int) error { return c.answerInterrupt("t", q.ID, fmt.Sprint(i), runtime.CoverPartial) })
			require.Equal(t, map[string]int{"": 1, runtime.ReasonInterruptAlreadyResolved: clientCount - 1}, got)
			head, err := c.engine.Thread(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, 1, head.Answered)
			require.Zero(t, head.Open)
		})
	})
}

func TestQueueIsServedInOrder(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"work": work.runNode}, chainSpec("g", channelsLog, "work"))
	c.beginRun("0")
	var want []string
	for i := 1; i <= 5; i++ {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Run: fmt.Sprint(i), Concurrency: runtime.EnqueueBusy, Request: newInput(fmt.Sprint(i)),
		})
		require.NoError(t, err)
		want = append(want, fmt.Sprint(i))
	}
	close(work.proceed)
	for _, id := range want {
		r, err := c.engine.WaitRun(t.Context(), "t", id)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	}
	s, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
	require.NoError(t, err)
	log, _ := payload.Lookup(s.Values, "log")
	require.Equal(t, `["0","work","1","work","2","work","3","work","4","work","5","work"]`, string(log))
}

func TestQueueLimitHoldsForConcurrentCalls(t *testing.T) {
	work := newBlockedNode()
	c := newCluster(t, memory.New(memory.Options{}), 0, faultRefused)
	c.nodes.funcs = map[string]nodeFunc{"work": work.runNode}
	c.compileGraphs(chainSpec("g", channelsLog, "work"))
	c.opts.QueueLimit = 5
	c.startEngine(c.store)
	t.Cleanup(c.closeAll)
	c.beginRun("first")
	got := callTogether(clientCount, func(i int) error {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Concurrency: runtime.EnqueueBusy, Request: newInput(fmt.Sprint(i)),
		})
		return err
	})
	require.Equal(t, map[string]int{"": 5, runtime.ReasonThreadQueueFull: clientCount - 5}, got)
	close(work.proceed)
}

func TestPoliciesForABusyThread(t *testing.T) {
	for _, tc := range []struct {
		policy runtime.Concurrency
		first  checkpoint.RunState
		log    string
	}{
		{runtime.EnqueueBusy, checkpoint.RunSucceeded, `["kept","first","quick","work","second","quick","work"]`},
		{runtime.CancelActive, checkpoint.RunCancelled, `["kept","first","quick","second","quick","work"]`},
		{runtime.RollbackActive, checkpoint.RunCancelled, `["kept","second","quick","work"]`},
	} {
		t.Run(string(tc.first)+fmt.Sprint(tc.policy), func(t *testing.T) {
			work := newBlockedNode()
			c := newLiveCluster(t, map[string]nodeFunc{"quick": updateNode(`{"log":["quick"]}`), "work": work.runNode},
				chainSpec("g", channelsLog, "quick", "work"))
			_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
			require.NoError(t, err)
			_, err = c.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{Thread: "t", Values: `{"log":["kept"]}`, AsNode: "work"})
			require.NoError(t, err)
			first := c.beginRun("first")
			require.Eventually(t, func() bool { return work.runCount.Load() == 1 }, time.Minute, time.Millisecond)
			s, err := c.engine.Start(t.Context(), runtime.StartRequest{
				Thread: "t", Graph: "g", Concurrency: tc.policy, Request: newInput("second"),
			})
			require.NoError(t, err)
			if tc.policy != runtime.EnqueueBusy {
				require.Eventually(t, func() bool { return work.runCount.Load() == 2 }, time.Minute, time.Millisecond)
			}
			close(work.proceed)
			r, err := c.engine.WaitRun(t.Context(), "t", s.Run.ID)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			r, err = c.engine.Run(t.Context(), nil, "t", first.ID)
			require.NoError(t, err)
			require.Equal(t, tc.first, r.State)
			snap, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
			require.NoError(t, err)
			log, _ := payload.Lookup(snap.Values, "log")
			require.Equal(t, tc.log, string(log))
			c.describeHistory("t", "")
		})
	}
}

// runToInterrupt starts a run and returns the interrupt at which it waits.
func (c *cluster) runToInterrupt(thread string) checkpoint.Interrupt {
	c.t.Helper()
	s, err := c.engine.Start(context.Background(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(c.t, err)
	r, err := c.engine.WaitRun(context.Background(), thread, s.Run.ID)
	require.NoError(c.t, err)
	require.Equal(c.t, checkpoint.RunInterrupted, r.State)
	return c.listOpen(thread)[0]
}

func (c *cluster) listOpen(thread string) []checkpoint.Interrupt {
	c.t.Helper()
	open, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{
		Thread: thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(c.t, err)
	return open
}

func (c *cluster) answerInterrupt(thread, id, value string, coverage runtime.Coverage) error {
	_, err := c.engine.Resume(context.Background(), runtime.ResumeRequest{
		Thread: thread, Coverage: coverage, Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
	})
	return err
}

func TestConcurrentAnswers(t *testing.T) {
	var effects atomic.Int64
	c := newLiveCluster(t, map[string]nodeFunc{"ask": func(_ context.Context, c *nodeCall) pregel.Result {
		answer := c.askNext(`"?"`)
		effects.Add(1)
		return logUpdate(answer)
	}}, chainSpec("g", channelsLog, "ask"))
	for round := range 20 {
		thread := fmt.Sprint("t", round)
		q := c.runToInterrupt(thread)
		effects.Store(0)
		got := callTogether(clientCount, func(i int) error { return c.answerInterrupt(thread, q.ID, fmt.Sprint(i), runtime.CoverPartial) })
		require.Equal(t, map[string]int{"": 1, runtime.ReasonInterruptAlreadyResolved: clientCount - 1}, got)
		r, err := c.engine.WaitRun(t.Context(), thread, "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.EqualValues(t, 1, effects.Load())
	}
	q := c.runToInterrupt("same")
	require.Equal(t, map[string]int{"": clientCount}, callTogether(clientCount, func(int) error {
		return c.answerInterrupt("same", q.ID, `{"a": 1.0, "b":2}`, runtime.CoverPartial)
	}))
	_, err := c.engine.WaitRun(t.Context(), "same", "")
	require.NoError(t, err)
	require.NoError(t, c.answerInterrupt("same", q.ID, `{"b":2,"a":1.0}`, runtime.CoverPartial), "the same answer, hours later")
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(c.answerInterrupt("same", q.ID, `3`, runtime.CoverPartial)))
	require.Equal(t, runtime.ReasonInterruptNotFound, errorReason(c.answerInterrupt("same", "nothing", `3`, runtime.CoverPartial)))
}

func TestCoverage(t *testing.T) {
	build := func(t *testing.T) (*cluster, []checkpoint.Interrupt) {
		t.Helper()
		c := newLiveCluster(t, crashNodes(newEffectLedger(nil)), parallelSpec("g", "ask", "ask2", "fast"))
		c.runToInterrupt("t")
		open := c.listOpen("t")
		require.Len(t, open, 2)
		return c, open
	}
	t.Run("all or nothing", func(t *testing.T) {
		c, open := build(t)
		err := c.answerInterrupt("t", open[0].ID, `1`, runtime.CoverAll)
		require.Equal(t, runtime.ReasonResponsesIncomplete, errorReason(err))
		require.Len(t, c.listOpen("t"), 2, "something was stored")
	})
	t.Run("a bad answer spoils the batch", func(t *testing.T) {
		c, open := build(t)
		_, err := c.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Responses: []runtime.Response{
			{Interrupt: open[0].ID, Value: `1`}, {Interrupt: "nothing", Value: `2`},
		}})
		require.Equal(t, runtime.ReasonInterruptNotFound, errorReason(err))
		require.Len(t, c.listOpen("t"), 2, "something was stored")
	})
	t.Run("collect", func(t *testing.T) {
		c, open := build(t)
		c.nodes.takeEntered()
		require.NoError(t, c.answerInterrupt("t", open[0].ID, `1`, runtime.CoverCollect))
		require.NoError(t, c.answerInterrupt("t", open[0].ID, `1`, runtime.CoverCollect), "again")
		r, err := c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		require.Empty(t, c.nodes.takeEntered(), "nothing runs until the last answer is in")
		require.NoError(t, c.answerInterrupt("t", open[1].ID, `2`, runtime.CoverCollect))
		r, err = c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		ran := c.nodes.takeEntered()
		slices.Sort(ran)
		require.Equal(t, []string{"ask", "ask2", "join"}, ran)
	})
	t.Run("collect from a crowd", func(t *testing.T) {
		c, open := build(t)
		got := callTogether(clientCount, func(i int) error { return c.answerInterrupt("t", open[i%2].ID, `1`, runtime.CoverCollect) })
		require.Equal(t, map[string]int{"": clientCount}, got)
		r, err := c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestThreadsDoNotMix(t *testing.T) {
	const threads = 100
	c := newLiveCluster(t, map[string]nodeFunc{
		"ask":  func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"` + c.Thread + `?"`)) },
		"echo": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(`"` + c.Thread + `"`) },
	}, parallelSpec("g", "ask", "echo"), chainSpec("join", channelsLog, "echo"))
	c.nodes.funcs["join"] = c.nodes.funcs["echo"]
	got := callTogether(threads, func(i int) error {
		id := fmt.Sprint("t", i)
		q := c.runToInterrupt(id)
		if q.Thread != id || string(q.Value) != `"`+id+`?"` {
			return fmt.Errorf("%s was asked %s of %s", id, q.Value, q.Thread)
		}
		if err := c.answerInterrupt(id, q.ID, `"`+id+`!"`, runtime.CoverPartial); err != nil {
			return err
		}
		r, err := c.engine.WaitRun(t.Context(), id, "")
		if want := fmt.Sprintf(`{"log":["x",%q,%q,%q],"n":3}`, id+"!", id, id); err == nil && string(r.Output) != want {
			return fmt.Errorf("got %s, want %s", r.Output, want)
		}
		return err
	})
	require.Equal(t, map[string]int{"": threads}, got)
}

// TestChaos lets many callers do everything to one thread at once, and checks what
// must hold whatever the order was.
func TestChaos(t *testing.T) {
	c := newLiveCluster(t, crashNodes(newEffectLedger(nil)), parallelSpec("g", "fast", "ask", "ask2"))
	known := []string{
		"", runtime.ReasonThreadBusy, runtime.ReasonThreadInterrupted, runtime.ReasonThreadNotFound,
		runtime.ReasonThreadNotInterrupted, runtime.ReasonInterruptAlreadyResolved, runtime.ReasonInterruptNotFound,
		runtime.ReasonRunNotFound, runtime.ReasonResponsesIncomplete, runtime.ReasonResponseAmbiguous,
		runtime.ReasonThreadExists, runtime.ReasonEtagMismatch, runtime.ReasonInvalidField,
	}
	deadline := time.Now().Add(2 * time.Second)
	got := callTogether(8, func(i int) error {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		for time.Now().Before(deadline) {
			err := c.callRandomly(rnd)
			if r := errorReason(err); !slices.Contains(known, r) {
				return err
			}
		}
		return nil
	})
	require.Equal(t, map[string]int{"": 8}, got)
	err := c.engine.DeleteThread(t.Context(), "t", 0, true)
	if errorReason(err) != runtime.ReasonThreadNotFound {
		require.NoError(t, err)
	}
	r := c.beginRun("after it all")
	require.Equal(t, checkpoint.RunSucceeded, c.answerToEnd(r, 9).State)
	require.JSONEq(t, `{"log":["after it all",["ask?"],["ask2?"],"fast","join"],"n":4}`, c.summarizeThread("t").Values)
}

func (c *cluster) callRandomly(rnd *rand.Rand) error {
	ctx := context.Background()
	switch rnd.IntN(10) {
	case 0, 1, 2:
		_, err := c.engine.Start(ctx, runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x"),
			Concurrency: runtime.Concurrency(rnd.IntN(4)), Open: runtime.OpenPolicy(rnd.IntN(3)),
		})
		if errorReason(err) == runtime.ReasonThreadQueueFull {
			return nil
		}
		return err
	case 3, 4, 5:
		open, err := c.engine.Interrupts(ctx, nil, checkpoint.InterruptQuery{Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen}})
		if err != nil || len(open) == 0 {
			return err
		}
		return c.answerInterrupt("t", open[rnd.IntN(len(open))].ID, fmt.Sprint(rnd.IntN(3)), runtime.Coverage(rnd.IntN(3)))
	case 6:
		_, err := c.engine.Cancel(ctx, runtime.CancelRequest{Thread: "t", Rollback: rnd.IntN(2) == 0})
		return err
	case 7:
		_, err := c.engine.UpdateState(ctx, runtime.UpdateStateRequest{Thread: "t", Values: `{"log":["u"]}`, AsNode: "fast", SupersedeInterrupts: rnd.IntN(2) == 0})
		return err
	case 8:
		_, err := c.engine.UpdateThread(ctx, runtime.UpdateThreadRequest{Thread: "t", Metadata: map[string]string{"k": fmt.Sprint(rnd.IntN(9))}})
		return err
	default:
		if rnd.IntN(10) > 0 {
			return nil
		}
		return c.engine.DeleteThread(ctx, "t", 0, rnd.IntN(2) == 0)
	}
}
