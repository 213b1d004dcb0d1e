package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

// sleepVirtual lets time pass; in a synctest bubble it costs none.
func sleepVirtual(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// workFor works for a while, or until ctx ends.
func workFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// effectLedger counts external side effects and records what must never happen.
type effectLedger struct {
	store checkpoint.Store

	mu         sync.Mutex
	runs       map[string]int  // runs of an effect, by task and key
	recorded   map[string]bool // effects whose memo was acknowledged
	violations []string
}

func newEffectLedger(store checkpoint.Store) *effectLedger {
	return &effectLedger{store: store, runs: map[string]int{}, recorded: map[string]bool{}}
}

func (l *effectLedger) addViolation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, fmt.Sprintf(format, args...))
}

// recordEffect records an effect once and replays it, as the SDK's memo does.
func (c *nodeCall) recordEffect(ctx context.Context, l *effectLedger, key string) (string, error) {
	for _, m := range c.Journal.Memos {
		if m.Key == key {
			return string(m.Value), nil
		}
	}
	name := c.ID + "/" + key
	l.mu.Lock()
	if l.recorded[name] {
		l.violations = append(l.violations, "effect "+key+" of "+c.Node.Name+" ran again after it was recorded")
	}
	l.runs[name]++
	l.mu.Unlock()
	v, _, err := c.Effects.RecordMemo(ctx, checkpoint.Memo{Key: key, Value: payload.Quote(key)})
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded[name] = true
	return string(v), nil
}

// auditingExecutor runs nodes and checks that no task runs whose result is in the log.
type auditingExecutor struct {
	*nodeExecutor

	ledger *effectLedger
}

func (a auditingExecutor) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	if t.Router == "" && !strings.Contains(t.Namespace, "unkept") {
		events, err := a.ledger.store.Events(context.WithoutCancel(ctx), t.Thread, 0, 0)
		if err != nil && !errors.Is(err, checkpoint.ErrThreadNotFound) {
			a.ledger.addViolation("read the log: %v", err)
		}
		for _, e := range events {
			if e.Task == t.ID && e.Kind == checkpoint.EventUpdate {
				a.ledger.addViolation("task of %s ran again though its result is stored", t.Node.Name)
			}
		}
	}
	return a.nodeExecutor.Execute(ctx, t)
}

// clusterTimes are how long clients wait, and what they wait for.
type clusterTimes struct {
	retry time.Duration // before a call is repeated
	undo  time.Duration // until an answer takes effect
	slip  time.Duration // until one takes effect that is to be taken back before
	step  time.Duration // between the steps of a question
}

// cluster is a row of engines over one store, of which one is alive.
type cluster struct {
	t      testing.TB
	store  checkpoint.Store
	graphs graphCatalog
	nodes  auditingExecutor
	opts   engine.Options
	times  clusterTimes

	faulty  *faultyStore
	engine  *engine.Engine
	engines []*engine.Engine
}

func newCluster(tb testing.TB, store checkpoint.Store, at int64, m faultMode) *cluster {
	tb.Helper()
	return &cluster{
		t: tb, store: store, graphs: graphCatalog{}, nodes: auditingExecutor{&nodeExecutor{}, newEffectLedger(store)},
		faulty: newFaultyStore(store, at, m),
		times:  clusterTimes{retry: time.Second, undo: undoTime, slip: 2 * time.Minute, step: time.Minute},
	}
}

func (c *cluster) compileGraphs(specs ...*graph.Spec) {
	c.t.Helper()
	w := &fixture{t: c.t, graphs: c.graphs}
	for _, s := range specs {
		w.compileGraph(s)
	}
}

// startEngine starts a process over a way to the store.
func (c *cluster) startEngine(s checkpoint.Store) *engine.Engine {
	opts := c.opts
	if opts.PollInterval == 0 {
		opts.PollInterval = 100 * time.Millisecond // another process may drive what is followed here
	}
	opts.KnowsCallers, opts.KeepsSecrets = true, true
	e := engine.New(context.Background(), s, c.graphs, c.nodes, nil, opts)
	c.engines = append(c.engines, e)
	c.engine = e
	return e
}

func (c *cluster) closeAll() {
	for _, e := range c.engines {
		closeEngine(c.t, e)
	}
}

// callUntilAnswered makes a call until it is answered, on whichever process is alive, as
// a client with a request id does.
func (c *cluster) callUntilAnswered(call func(ctx context.Context, e *engine.Engine) error) {
	c.t.Helper()
	for range 200 {
		err := c.callOnce(call)
		if err == nil {
			return
		}
		if r := errorReason(err); r != runtime.ReasonStoreUnavailable && r != runtime.ReasonOutcomeUnknown && !errors.Is(err, context.Canceled) {
			require.NoError(c.t, err)
		}
		sleepVirtual(c.times.retry)
	}
	c.t.Fatal("the service does not come back")
}

func (c *cluster) callOnce(call func(ctx context.Context, e *engine.Engine) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.engine == c.engines[0] {
		watched := make(chan struct{})
		defer func() { cancel(); <-watched }()
		go func() {
			defer close(watched)
			select {
			case <-c.faulty.died:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	err := call(ctx, c.engine)
	if c.faulty.isDead.Load() && c.engine == c.engines[0] {
		c.startEngine(c.store)
	}
	return err
}

// startRun begins a run; the name is its request id.
func (c *cluster) startRun(name string, req runtime.StartRequest) checkpoint.Run {
	c.t.Helper()
	req.RequestID, req.Digest, req.CreateThread = name, name, true
	req.By = runtime.Actor{Name: "starter of " + name, How: ana.How, Method: ana.Method}
	var run checkpoint.Run
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		s, err := e.Start(ctx, req)
		if err == nil {
			run = s.Run
		}
		return err
	})
	return run
}

// waitRun waits for the stop of a run.
func (c *cluster) waitRun(run checkpoint.Run) checkpoint.Run {
	c.t.Helper()
	var out checkpoint.Run
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		r, err := e.WaitRun(ctx, run.Thread, run.ID)
		out = r
		return err
	})
	return out
}

// waitEnd waits for the end of a run that goes on by itself. A call now and then finds out
// whether the service is away.
func (c *cluster) waitEnd(run checkpoint.Run) checkpoint.Run {
	c.t.Helper()
	for range 100 {
		sleepVirtual(4 * c.times.step)
		var now checkpoint.Run
		c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) (err error) {
			now, err = e.Run(ctx, nil, run.Thread, run.ID)
			return err
		})
		if now.State.Terminal() {
			return now
		}
	}
	c.t.Fatal("the run does not end")
	return run
}

// answerOpen answers open interrupts: the answer to an interrupt is its text in
// brackets. It returns false when none is open.
func (c *cluster) answerOpen(run checkpoint.Run, name string, most int) bool {
	c.t.Helper()
	return c.answerOpenAs(ben, run, name, most)
}

func (c *cluster) answerOpenAs(by runtime.Actor, run checkpoint.Run, name string, most int) bool {
	c.t.Helper()
	open, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{
		Thread: run.Thread, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(c.t, err)
	slices.SortFunc(open, func(a, b checkpoint.Interrupt) int { return strings.Compare(string(a.Value), string(b.Value)) })
	req := runtime.ResumeRequest{Thread: run.Thread, RequestID: name, Digest: name, By: by}
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
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Resume(ctx, req)
		return err
	})
	return true
}

// answerToEnd answers everything that is asked, at most so many interrupts at a
// time, until the run is over.
func (c *cluster) answerToEnd(run checkpoint.Run, most int) checkpoint.Run {
	c.t.Helper()
	for i := range 20 {
		r := c.waitRun(run)
		if r.State.Terminal() {
			return r
		}
		require.Equal(c.t, checkpoint.RunInterrupted, r.State)
		require.True(c.t, c.answerOpen(run, fmt.Sprintf("%s-%d", run.ID, i), most), "the run waits and nothing is asked")
	}
	c.t.Fatal("the run asks for ever")
	return run
}

// threadSummary is what must be the same whatever fault occurred.
type threadSummary struct {
	Runs      []string            // their states, in order
	Values    string              // the final state
	Histories map[string][]string // the checkpoints of each namespace, oldest first
	States    []string            // run_state events, in order
	Events    []string            // updates, interrupts and checkpoints, by superstep
	Resolved  int
	Effects   []string
	// Interrupts are what has become of them, with their answers and trails.
	Interrupts []string
}

func (c *cluster) summarizeThread(thread string) threadSummary {
	c.t.Helper()
	ctx := context.Background()
	s := threadSummary{Histories: map[string][]string{}}
	runs, err := c.store.Runs(ctx, thread, 0, 0)
	require.NoError(c.t, err)
	for _, r := range slices.Backward(runs) {
		f := ""
		if r.Failure != nil {
			f = " " + r.Failure.Reason
		}
		s.Runs = append(s.Runs, string(r.State)+f+" "+string(r.Output)+" by "+r.StartedBy)
	}
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
		snap, err := e.State(ctx, runtime.StateRequest{Thread: thread})
		s.Values = string(snap.Values)
		return err
	})
	s.Interrupts = c.describeInterrupts(thread)
	events, err := c.store.Events(ctx, thread, 0, 0)
	require.NoError(c.t, err)
	c.summarizeEvents(&s, events)
	for _, ns := range checkpointNamespaces(events) {
		s.Histories[pregel.NodePath(ns)] = append(s.Histories[pregel.NodePath(ns)], c.describeHistory(thread, ns)...)
	}
	for name := range c.nodes.ledger.runs {
		_, key, _ := strings.Cut(name, "/")
		s.Effects = append(s.Effects, key)
	}
	slices.Sort(s.Effects)
	return s
}

// describeInterrupts lists all interrupts of a thread. An answer is what reply gave to
// that very interrupt.
func (c *cluster) describeInterrupts(thread string) []string {
	c.t.Helper()
	list, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{Thread: thread})
	require.NoError(c.t, err)
	var out []string
	for _, q := range list {
		if q.Response != "" && q.State != checkpoint.InterruptExpired {
			require.Equal(c.t, payload.Array([]payload.JSON{q.Value}), q.Response)
			require.Contains(c.t, []runtime.Actor{ben, eve}, responderOf(&q))
			require.False(c.t, q.ResponseTime.Before(q.Created) || q.ResponseTime.After(q.Updated))
		}
		line := fmt.Sprintf("%s %d %s %s %s %v %s", q.Node, q.Round, q.State, q.Value, q.Response, q.Differs, q.Responder)
		for _, v := range q.Votes {
			require.False(c.t, v.Time.Before(q.Created) || v.Time.After(q.Updated))
			line += fmt.Sprintf(" %s:%s", v.Voter, v.Value)
		}
		line += fmt.Sprintf(" for %v %v, claimed by %q: ", q.Assignees, q.PropertyChanges().Delegations, q.ClaimedBy)
		out = append(out, line+strings.Join(c.describeFullTrail(&q), ", "))
	}
	slices.Sort(out)
	return out
}

// describeFullTrail lists the trail of an interrupt. Each call that shows secret parts has an
// entry: how often it was repeated differs, so equal entries of that kind count as one.
func (c *cluster) describeFullTrail(q *checkpoint.Interrupt) []string {
	c.t.Helper()
	log := q.FullTrail()
	entries, err := log.Entries()
	require.NoError(c.t, err)
	return slices.CompactFunc(describeTrail(entries), func(a, b string) bool {
		return a == b && strings.HasPrefix(a, string(trail.Revealed))
	})
}

// checkTags compares what the store finds and counts by tags with the records.
func (c *cluster) checkTags() {
	c.t.Helper()
	ctx := context.Background()
	wanted := c.listByTag()
	tags := slices.Sorted(maps.Keys(wanted))
	counts, err := c.store.CountTags(ctx, tenant.Default, tags)
	require.NoError(c.t, err)
	for i, tag := range tags {
		require.Len(c.t, wanted[tag], counts[i], tag)
		if tag == checkpoint.OpenTag {
			continue // it is counted, and finds none
		}
		list, err := c.store.Interrupts(ctx, checkpoint.InterruptQuery{
			Tenant: tenant.Default, Tags: []string{tag}, States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
		})
		require.NoError(c.t, err)
		var found []string
		for j := range list {
			found = append(found, list[j].ID)
		}
		require.ElementsMatch(c.t, wanted[tag], found, tag)
	}
}

// listByTag lists the open interrupts of each tag by the records. Tags that interrupts have had
// find none.
func (c *cluster) listByTag() map[string][]string {
	c.t.Helper()
	all, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{})
	require.NoError(c.t, err)
	byTag := map[string][]string{checkpoint.OpenTag: nil}
	for _, by := range []runtime.Actor{ana, ben, eve} {
		byTag[checkpoint.UserTag(by.Name)], byTag[checkpoint.ClaimTag(by.Name)] = nil, nil
	}
	for _, q := range all {
		var ids []string
		if q.State == checkpoint.InterruptOpen {
			ids = append(ids, q.ID)
		}
		q.State = checkpoint.InterruptOpen
		for _, tag := range append(q.Tags(), checkpoint.OpenTag) {
			byTag[tag] = append(byTag[tag], ids...)
		}
	}
	return byTag
}

func byActor(e checkpoint.Event) string {
	if e.Actor == "" {
		return ""
	}
	return " by " + e.Actor
}

func checkpointNamespaces(events []checkpoint.Event) []string {
	var out []string
	for _, e := range events {
		if e.Kind == checkpoint.EventCheckpoint && !slices.Contains(out, e.Namespace) {
			out = append(out, e.Namespace)
		}
	}
	return out
}

// describeHistory lists the checkpoints of a namespace and checks that they are one line,
// save where a replay branched off.
func (c *cluster) describeHistory(thread, ns string) []string {
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

func (c *cluster) summarizeEvents(s *threadSummary, events []checkpoint.Event) {
	c.t.Helper()
	told := make(map[string]bool)
	for i, e := range events {
		require.EqualValues(c.t, i+1, e.Seq, "the numbers have a gap")
		at := fmt.Sprintf("%03d %s ", e.Step+2, pregel.NodePath(e.Namespace))
		switch e.Kind {
		case checkpoint.EventRunState:
			s.States = append(s.States, describeEvent(e)+byActor(e))
		case checkpoint.EventUpdate:
			if !e.Cached {
				s.Events = append(s.Events, at+describeEvent(e)+byActor(e))
			}
		case checkpoint.EventCheckpoint:
			if !told[e.Checkpoint] { // a run that goes on there tells of it again
				told[e.Checkpoint] = true
				s.Events = append(s.Events, at+describeEvent(e)+byActor(e))
			}
		case checkpoint.EventInterrupt:
			s.Events = append(s.Events, at+describeEvent(e)+byActor(e))
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
