package engine_test

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
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// panicTrap panics in one call for one thread, as long as it is set.
type panicTrap struct {
	mu       sync.Mutex
	callName string // "" = nowhere
	prefix   string // how its name begins, or that of what is looked up
	hits     int
}

func (p *panicTrap) setTrap(at, thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callName, p.prefix, p.hits = at, thread, 0
}

func (p *panicTrap) panicIfSet(at, thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.callName == at && strings.HasPrefix(thread, p.prefix) {
		p.hits++
		panic("a defect in " + at)
	}
}

func (p *panicTrap) hitCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// panickingStore is a store some calls of which panic, like one whose records
// can't be decoded.
type panickingStore struct {
	checkpoint.Store

	trap *panicTrap
}

func (s panickingStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.trap.panicIfSet("Head", thread)
	return s.Store.Head(ctx, thread)
}

func (s panickingStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	s.trap.panicIfSet("Run", thread)
	return s.Store.Run(ctx, thread, run)
}

func (s panickingStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	s.trap.panicIfSet("Checkpoint", thread)
	return s.Store.Checkpoint(ctx, thread, namespace, id)
}

func (s panickingStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	s.trap.panicIfSet("Pending", thread)
	return s.Store.Pending(ctx, thread, id)
}

func (s panickingStore) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	s.trap.panicIfSet("Interrupts", q.Thread)
	return s.Store.Interrupts(ctx, q)
}

func (s panickingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.trap.panicIfSet("Apply", c.Thread)
	if len(c.Checkpoints) > 0 {
		s.trap.panicIfSet("Apply a checkpoint", c.Thread)
	}
	if c.Head.State != checkpoint.ThreadBusy {
		s.trap.panicIfSet("Apply an end", c.Thread)
	}
	return s.Store.Apply(ctx, c)
}

type panickingGraphs struct {
	graphCatalog

	trap *panicTrap
}

func (g panickingGraphs) Graph(name, version string) (*graph.Graph, error) {
	g.trap.panicIfSet("Graph", name)
	return g.graphCatalog.Graph(name, version)
}

type panickingSchemas struct{ trap *panicTrap }

func (s panickingSchemas) Check(_ context.Context, schema, _ payload.JSON) ([]runtime.Violation, error) {
	s.trap.panicIfSet("Check", string(schema))
	return nil, nil
}

// panickingObserver counts what is poisoned, and panics when it is told anything.
type panickingObserver struct {
	trap        *panicTrap
	quarantined atomic.Int64
}

func (o *panickingObserver) RunStarted(string) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) RunDriven(string) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) RunEnded(string, string, time.Duration) {
	o.trap.panicIfSet("observer", "")
}

func (o *panickingObserver) CommitEnded(time.Duration, error) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) InterruptRaised(string, string) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) InterruptResolved(string, string) { o.trap.panicIfSet("observer", "") }
func (o *panickingObserver) InterruptEnded(string, string, time.Duration) {
	o.trap.panicIfSet("observer", "")
}
func (o *panickingObserver) ThreadsPoisoned(n int) { o.quarantined.Store(int64(n)) }
func (o *panickingObserver) LiveBytes(int64)       { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) RunEvicted(string) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) CronFired(string, string) { o.trap.panicIfSet("observer", "") }

func (o *panickingObserver) NodeEnded(_, _, _ string, _ time.Duration) {
	o.trap.panicIfSet("observer", "")
}

// panicFixture is an engine whose surroundings can be made to panic.
type panicFixture struct {
	*fixture

	trap     *panicTrap
	observer *panickingObserver
	logs     *observer.ObservedLogs
}

const textSchema = `{"type":"string"}`

// newPanicFixture returns a fixture with a graph "g", whose thread "t" has an open
// interrupt, and a graph "other". Nothing panics yet.
func newPanicFixture(t *testing.T) *panicFixture {
	t.Helper()
	p := &panicFixture{trap: &panicTrap{}}
	p.observer = &panickingObserver{trap: p.trap}
	core, logs := observer.New(zap.ErrorLevel)
	p.logs = logs
	code := map[string]nodeFunc{
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			if len(c.Journal.Answers) > 0 {
				return logUpdate(`"answered"`)
			}
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, Schema: textSchema, TTL: time.Hour}}}
		},
		"quick": func(_ context.Context, c *nodeCall) pregel.Result {
			p.trap.panicIfSet("Execute", c.Thread)
			return logUpdate(`"quick"`)
		},
	}
	p.fixture = &fixture{
		t: t, store: panickingStore{memory.New(memory.Options{}), p.trap}, nodes: &nodeExecutor{funcs: code}, graphs: graphCatalog{},
		opts: engine.Options{Logger: zap.New(core), Observer: p.observer, Owner: "one"},
	}
	p.compileGraph(chainSpec("g", channelsLog, "ask", "quick"))
	p.compileGraph(parallelSpec("both", "ask", "quick"))
	p.compileGraph(chainSpec("other", channelsLog, "quick"))
	p.startTrappedEngine()
	require.Equal(t, checkpoint.RunInterrupted, p.runToStop("t", "g", `{}`).State)
	return p
}

func (p *panicFixture) startTrappedEngine() {
	p.engine = engine.New(context.Background(), p.store, panickingGraphs{p.graphs, p.trap}, p.nodes, panickingSchemas{p.trap}, p.opts)
	p.t.Cleanup(p.engine.Close)
}

// restartAfter makes a change, such as an answer or a queued run, and lets the scheduler
// of a new process take the thread up.
func (p *panicFixture) restartAfter(change func()) {
	p.engine.Close()
	change()
	p.startTrappedEngine()
}

// storeAnswer stores an answer as a server without capacity for the run does.
func (p *panicFixture) storeAnswer() { p.storeAnswerOn("t") }

func (p *panicFixture) storeAnswerOn(thread string) {
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

// storeQueuedRun stores a run that waits for nothing any more.
func (p *panicFixture) storeQueuedRun() {
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

func (p *panicFixture) readHead() checkpoint.Head {
	p.t.Helper()
	h, err := p.engine.Thread(p.t.Context(), "t")
	require.NoError(p.t, err)
	return h
}

// TestAFailingThreadIsQuarantined has the scheduler meet a thread at each point of
// whose taking something panics.
func TestAFailingThreadIsQuarantined(t *testing.T) {
	for _, c := range []struct {
		name, at, thread string
		due              func(*panicFixture)
		seen             bool // in the head of the thread
	}{
		{"answers, the graph", "Graph", "g", (*panicFixture).storeAnswer, true},
		{"answers, the run", "Run", "t", (*panicFixture).storeAnswer, true},
		{"answers, the checkpoint", "Checkpoint", "t", (*panicFixture).storeAnswer, true},
		{"answers, the progress", "Pending", "t", (*panicFixture).storeAnswer, true},
		{"answers, the change", "Apply", "t", (*panicFixture).storeAnswer, false},
		{"answers, the first step and its failure", "Apply an end", "t", (*panicFixture).storeAnswer, false},
		{"answers, the head", "Head", "t", (*panicFixture).storeAnswer, false},
		{"a queued run, the graph", "Graph", "g", (*panicFixture).storeQueuedRun, true},
		{"a queued run, the run", "Run", "t", (*panicFixture).storeQueuedRun, true},
		{"a queued run, the change", "Apply a checkpoint", "t", (*panicFixture).storeQueuedRun, true},
		{"a question that expires", "Interrupts", "t", func(*panicFixture) { sleepVirtual(2 * time.Hour) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPanicFixture(t)
				p.restartAfter(func() {
					c.due(p)
					p.trap.setTrap(c.at, c.thread)
				})
				sleepVirtual(10 * time.Minute)
				require.Greater(t, p.trap.hitCount(), 3, "it is tried again")
				require.Less(t, p.trap.hitCount(), 60, "in growing pauses")
				require.EqualValues(t, 1, p.observer.quarantined.Load())
				line := p.logs.FilterMessage("thread not taken up; it is put off").All()
				require.NotEmpty(t, line)
				require.Equal(t, "t", line[0].ContextMap()["thread"])
				require.Contains(t, line[0].ContextMap()["panic"], "a defect in "+c.at)

				bystander := p.runToStop("bystander", "other", `{}`)
				require.Equal(t, checkpoint.RunSucceeded, bystander.State)

				p.trap.setTrap("", "")
				if c.seen {
					require.Positive(t, p.readHead().Faults)
					require.True(t, p.readHead().RetryAt.After(time.Now()))
				}
				p.restartAfter(func() {})
				sleepVirtual(20 * time.Minute)
				require.Zero(t, p.readHead().Faults, "it has come further")
				require.Contains(t, []checkpoint.ThreadState{checkpoint.ThreadIdle, checkpoint.ThreadInterrupted}, p.readHead().State)
				require.Zero(t, p.observer.quarantined.Load())
				p.engine.Close()
			})
		})
	}
}

// TestAQuarantinedThreadCanBeReadCancelledAndDeleted acts as a person does who
// wants to be rid of it.
func TestAQuarantinedThreadCanBeReadCancelledAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanicFixture(t)
		p.restartAfter(func() {
			p.storeAnswer()
			p.trap.setTrap("Graph", "g")
		})
		sleepVirtual(time.Minute)
		require.Positive(t, p.readHead().Faults)
		require.Equal(t, checkpoint.ThreadInterrupted, p.readHead().State)
		run, err := p.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, run.State)
		require.Zero(t, p.readHead().Faults)
		sleepVirtual(10 * time.Minute)
		require.Zero(t, p.observer.quarantined.Load())

		require.NoError(t, p.engine.DeleteThread(t.Context(), "t", 0, false))
		p.engine.Close()
	})
}

// TestManyQuarantinedThreadsDoNotKeepOthersOut has more of them than the scheduler
// takes up at once, and none whose putting off can be stored.
func TestManyQuarantinedThreadsDoNotKeepOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanicFixture(t)
		const many = 600
		for i := range many {
			require.Equal(t, checkpoint.RunInterrupted, p.runToStop(fmt.Sprintf("poisoned%d", i), "g", `{}`).State)
		}
		p.restartAfter(func() {
			for i := range many {
				p.storeAnswerOn(fmt.Sprintf("poisoned%d", i))
			}
			sleepVirtual(time.Second)
			p.storeAnswer() // due last
			p.trap.setTrap("Apply", "poisoned")
		})
		sleepVirtual(30 * time.Second)
		require.Equal(t, checkpoint.ThreadIdle, p.readHead().State)
		require.EqualValues(t, many, p.observer.quarantined.Load())
		p.engine.Close()
	})
}

// TestAPanicEndsOneTask panics where the engine runs a task, looks at what it
// returned, or stores it.
func TestAPanicEndsOneTask(t *testing.T) {
	for _, c := range []struct{ graph, at, thread, during, reason string }{
		{"g", "Check", textSchema, "", runtime.ReasonInternal},
		{"both", "Check", textSchema, "", runtime.ReasonInternal},
		{"other", "Execute", "t2", "", runtime.FailedNode},
		{"both", "Execute", "t2", "", runtime.FailedNode},
		{"other", "Apply a checkpoint", "t2", "quick", runtime.ReasonInternal},
	} {
		t.Run(c.graph+" "+c.at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPanicFixture(t)
				if c.during == "" {
					p.trap.setTrap(c.at, c.thread)
				} else {
					p.nodes.funcs[c.during] = func(context.Context, *nodeCall) pregel.Result {
						p.trap.setTrap(c.at, c.thread)
						return logUpdate(`"set"`)
					}
				}
				run := p.runToStop("t2", c.graph, `{}`)
				require.Equal(t, checkpoint.RunFailed, run.State)
				require.Equal(t, c.reason, run.Failure.Reason)
				require.NotContains(t, run.Failure.Message, "a defect", "the cause is for the log")
				require.NotZero(t, p.logs.Len())
				p.trap.setTrap("", "")
				require.Equal(t, checkpoint.RunSucceeded, p.answerSingle("t", `"yes"`).State, "the server lives")
				p.engine.Close()
			})
		})
	}
}

// TestAnObserverThatPanicsChangesNothing lets every call of it panic.
func TestAnObserverThatPanicsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanicFixture(t)
		p.trap.setTrap("observer", "")
		require.Equal(t, checkpoint.RunSucceeded, p.runToStop("t2", "other", `{}`).State)
		require.Equal(t, checkpoint.RunSucceeded, p.answerSingle("t", `"yes"`).State)
		require.Positive(t, p.trap.hitCount())
		require.Equal(t, 1, p.logs.Len(), "it is logged once")
		p.engine.Close()
	})
}
