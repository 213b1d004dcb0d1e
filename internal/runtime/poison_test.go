package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// trap panics at one place for one thread, as long as it is set.
type trap struct {
	mu     sync.Mutex
	at     string // "" = nowhere
	thread string // how its name begins, or that of what is looked up
	hits   int
}

func (p *trap) set(at, thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.thread, p.hits = at, thread, 0
}

func (p *trap) spring(at, thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == at && strings.HasPrefix(thread, p.thread) {
		p.hits++
		panic("a defect in " + at)
	}
}

func (p *trap) sprung() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// trappedStore is a store some calls of which panic, like one whose records
// can't be decoded.
type trappedStore struct {
	checkpoint.Store

	trap *trap
}

func (s trappedStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.trap.spring("Head", thread)
	return s.Store.Head(ctx, thread)
}

func (s trappedStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	s.trap.spring("Run", thread)
	return s.Store.Run(ctx, thread, run)
}

func (s trappedStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	s.trap.spring("Checkpoint", thread)
	return s.Store.Checkpoint(ctx, thread, namespace, id)
}

func (s trappedStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	s.trap.spring("Pending", thread)
	return s.Store.Pending(ctx, thread, id)
}

func (s trappedStore) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	s.trap.spring("Interrupts", q.Thread)
	return s.Store.Interrupts(ctx, q)
}

func (s trappedStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.trap.spring("Apply", c.Thread)
	if len(c.Checkpoints) > 0 {
		s.trap.spring("Apply a checkpoint", c.Thread)
	}
	if c.Head.State != checkpoint.ThreadBusy {
		s.trap.spring("Apply an end", c.Thread)
	}
	return s.Store.Apply(ctx, c)
}

type trappedGraphs struct {
	catalog

	trap *trap
}

func (g trappedGraphs) Graph(name, version string) (*graph.Graph, error) {
	g.trap.spring("Graph", name)
	return g.catalog.Graph(name, version)
}

type trappedSchemas struct{ trap *trap }

func (s trappedSchemas) Check(_ context.Context, schema, _ payload.JSON) ([]runtime.Violation, error) {
	s.trap.spring("Check", string(schema))
	return nil, nil
}

// trappedObserver counts what is poisoned, and panics when it is told anything.
type trappedObserver struct {
	trap     *trap
	poisoned atomic.Int64
}

func (o *trappedObserver) RunStarted(string) { o.trap.spring("observer", "") }

func (o *trappedObserver) RunDriven(string) { o.trap.spring("observer", "") }

func (o *trappedObserver) RunEnded(string, string, time.Duration) { o.trap.spring("observer", "") }

func (o *trappedObserver) CommitEnded(time.Duration, error) { o.trap.spring("observer", "") }

func (o *trappedObserver) InterruptRaised(string, string) { o.trap.spring("observer", "") }

func (o *trappedObserver) InterruptResolved(string, string) { o.trap.spring("observer", "") }
func (o *trappedObserver) ThreadsPoisoned(n int)            { o.poisoned.Store(int64(n)) }
func (o *trappedObserver) LiveBytes(int64)                  { o.trap.spring("observer", "") }

func (o *trappedObserver) RunPutOff(string) { o.trap.spring("observer", "") }

func (o *trappedObserver) NodeEnded(_, _, _ string, _ time.Duration) { o.trap.spring("observer", "") }

// poisonedWorld is an engine whose surroundings can be made to panic.
type poisonedWorld struct {
	*world

	trap     *trap
	observer *trappedObserver
	logs     *observer.ObservedLogs
}

const anyText = `{"type":"string"}`

// newPoisonedWorld has a graph "g", whose thread "t" has been asked a question,
// and a graph "other". Nothing panics yet.
func newPoisonedWorld(t *testing.T) *poisonedWorld {
	t.Helper()
	p := &poisonedWorld{trap: &trap{}}
	p.observer = &trappedObserver{trap: p.trap}
	core, logs := observer.New(zap.ErrorLevel)
	p.logs = logs
	code := map[string]node{
		"ask": func(_ context.Context, c *call) pregel.Result {
			if len(c.Journal.Answers) > 0 {
				return wrote(`"answered"`)
			}
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, Schema: anyText, TTL: time.Hour}}}
		},
		"quick": func(_ context.Context, c *call) pregel.Result {
			p.trap.spring("Execute", c.Thread)
			return wrote(`"quick"`)
		},
	}
	p.world = &world{
		t: t, store: trappedStore{memory.New(memory.Options{}), p.trap}, nodes: &nodes{code: code}, graphs: catalog{},
		opts: runtime.Options{Logger: zap.New(core), Observer: p.observer, Owner: "one"},
	}
	p.compile(chain("g", channelsLog, "ask", "quick"))
	p.compile(side("both", "ask", "quick"))
	p.compile(chain("other", channelsLog, "quick"))
	p.boot()
	require.Equal(t, checkpoint.RunInterrupted, p.run("t", "g", `{}`).State)
	return p
}

func (p *poisonedWorld) boot() {
	p.engine = runtime.New(context.Background(), p.store, trappedGraphs{p.graphs, p.trap}, p.nodes, trappedSchemas{p.trap}, p.opts)
	p.t.Cleanup(p.engine.Close)
}

// restart has the thread taken up by the sweeper of a new process, with answers
// or a run that nobody has begun yet.
func (p *poisonedWorld) restart(change func()) {
	p.engine.Close()
	change()
	p.boot()
}

// leave stores an answer as a server without room for the run does.
func (p *poisonedWorld) leave() { p.leaveOn("t") }

func (p *poisonedWorld) leaveOn(thread string) {
	ctx := context.Background()
	head, err := p.store.Head(ctx, thread)
	require.NoError(p.t, err)
	open, err := p.store.Interrupts(ctx, checkpoint.InterruptQuery{Thread: thread})
	require.NoError(p.t, err)
	open[0].State, open[0].Response = checkpoint.InterruptAnswered, `"yes"`
	c := &checkpoint.Change{Thread: thread, Expect: head.Revision, LogID: head.LogID, Op: "leave", Head: head, Interrupts: open}
	c.Head.Open, c.Head.Answered, c.Head.Due = 0, 1, head.Now
	_, err = p.store.Apply(ctx, c)
	require.NoError(p.t, err)
}

// queue stores a run that waits for nothing any more.
func (p *poisonedWorld) queue() {
	ctx := context.Background()
	head, err := p.store.Head(ctx, "t")
	require.NoError(p.t, err)
	c := &checkpoint.Change{Thread: "t", Expect: head.Revision, LogID: head.LogID, Op: "queue", Head: head}
	c.Head.State, c.Head.Queue, c.Head.Open, c.Head.Due = checkpoint.ThreadIdle, []string{"r2"}, 0, head.Now
	c.Runs = []checkpoint.Run{{
		ID: "r2", Thread: "t", Graph: "g", State: checkpoint.RunQueued, Order: 99, Request: checkpoint.RunRequest{Input: `{}`},
	}}
	_, err = p.store.Apply(ctx, c)
	require.NoError(p.t, err)
}

func (p *poisonedWorld) head() checkpoint.Head {
	p.t.Helper()
	h, err := p.engine.Thread(p.t.Context(), "t")
	require.NoError(p.t, err)
	return h
}

// TestAPoisonedThreadIsPutOff has the sweeper meet a thread at each point of
// whose taking something panics.
func TestAPoisonedThreadIsPutOff(t *testing.T) {
	for _, c := range []struct {
		name, at, thread string
		due              func(*poisonedWorld)
		seen             bool // in the head of the thread
	}{
		{"answers, the graph", "Graph", "g", (*poisonedWorld).leave, true},
		{"answers, the run", "Run", "t", (*poisonedWorld).leave, true},
		{"answers, the checkpoint", "Checkpoint", "t", (*poisonedWorld).leave, true},
		{"answers, the progress", "Pending", "t", (*poisonedWorld).leave, true},
		{"answers, the change", "Apply", "t", (*poisonedWorld).leave, false},
		{"answers, the first step and its failure", "Apply an end", "t", (*poisonedWorld).leave, false},
		{"answers, the head", "Head", "t", (*poisonedWorld).leave, false},
		{"a queued run, the graph", "Graph", "g", (*poisonedWorld).queue, true},
		{"a queued run, the run", "Run", "t", (*poisonedWorld).queue, true},
		{"a queued run, the change", "Apply a checkpoint", "t", (*poisonedWorld).queue, true},
		{"a question that expires", "Interrupts", "t", func(*poisonedWorld) { rest(2 * time.Hour) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPoisonedWorld(t)
				p.restart(func() {
					c.due(p)
					p.trap.set(c.at, c.thread)
				})
				rest(10 * time.Minute)
				require.Greater(t, p.trap.sprung(), 3, "it is tried again")
				require.Less(t, p.trap.sprung(), 60, "in growing pauses")
				require.EqualValues(t, 1, p.observer.poisoned.Load())
				line := p.logs.FilterMessage("thread not taken up; it is put off").All()
				require.NotEmpty(t, line)
				require.Equal(t, "t", line[0].ContextMap()["thread"])
				require.Contains(t, line[0].ContextMap()["panic"], "a defect in "+c.at)

				bystander := p.run("bystander", "other", `{}`)
				require.Equal(t, checkpoint.RunSucceeded, bystander.State)

				p.trap.set("", "")
				if c.seen {
					require.Positive(t, p.head().Faults)
					require.True(t, p.head().RetryAt.After(time.Now()))
				}
				p.restart(func() {})
				rest(20 * time.Minute)
				require.Zero(t, p.head().Faults, "it has come further")
				require.Contains(t, []checkpoint.ThreadState{checkpoint.ThreadIdle, checkpoint.ThreadInterrupted}, p.head().State)
				require.Zero(t, p.observer.poisoned.Load())
				p.engine.Close()
			})
		})
	}
}

// TestAPoisonedThreadCanBeReadCancelledAndDeleted acts as a person does who
// wants to be rid of it.
func TestAPoisonedThreadCanBeReadCancelledAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoisonedWorld(t)
		p.restart(func() {
			p.leave()
			p.trap.set("Graph", "g")
		})
		rest(time.Minute)
		require.Positive(t, p.head().Faults)
		require.Equal(t, checkpoint.ThreadInterrupted, p.head().State)
		run, err := p.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, run.State)
		require.Zero(t, p.head().Faults)
		rest(10 * time.Minute)
		require.Zero(t, p.observer.poisoned.Load())

		require.NoError(t, p.engine.DeleteThread(t.Context(), "t", 0, false))
		p.engine.Close()
	})
}

// TestManyPoisonedThreadsDoNotKeepOthersOut has more of them than the sweeper
// takes up at once, and none whose putting off can be stored.
func TestManyPoisonedThreadsDoNotKeepOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoisonedWorld(t)
		const many = 600
		for i := range many {
			require.Equal(t, checkpoint.RunInterrupted, p.run(fmt.Sprintf("poisoned%d", i), "g", `{}`).State)
		}
		p.restart(func() {
			for i := range many {
				p.leaveOn(fmt.Sprintf("poisoned%d", i))
			}
			rest(time.Second)
			p.leave() // due last
			p.trap.set("Apply", "poisoned")
		})
		rest(30 * time.Second)
		require.Equal(t, checkpoint.ThreadIdle, p.head().State)
		require.EqualValues(t, many, p.observer.poisoned.Load())
		p.engine.Close()
	})
}

// TestAPanicEndsOneTask panics where the engine runs a task, looks at what it
// returned, or stores it.
func TestAPanicEndsOneTask(t *testing.T) {
	for _, c := range []struct{ graph, at, thread, during, reason string }{
		{"g", "Check", anyText, "", runtime.ReasonInternal},
		{"both", "Check", anyText, "", runtime.ReasonInternal},
		{"other", "Execute", "t2", "", runtime.FailedNode},
		{"both", "Execute", "t2", "", runtime.FailedNode},
		{"other", "Apply a checkpoint", "t2", "quick", runtime.ReasonInternal},
	} {
		t.Run(c.graph+" "+c.at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPoisonedWorld(t)
				if c.during == "" {
					p.trap.set(c.at, c.thread)
				} else {
					p.nodes.code[c.during] = func(context.Context, *call) pregel.Result {
						p.trap.set(c.at, c.thread)
						return wrote(`"set"`)
					}
				}
				run := p.run("t2", c.graph, `{}`)
				require.Equal(t, checkpoint.RunFailed, run.State)
				require.Equal(t, c.reason, run.Failure.Reason)
				require.NotContains(t, run.Failure.Message, "a defect", "the cause is for the log")
				require.NotZero(t, p.logs.Len())
				p.trap.set("", "")
				require.Equal(t, checkpoint.RunSucceeded, p.answer("t", `"yes"`).State, "the server lives")
				p.engine.Close()
			})
		})
	}
}

// TestAnObserverThatPanicsChangesNothing lets every call of it panic.
func TestAnObserverThatPanicsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoisonedWorld(t)
		p.trap.set("observer", "")
		require.Equal(t, checkpoint.RunSucceeded, p.run("t2", "other", `{}`).State)
		require.Equal(t, checkpoint.RunSucceeded, p.answer("t", `"yes"`).State)
		require.Positive(t, p.trap.sprung())
		require.Equal(t, 1, p.logs.Len(), "it is logged once")
		p.engine.Close()
	})
}
