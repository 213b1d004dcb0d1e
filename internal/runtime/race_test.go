package runtime_test

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

// live is a cluster in real time with one engine.
func live(t *testing.T, code map[string]node, specs ...*graph.Spec) *cluster {
	t.Helper()
	c := newCluster(t, memory.New(memory.Options{}), 0, refused)
	c.nodes.code = code
	c.compile(specs...)
	c.boot(c.store)
	t.Cleanup(c.close)
	return c
}

// crowd makes n calls at the same time and returns how often each reason came
// out, "" for success.
func crowd(n int, call func(i int) error) map[string]int {
	out := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gun
			r := reason(call(i))
			mu.Lock()
			defer mu.Unlock()
			out[r]++
		})
	}
	close(gun)
	all.Wait()
	return out
}

// blocked is a node that waits until the test lets it go, and counts its runs.
type blocked struct {
	ran  atomic.Int64
	gate chan struct{}
}

func newBlocked() *blocked { return &blocked{gate: make(chan struct{})} }

func (b *blocked) node(ctx context.Context, c *call) pregel.Result {
	b.ran.Add(1)
	select {
	case <-b.gate:
		return wrote(`"` + c.Node.Name + `"`)
	case <-ctx.Done():
		return fail("cut off")
	}
}

const clients = 16

func input(text string) checkpoint.RunRequest {
	return checkpoint.RunRequest{Input: payload.JSON(`{"log":["` + text + `"]}`)}
}

func TestConcurrentStarts(t *testing.T) {
	for name, create := range map[string]bool{"of a new thread": true, "of a thread": false} {
		t.Run(name, func(t *testing.T) {
			work := newBlocked()
			c := live(t, map[string]node{"work": work.node}, chain("g", channelsLog, "work"))
			if !create {
				_, err := c.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "g"})
				require.NoError(t, err)
			}
			got := crowd(clients, func(i int) error {
				_, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: create, Graph: "g", Request: input(fmt.Sprint(i))})
				return err
			})
			close(work.gate)
			require.Equal(t, map[string]int{"": 1, runtime.ReasonThreadBusy: clients - 1}, got)
			r, err := c.engine.WaitRun(t.Context(), "t", "")
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			require.EqualValues(t, 1, work.ran.Load())
		})
	}
}

func TestSameRequestAtOnce(t *testing.T) {
	work := newBlocked()
	c := live(t, map[string]node{"work": work.node}, chain("g", channelsLog, "work"))
	ids := make([]string, clients)
	got := crowd(clients, func(i int) error {
		s, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Graph: "g", Request: input("x"), RequestID: "again", Digest: "d",
		})
		ids[i] = s.Run.Thread + "/" + s.Run.ID
		return err
	})
	require.Equal(t, map[string]int{"": clients}, got)
	require.Len(t, slices.Compact(ids), 1)
	close(work.gate)
	thread, _, _ := strings.Cut(ids[0], "/")
	_, err := c.engine.WaitRun(t.Context(), thread, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, work.ran.Load())

	_, err = c.engine.Start(t.Context(), runtime.StartRequest{Graph: "g", Request: input("y"), RequestID: "again", Digest: "other"})
	require.Equal(t, runtime.ReasonRequestIDConflict, reason(err))

	threads := crowd(clients, func(int) error {
		_, err := c.engine.CreateThread(t.Context(), runtime.NewThread{Graph: "g", RequestID: "make", Digest: "d"})
		return err
	})
	require.Equal(t, map[string]int{"": clients}, threads)
	updates := crowd(clients, func(int) error {
		_, err := c.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{
			Thread: thread, Values: `{"log":["update"]}`, AsNode: "work", RequestID: "update", Digest: "d",
		})
		return err
	})
	require.Equal(t, map[string]int{"": clients}, updates)
	s, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: thread})
	require.NoError(t, err)
	require.JSONEq(t, `{"log":["x","work","update"],"n":1}`, string(s.Values))
}

func TestSameRunQueuedAtOnce(t *testing.T) {
	work := newBlocked()
	c := live(t, map[string]node{"work": work.node}, chain("g", channelsLog, "work"))
	c.begin("first")
	start := func(run, text string) error {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Run: run, Concurrency: runtime.Enqueue, Request: input(text),
		})
		return err
	}
	require.Equal(t, map[string]int{"": clients}, crowd(clients, func(int) error { return start("mine", "second") }))
	require.Equal(t, runtime.ReasonRunExists, reason(start("mine", "third")))
	head, err := c.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, head.Queue, "queued once")
	close(work.gate)
	r, err := c.engine.WaitRun(t.Context(), "t", "mine")
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	require.EqualValues(t, 2, work.ran.Load())
}

// meeting is a store whose readers of a run or a question wait for each other,
// so that all of them decide on the same one.
type meeting struct {
	checkpoint.Store

	mu      sync.Mutex
	missing int
	met     chan struct{}
}

func (m *meeting) expect(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing, m.met = n, make(chan struct{})
}

func (m *meeting) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	defer m.meet()
	return m.Store.Run(ctx, thread, run)
}

func (m *meeting) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	defer m.meet()
	return m.Store.Interrupt(ctx, thread, id)
}

func (m *meeting) meet() {
	m.mu.Lock()
	met := m.met
	wait := m.missing > 0
	if m.missing--; m.missing == 0 {
		close(met)
	}
	m.mu.Unlock()
	if wait {
		<-met
	}
}

// TestDecisionsOnTheSameHead lets a crowd decide on one head of a busy thread.
func TestDecisionsOnTheSameHead(t *testing.T) {
	build := func(t *testing.T, c *cluster) {
		t.Helper()
		c.nodes.code = script(c.nodes.ledger)
		c.compile(side("g", "slow", "ask"))
		m := &meeting{Store: c.store}
		c.opts.Sweep = time.Hour
		c.boot(m)
		c.begin("r")
		rest(time.Second)
		m.expect(clients)
	}
	t.Run("one run id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := alone(t)
			build(t, c)
			got := crowd(clients, func(int) error {
				_, err := c.engine.Start(t.Context(), runtime.StartRequest{
					Thread: "t", Graph: "g", Run: "mine", Concurrency: runtime.Enqueue, Request: input("x"),
				})
				return err
			})
			require.Equal(t, map[string]int{"": clients}, got)
			head, err := c.engine.Thread(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, []string{"mine"}, head.Queue)
		})
	})
	t.Run("one question", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := alone(t)
			build(t, c)
			q := c.open("t")[0]
			got := crowd(clients, func(i int) error { return c.respond("t", q.ID, fmt.Sprint(i), runtime.Partial) })
			require.Equal(t, map[string]int{"": 1, runtime.ReasonInterruptAlreadyResolved: clients - 1}, got)
			head, err := c.engine.Thread(t.Context(), "t")
			require.NoError(t, err)
			require.Equal(t, 1, head.Answered)
			require.Zero(t, head.Open)
		})
	})
}

func TestQueueIsServedInOrder(t *testing.T) {
	work := newBlocked()
	c := live(t, map[string]node{"work": work.node}, chain("g", channelsLog, "work"))
	c.begin("0")
	var want []string
	for i := 1; i <= 5; i++ {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Run: fmt.Sprint(i), Concurrency: runtime.Enqueue, Request: input(fmt.Sprint(i)),
		})
		require.NoError(t, err)
		want = append(want, fmt.Sprint(i))
	}
	close(work.gate)
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

func TestQueueLimitHoldsAgainstACrowd(t *testing.T) {
	work := newBlocked()
	c := newCluster(t, memory.New(memory.Options{}), 0, refused)
	c.nodes.code = map[string]node{"work": work.node}
	c.compile(chain("g", channelsLog, "work"))
	c.opts.QueueLimit = 5
	c.boot(c.store)
	t.Cleanup(c.close)
	c.begin("first")
	got := crowd(clients, func(i int) error {
		_, err := c.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "t", Graph: "g", Concurrency: runtime.Enqueue, Request: input(fmt.Sprint(i)),
		})
		return err
	})
	require.Equal(t, map[string]int{"": 5, runtime.ReasonThreadQueueFull: clients - 5}, got)
	close(work.gate)
}

func TestPoliciesForABusyThread(t *testing.T) {
	for _, tc := range []struct {
		policy runtime.Concurrency
		first  checkpoint.RunState
		log    string
	}{
		{runtime.Enqueue, checkpoint.RunSucceeded, `["kept","first","quick","work","second","quick","work"]`},
		{runtime.CancelActive, checkpoint.RunCancelled, `["kept","first","quick","second","quick","work"]`},
		{runtime.RollbackActive, checkpoint.RunCancelled, `["kept","second","quick","work"]`},
	} {
		t.Run(string(tc.first)+fmt.Sprint(tc.policy), func(t *testing.T) {
			work := newBlocked()
			c := live(t, map[string]node{"quick": update(`{"log":["quick"]}`), "work": work.node},
				chain("g", channelsLog, "quick", "work"))
			_, err := c.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "g"})
			require.NoError(t, err)
			_, err = c.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{Thread: "t", Values: `{"log":["kept"]}`, AsNode: "work"})
			require.NoError(t, err)
			first := c.begin("first")
			require.Eventually(t, func() bool { return work.ran.Load() == 1 }, time.Minute, time.Millisecond)
			s, err := c.engine.Start(t.Context(), runtime.StartRequest{
				Thread: "t", Graph: "g", Concurrency: tc.policy, Request: input("second"),
			})
			require.NoError(t, err)
			if tc.policy != runtime.Enqueue {
				require.Eventually(t, func() bool { return work.ran.Load() == 2 }, time.Minute, time.Millisecond)
			}
			close(work.gate)
			r, err := c.engine.WaitRun(t.Context(), "t", s.Run.ID)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
			r, err = c.engine.Run(t.Context(), "t", first.ID)
			require.NoError(t, err)
			require.Equal(t, tc.first, r.State)
			snap, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
			require.NoError(t, err)
			log, _ := payload.Lookup(snap.Values, "log")
			require.Equal(t, tc.log, string(log))
			c.chain("t", "")
		})
	}
}

// asking starts a run and returns the question at which it waits.
func (c *cluster) asking(thread string) checkpoint.Interrupt {
	c.t.Helper()
	s, err := c.engine.Start(context.Background(), runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: input("x")})
	require.NoError(c.t, err)
	r, err := c.engine.WaitRun(context.Background(), thread, s.Run.ID)
	require.NoError(c.t, err)
	require.Equal(c.t, checkpoint.RunInterrupted, r.State)
	return c.open(thread)[0]
}

func (c *cluster) open(thread string) []checkpoint.Interrupt {
	c.t.Helper()
	open, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{
		Thread: thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(c.t, err)
	return open
}

func (c *cluster) respond(thread, id, value string, coverage runtime.Coverage) error {
	_, err := c.engine.Resume(context.Background(), runtime.ResumeRequest{
		Thread: thread, Coverage: coverage, Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
	})
	return err
}

func TestConcurrentAnswers(t *testing.T) {
	var effects atomic.Int64
	c := live(t, map[string]node{"ask": func(_ context.Context, c *call) pregel.Result {
		answer := c.ask(`"?"`)
		effects.Add(1)
		return wrote(answer)
	}}, chain("g", channelsLog, "ask"))
	for round := range 20 {
		thread := fmt.Sprint("t", round)
		q := c.asking(thread)
		effects.Store(0)
		got := crowd(clients, func(i int) error { return c.respond(thread, q.ID, fmt.Sprint(i), runtime.Partial) })
		require.Equal(t, map[string]int{"": 1, runtime.ReasonInterruptAlreadyResolved: clients - 1}, got)
		r, err := c.engine.WaitRun(t.Context(), thread, "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.EqualValues(t, 1, effects.Load())
	}
	q := c.asking("same")
	require.Equal(t, map[string]int{"": clients}, crowd(clients, func(int) error {
		return c.respond("same", q.ID, `{"a": 1.0, "b":2}`, runtime.Partial)
	}))
	_, err := c.engine.WaitRun(t.Context(), "same", "")
	require.NoError(t, err)
	require.NoError(t, c.respond("same", q.ID, `{"b":2,"a":1.0}`, runtime.Partial), "the same answer, hours later")
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, reason(c.respond("same", q.ID, `3`, runtime.Partial)))
	require.Equal(t, runtime.ReasonInterruptNotFound, reason(c.respond("same", "nothing", `3`, runtime.Partial)))
}

func TestCoverage(t *testing.T) {
	build := func(t *testing.T) (*cluster, []checkpoint.Interrupt) {
		t.Helper()
		c := live(t, script(newLedger(nil)), side("g", "ask", "ask2", "fast"))
		c.asking("t")
		open := c.open("t")
		require.Len(t, open, 2)
		return c, open
	}
	t.Run("all or nothing", func(t *testing.T) {
		c, open := build(t)
		err := c.respond("t", open[0].ID, `1`, runtime.All)
		require.Equal(t, runtime.ReasonResponsesIncomplete, reason(err))
		require.Len(t, c.open("t"), 2, "something was stored")
	})
	t.Run("a bad answer spoils the batch", func(t *testing.T) {
		c, open := build(t)
		_, err := c.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Responses: []runtime.Response{
			{Interrupt: open[0].ID, Value: `1`}, {Interrupt: "nothing", Value: `2`},
		}})
		require.Equal(t, runtime.ReasonInterruptNotFound, reason(err))
		require.Len(t, c.open("t"), 2, "something was stored")
	})
	t.Run("collect", func(t *testing.T) {
		c, open := build(t)
		c.nodes.take()
		require.NoError(t, c.respond("t", open[0].ID, `1`, runtime.Collect))
		require.NoError(t, c.respond("t", open[0].ID, `1`, runtime.Collect), "again")
		r, err := c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		require.Empty(t, c.nodes.take(), "nothing runs until the last answer is in")
		require.NoError(t, c.respond("t", open[1].ID, `2`, runtime.Collect))
		r, err = c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		ran := c.nodes.take()
		slices.Sort(ran)
		require.Equal(t, []string{"ask", "ask2", "join"}, ran)
	})
	t.Run("collect from a crowd", func(t *testing.T) {
		c, open := build(t)
		got := crowd(clients, func(i int) error { return c.respond("t", open[i%2].ID, `1`, runtime.Collect) })
		require.Equal(t, map[string]int{"": clients}, got)
		r, err := c.engine.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestThreadsDoNotMix(t *testing.T) {
	const threads = 100
	c := live(t, map[string]node{
		"ask":  func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"` + c.Thread + `?"`)) },
		"echo": func(_ context.Context, c *call) pregel.Result { return wrote(`"` + c.Thread + `"`) },
	}, side("g", "ask", "echo"), chain("join", channelsLog, "echo"))
	c.nodes.code["join"] = c.nodes.code["echo"]
	got := crowd(threads, func(i int) error {
		id := fmt.Sprint("t", i)
		q := c.asking(id)
		if q.Thread != id || string(q.Value) != `"`+id+`?"` {
			return fmt.Errorf("%s was asked %s of %s", id, q.Value, q.Thread)
		}
		if err := c.respond(id, q.ID, `"`+id+`!"`, runtime.Partial); err != nil {
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

// TestChaos lets a crowd do everything to one thread at once, and checks what
// must hold whatever the order was.
func TestChaos(t *testing.T) {
	c := live(t, script(newLedger(nil)), side("g", "fast", "ask", "ask2"))
	known := []string{
		"", runtime.ReasonThreadBusy, runtime.ReasonThreadInterrupted, runtime.ReasonThreadNotFound,
		runtime.ReasonThreadNotInterrupted, runtime.ReasonInterruptAlreadyResolved, runtime.ReasonInterruptNotFound,
		runtime.ReasonRunNotFound, runtime.ReasonResponsesIncomplete, runtime.ReasonResponseAmbiguous,
		runtime.ReasonThreadExists, runtime.ReasonEtagMismatch, runtime.ReasonInvalidField,
	}
	deadline := time.Now().Add(2 * time.Second)
	got := crowd(8, func(i int) error {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		for time.Now().Before(deadline) {
			err := c.meddle(rnd)
			if r := reason(err); !slices.Contains(known, r) {
				return err
			}
		}
		return nil
	})
	require.Equal(t, map[string]int{"": 8}, got)
	err := c.engine.DeleteThread(t.Context(), "t", 0, true)
	if reason(err) != runtime.ReasonThreadNotFound {
		require.NoError(t, err)
	}
	r := c.begin("after it all")
	require.Equal(t, checkpoint.RunSucceeded, c.finish(r, 9).State)
	require.JSONEq(t, `{"log":["after it all",["ask?"],["ask2?"],"fast","join"],"n":4}`, c.story("t").Values)
}

func (c *cluster) meddle(rnd *rand.Rand) error {
	ctx := context.Background()
	switch rnd.IntN(10) {
	case 0, 1, 2:
		_, err := c.engine.Start(ctx, runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", Request: input("x"),
			Concurrency: runtime.Concurrency(rnd.IntN(4)), Open: runtime.OpenPolicy(rnd.IntN(3)),
		})
		if reason(err) == runtime.ReasonThreadQueueFull {
			return nil
		}
		return err
	case 3, 4, 5:
		open, err := c.engine.Interrupts(ctx, checkpoint.InterruptQuery{Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen}})
		if err != nil || len(open) == 0 {
			return err
		}
		return c.respond("t", open[rnd.IntN(len(open))].ID, fmt.Sprint(rnd.IntN(3)), runtime.Coverage(rnd.IntN(3)))
	case 6:
		_, err := c.engine.Cancel(ctx, runtime.CancelRequest{Thread: "t", Rollback: rnd.IntN(2) == 0})
		return err
	case 7:
		_, err := c.engine.UpdateState(ctx, runtime.UpdateStateRequest{Thread: "t", Values: `{"log":["u"]}`, AsNode: "fast", Supersede: rnd.IntN(2) == 0})
		return err
	case 8:
		_, err := c.engine.UpdateThread(ctx, runtime.ThreadChange{Thread: "t", Metadata: map[string]string{"k": fmt.Sprint(rnd.IntN(9))}})
		return err
	default:
		if rnd.IntN(10) > 0 {
			return nil
		}
		return c.engine.DeleteThread(ctx, "t", 0, rnd.IntN(2) == 0)
	}
}
