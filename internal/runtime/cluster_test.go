package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// rest lets time pass; in a synctest bubble it costs none.
func rest(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// doing works for a while, or until ctx ends.
func doing(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ledger is the world outside: it counts side effects, and notes what must
// never happen.
type ledger struct {
	store checkpoint.Store

	mu       sync.Mutex
	done     map[string]int  // runs of an effect, by task and key
	recorded map[string]bool // effects whose memo was acknowledged
	wrong    []string
}

func newLedger(store checkpoint.Store) *ledger {
	return &ledger{store: store, done: map[string]int{}, recorded: map[string]bool{}}
}

func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// memo is the SDK's memo: an effect that is recorded once and replayed.
func (c *call) memo(ctx context.Context, l *ledger, key string) (string, error) {
	for _, m := range c.Journal.Memos {
		if m.Key == key {
			return string(m.Value), nil
		}
	}
	name := c.ID + "/" + key
	l.mu.Lock()
	if l.recorded[name] {
		l.wrong = append(l.wrong, "effect "+key+" of "+c.Node.Name+" ran again after it was recorded")
	}
	l.done[name]++
	l.mu.Unlock()
	v, _, err := c.Effects.Remember(ctx, checkpoint.Memo{Key: key, Value: payload.Quote(key)})
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded[name] = true
	return string(v), nil
}

// auditor runs nodes and checks that no task runs whose result is in the log.
type auditor struct {
	*nodes

	ledger *ledger
}

func (a auditor) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	if t.Router == "" && !strings.Contains(t.Namespace, "unkept") {
		events, err := a.ledger.store.Events(context.WithoutCancel(ctx), t.Thread, 0, 0)
		if err != nil && !errors.Is(err, checkpoint.ErrThreadNotFound) {
			a.ledger.complain("read the log: %v", err)
		}
		for _, e := range events {
			if e.Task == t.ID && e.Kind == checkpoint.EventUpdate {
				a.ledger.complain("task of %s ran again though its result is stored", t.Node.Name)
			}
		}
	}
	return a.nodes.Execute(ctx, t)
}

// gate is the way of one process to the store. It can be made to fail at one
// call, and to be shut for good: the process is dead then, as after kill -9.
type gate struct {
	checkpoint.Store

	at   atomic.Int64 // number of the call that fails, 0 = none
	mode mode
	n    atomic.Int64
	shut atomic.Bool
	dead chan struct{} // closed with shut
}

type mode string

// How the k-th call fails.
const (
	refused    mode = "refused"               // and the next one is answered
	unanswered mode = "applied, reply lost"   // and the next one is answered
	hanging    mode = "hangs"                 // until the caller gives up
	killed     mode = "killed before"         // the process dies before the call
	killedLate mode = "killed after applying" // the process dies after the call
	overtaken  mode = "overtaken"             // somebody else changes the thread just before
	doubtful   mode = "applied, reply lost, overtaken"
)

var modes = []mode{refused, unanswered, hanging, killed, killedLate, overtaken, doubtful}

var errGate = fmt.Errorf("%w: gate", checkpoint.ErrUnavailable)

func newGate(s checkpoint.Store, at int64, m mode) *gate {
	g := &gate{Store: s, mode: m, dead: make(chan struct{})}
	g.at.Store(at)
	return g
}

func (g *gate) kill() {
	if g.shut.CompareAndSwap(false, true) {
		close(g.dead)
	}
}

// enter says whether a call may be made, and whether its answer gets lost.
func (g *gate) enter(ctx context.Context) (lost bool, err error) {
	n := g.n.Add(1)
	if g.shut.Load() {
		return false, errGate
	}
	if n != g.at.Load() {
		return false, nil
	}
	switch g.mode {
	case refused:
		return false, errGate
	case unanswered, doubtful:
		return true, nil
	case overtaken:
		return false, nil
	case hanging:
		<-ctx.Done()
		return false, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
	case killed:
		g.kill()
		return false, errGate
	default:
		defer g.kill()
		return true, nil
	}
}

func pass[T any](ctx context.Context, g *gate, do func() (T, error)) (T, error) {
	var none T
	lost, err := g.enter(ctx)
	if err != nil {
		return none, err
	}
	v, err := do()
	if lost {
		return none, errGate
	}
	return v, err
}

func (g *gate) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	return pass(ctx, g, func() (checkpoint.Head, error) { return g.Store.Head(ctx, thread) })
}

func (g *gate) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return pass(ctx, g, func() (checkpoint.Receipt, error) {
		hit := g.n.Load() == g.at.Load()
		if hit && g.mode == overtaken {
			g.overtake(ctx, c.Thread)
		}
		r, err := g.Store.Apply(ctx, c)
		if hit && g.mode == doubtful {
			g.overtake(ctx, c.Thread)
		}
		return r, err
	})
}

// overtake changes a thread in a way that does not matter.
func (g *gate) overtake(ctx context.Context, thread string) {
	head, err := g.Store.Head(ctx, thread)
	if err != nil {
		return // there is none yet, or no more
	}
	_, err = g.Store.Apply(ctx, &checkpoint.Change{
		Thread: thread, Expect: head.Revision, LogID: head.LogID, Op: "overtake", Head: head,
	})
	if err != nil {
		panic(err)
	}
}

func (g *gate) Checkpoint(ctx context.Context, thread, ns, id string) (*checkpoint.Checkpoint, error) {
	return pass(ctx, g, func() (*checkpoint.Checkpoint, error) { return g.Store.Checkpoint(ctx, thread, ns, id) })
}

func (g *gate) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return pass(ctx, g, func() (checkpoint.Pending, error) { return g.Store.Pending(ctx, thread, id) })
}

func (g *gate) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return pass(ctx, g, func() (checkpoint.Run, error) { return g.Store.Run(ctx, thread, run) })
}

func (g *gate) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return pass(ctx, g, func() (checkpoint.Interrupt, error) { return g.Store.Interrupt(ctx, thread, id) })
}

func (g *gate) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	return pass(ctx, g, func() (checkpoint.Request, error) { return g.Store.Request(ctx, thread, id) })
}

func (g *gate) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return pass(ctx, g, func() ([]checkpoint.Interrupt, error) { return g.Store.Interrupts(ctx, q) })
}

// Due and Events are not counted, only refused to the dead: how often they are
// called depends on time, not on the work.
func (g *gate) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if g.shut.Load() {
		return nil, time.Time{}, errGate
	}
	return g.Store.Due(ctx, limit)
}

func (g *gate) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	if g.shut.Load() {
		return nil, errGate
	}
	return g.Store.Events(ctx, thread, after, limit)
}

// cluster is a row of engines over one store, of which one is alive.
type cluster struct {
	t      testing.TB
	store  checkpoint.Store
	graphs catalog
	nodes  auditor
	opts   runtime.Options

	first  *gate
	engine *runtime.Engine
	all    []*runtime.Engine
}

func newCluster(tb testing.TB, store checkpoint.Store, at int64, m mode) *cluster {
	tb.Helper()
	return &cluster{
		t: tb, store: store, graphs: catalog{}, nodes: auditor{&nodes{}, newLedger(store)},
		first: newGate(store, at, m),
	}
}

func (c *cluster) compile(specs ...*graph.Spec) {
	c.t.Helper()
	w := &world{t: c.t, graphs: c.graphs}
	for _, s := range specs {
		w.compile(s)
	}
}

// boot starts a process over a way to the store.
func (c *cluster) boot(s checkpoint.Store) *runtime.Engine {
	opts := c.opts
	if opts.Poll == 0 {
		opts.Poll = 100 * time.Millisecond // another process may drive what is followed here
	}
	e := runtime.New(context.Background(), s, c.graphs, c.nodes, nil, opts)
	c.all = append(c.all, e)
	c.engine = e
	return e
}

func (c *cluster) close() {
	for _, e := range c.all {
		closeEngine(c.t, e)
	}
}

// insist makes a call until it is answered, on whichever process is alive, as
// a client with a request id does.
func (c *cluster) insist(call func(ctx context.Context, e *runtime.Engine) error) {
	c.t.Helper()
	for range 200 {
		err := c.once(call)
		if err == nil {
			return
		}
		if r := reason(err); r != runtime.ReasonStoreUnavailable && r != runtime.ReasonOutcomeUnknown && !errors.Is(err, context.Canceled) {
			require.NoError(c.t, err)
		}
		rest(time.Second)
	}
	c.t.Fatal("the service does not come back")
}

func (c *cluster) once(call func(ctx context.Context, e *runtime.Engine) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.engine == c.all[0] {
		watched := make(chan struct{})
		defer func() { cancel(); <-watched }()
		go func() {
			defer close(watched)
			select {
			case <-c.first.dead:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	err := call(ctx, c.engine)
	if c.first.shut.Load() && c.engine == c.all[0] {
		c.boot(c.store)
	}
	return err
}

// start begins a run; the name is its request id.
func (c *cluster) start(name string, req runtime.StartRequest) checkpoint.Run {
	c.t.Helper()
	req.RequestID, req.Digest, req.CreateThread = name, name, true
	var run checkpoint.Run
	c.insist(func(ctx context.Context, e *runtime.Engine) error {
		s, err := e.Start(ctx, req)
		run = s.Run
		return err
	})
	return run
}

// wait waits for the stop of a run.
func (c *cluster) wait(run checkpoint.Run) checkpoint.Run {
	c.t.Helper()
	var out checkpoint.Run
	c.insist(func(ctx context.Context, e *runtime.Engine) error {
		r, err := e.WaitRun(ctx, run.Thread, run.ID)
		out = r
		return err
	})
	return out
}

// reply answers open questions: the answer to a question is its text in
// brackets. It returns false when none is open.
func (c *cluster) reply(run checkpoint.Run, name string, most int) bool {
	c.t.Helper()
	open, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{
		Thread: run.Thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(c.t, err)
	slices.SortFunc(open, func(a, b checkpoint.Interrupt) int { return strings.Compare(string(a.Value), string(b.Value)) })
	req := runtime.ResumeRequest{Thread: run.Thread, RequestID: name, Digest: name}
	for _, q := range open[:min(most, len(open))] {
		if q.Reason == checkpoint.ReasonBreakpoint {
			req.Responses = nil
			break
		}
		req.Responses = append(req.Responses, runtime.Response{Interrupt: q.ID, Value: payload.Array([]payload.JSON{q.Value})})
	}
	if len(open) == 0 {
		return false
	}
	c.insist(func(ctx context.Context, e *runtime.Engine) error {
		_, err := e.Resume(ctx, req)
		return err
	})
	return true
}

// finish answers everything that is asked, at most so many questions at a
// time, until the run is over.
func (c *cluster) finish(run checkpoint.Run, most int) checkpoint.Run {
	c.t.Helper()
	for i := range 20 {
		r := c.wait(run)
		if r.State.Terminal() {
			return r
		}
		require.Equal(c.t, checkpoint.RunInterrupted, r.State)
		require.True(c.t, c.reply(run, fmt.Sprintf("%s-%d", run.ID, i), most), "the run waits and nothing is asked")
	}
	c.t.Fatal("the run asks for ever")
	return run
}

// story is what must be the same whatever went wrong on the way.
type story struct {
	Runs     []string            // their states, in order
	Values   string              // the final state
	Chains   map[string][]string // the checkpoints of each namespace, oldest first
	States   []string            // run_state events, in order
	Events   []string            // updates, questions and checkpoints, by superstep
	Resolved int
	Effects  []string
	// Questions are what has become of them, with their answers.
	Questions []string
}

func (c *cluster) story(thread string) story {
	c.t.Helper()
	ctx := context.Background()
	s := story{Chains: map[string][]string{}}
	runs, err := c.store.Runs(ctx, thread, 0, 0)
	require.NoError(c.t, err)
	for _, r := range slices.Backward(runs) {
		f := ""
		if r.Failure != nil {
			f = " " + r.Failure.Reason
		}
		s.Runs = append(s.Runs, string(r.State)+f+" "+string(r.Output))
	}
	c.insist(func(ctx context.Context, e *runtime.Engine) error {
		snap, err := e.State(ctx, runtime.StateRequest{Thread: thread})
		s.Values = string(snap.Values)
		return err
	})
	s.Questions = c.questions(thread)
	events, err := c.store.Events(ctx, thread, 0, 0)
	require.NoError(c.t, err)
	c.readEvents(&s, events)
	for _, ns := range namespaces(events) {
		s.Chains[pregel.NodePath(ns)] = append(s.Chains[pregel.NodePath(ns)], c.chain(thread, ns)...)
	}
	for name := range c.nodes.ledger.done {
		_, key, _ := strings.Cut(name, "/")
		s.Effects = append(s.Effects, key)
	}
	slices.Sort(s.Effects)
	return s
}

// questions lists all questions of a thread. An answer is what reply gave to
// that very question.
func (c *cluster) questions(thread string) []string {
	c.t.Helper()
	list, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{Thread: thread})
	require.NoError(c.t, err)
	var out []string
	for _, q := range list {
		if q.Response != "" {
			require.Equal(c.t, payload.Array([]payload.JSON{q.Value}), q.Response)
		}
		out = append(out, fmt.Sprintf("%s %d %s %s %s %v", q.Node, q.Round, q.State, q.Value, q.Response, q.Differs))
	}
	slices.Sort(out)
	return out
}

func namespaces(events []checkpoint.Event) []string {
	var out []string
	for _, e := range events {
		if e.Kind == checkpoint.EventCheckpoint && !slices.Contains(out, e.Namespace) {
			out = append(out, e.Namespace)
		}
	}
	return out
}

// chain lists the checkpoints of a namespace and checks that they are one line,
// save where a replay branched off.
func (c *cluster) chain(thread, ns string) []string {
	c.t.Helper()
	list, err := c.store.Checkpoints(context.Background(), checkpoint.CheckpointQuery{Thread: thread, Namespace: ns})
	require.NoError(c.t, err)
	var out []string
	parent := ""
	for _, cp := range slices.Backward(list) {
		if cp.Source != checkpoint.SourceFork {
			require.Equal(c.t, parent, cp.Parent, "the history of %q is not linear", ns)
		}
		parent = cp.ID
		out = append(out, fmt.Sprintf("%s %d %v", cp.Source, cp.Step, cp.Updated))
	}
	return out
}

func (c *cluster) readEvents(s *story, events []checkpoint.Event) {
	c.t.Helper()
	for i, e := range events {
		require.EqualValues(c.t, i+1, e.Seq, "the numbers have a gap")
		at := fmt.Sprintf("%03d %s ", e.Step+2, pregel.NodePath(e.Namespace))
		switch e.Kind {
		case checkpoint.EventRunState:
			s.States = append(s.States, line(e))
		case checkpoint.EventUpdate:
			if !e.Cached {
				s.Events = append(s.Events, at+line(e))
			}
		case checkpoint.EventInterrupt, checkpoint.EventCheckpoint:
			s.Events = append(s.Events, at+line(e))
		case checkpoint.EventResolved:
			s.Resolved += len(e.Interrupts)
		default: // how often the others are told is not the same on every way
		}
	}
	slices.Sort(s.Events)
	s.Events = slices.CompactFunc(s.Events, func(a, b string) bool {
		return a == b && strings.Contains(a, " unkept/") // a graph that keeps nothing begins anew
	})
}
