package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// changeCountingStore counts the changes of a store, and how many checkpoints each has. By
// before, something may happen first.
type changeCountingStore struct {
	checkpoint.Store
	mu               sync.Mutex
	checkpointCounts []int
	beforeApply      func(n int, c *checkpoint.Change) error
}

func (s *changeCountingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beforeApply != nil {
		if err := s.beforeApply(len(s.checkpointCounts), c); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	s.checkpointCounts = append(s.checkpointCounts, len(c.Checkpoints))
	return s.Store.Apply(ctx, c)
}

// loopSpec returns a graph that repeats an expression until there are n log entries.
func loopSpec(n int) *graph.Spec {
	return &graph.Spec{
		Name: "rounds", Channels: channelsLog,
		Nodes:    []graph.NodeSpec{{Name: "a", Expr: &graph.ExprSpec{}}},
		Edges:    []graph.EdgeSpec{newEdge(graph.Start, "a")},
		Branches: []graph.BranchSpec{{From: "a", Expr: fmt.Sprintf("size(state.log) < %d ? 'a' : '__end__'", n)}},
	}
}

// newCountingFixture makes a fixture over a counting store, in a bubble.
func newCountingFixture(t *testing.T, opts engine.Options, code map[string]nodeFunc, spec *graph.Spec) (*fixture, *changeCountingStore) {
	t.Helper()
	store := &changeCountingStore{Store: memory.New(memory.Options{})}
	return newFixtureOn(t, store, opts, code, spec), store
}

func logNode(context.Context, *nodeCall) pregel.Result { return logUpdate(`"a"`) }

func TestSuperstepsThatComputeShareCommits(t *testing.T) {
	slow := func(context.Context, *nodeCall) pregel.Result {
		return logUpdate(`"` + strings.Repeat("x", 100<<10) + `"`)
	}
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
	mixed := withExpressions(chainSpec("g", channelsLog, "quick", "fast", "slow", "join", "last"))
	for name, c := range map[string]struct {
		opts engine.Options
		spec *graph.Spec
		a    nodeFunc
		want []int // checkpoints of each change
	}{
		"all with the change that starts the run": {spec: loopSpec(12), a: logNode, want: []int{14}},
		"no more than 64":                         {spec: loopSpec(200), a: logNode, want: []int{2 + 63, 64, 64, 9}},
		"none when they are not to":               {opts: engine.Options{StepsPerCommit: 1}, spec: loopSpec(3), a: logNode, want: []int{2, 1, 1, 1}},
		"no more than is good for a store":        {spec: loopSpec(7), a: slow, want: []int{2 + 3, 1 + 3}},
		"up to a node with effects, and from it":  {spec: mixed, a: logNode, want: []int{2 + 2, 3}},
		"up to a breakpoint":                      {spec: withBreakpoint(mixed, "last"), a: logNode, want: []int{2, 2, 2}},
		"up to a question":                        {spec: withExpressions(chainSpec("g", channelsLog, "quick", "a", "last")), a: ask, want: []int{2 + 1, 0}},
		"with a question that only asks":          {spec: withExpressions(chainSpec("g", channelsLog, "quick", "a", "last"), "a"), a: ask, want: []int{2 + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				code := map[string]nodeFunc{"a": c.a}
				for _, n := range []string{"quick", "fast", "slow", "join", "last"} {
					code[n] = logNode
				}
				w, store := newCountingFixture(t, c.opts, code, c.spec)
				w.runToStop("t", c.spec.Name, `{"log":[]}`)
				require.Equal(t, c.want, store.checkpointCounts)
				w.engine.Close()
			})
		})
	}
}

func withBreakpoint(s *graph.Spec, before string) *graph.Spec {
	p := *s
	p.InterruptBefore = []string{before}
	return &p
}

// TestWhatIsComputedIsNotVisibleBeforeItsCommit refuses the commit of a chain of
// expressions: they are not visible, and are computed again.
func TestWhatIsComputedIsNotVisibleBeforeItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		effect := func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"effect"`) }
		a := func(context.Context, *nodeCall) pregel.Result {
			ran.Add(1)
			return logUpdate(`"a"`)
		}
		spec := withExpressions(chainSpec("g", channelsLog, "slow", "quick", "fast", "last"))
		w, store := newCountingFixture(t, engine.Options{}, map[string]nodeFunc{"slow": effect, "quick": a, "fast": a, "last": a}, spec)
		refusals := 0
		store.beforeApply = func(n int, c *checkpoint.Change) error {
			if n == 1 && refusals < 2 && len(c.Checkpoints) > 0 {
				refusals++
				require.Len(t, c.Checkpoints, 4)
				require.NotContains(t, strings.Join(w.describeEvents("t"), "\n"), "effect")
				return fmt.Errorf("%w: not now", checkpoint.ErrUnavailable)
			}
			return nil
		}
		r := w.runToStop("t", "g", `{"log":["x"]}`)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Equal(t, 2, refusals)
		require.JSONEq(t, `{"log":["x","effect","a","a","a"],"n":4}`, string(r.Output))
		require.EqualValues(t, 3, ran.Load(), "the same change is sent again")
		w.engine.Close()
	})
}

// TestAChangeInBetweenIsComputedAgain changes the thread while a chain of
// expressions is about to be committed.
func TestAChangeInBetweenIsComputedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		effect := func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"effect"`) }
		spec := withExpressions(chainSpec("g", channelsLog, "slow", "quick", "fast", "last"))
		code := map[string]nodeFunc{"slow": effect, "quick": logNode, "fast": logNode, "last": logNode}
		w, store := newCountingFixture(t, engine.Options{}, code, spec)
		other := false
		store.beforeApply = func(n int, c *checkpoint.Change) error {
			if n != 1 || other {
				return nil
			}
			other = true
			head, err := store.Head(t.Context(), "t")
			require.NoError(t, err)
			change := checkpoint.Change{Thread: "t", Expect: head.Revision, LogID: head.LogID, Op: "other", Head: head}
			change.Head.Metadata = map[string]string{"by": "another"}
			_, err = store.Store.Apply(t.Context(), &change)
			require.NoError(t, err)
			return nil
		}
		r := w.runToStop("t", "g", `{"log":["x"]}`)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.JSONEq(t, `{"log":["x","effect","a","a","a"],"n":4}`, string(r.Output))
		require.Len(t, w.listCheckpoints("t", ""), 6)
		head, err := w.engine.Thread(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, "another", head.Metadata["by"])
		w.engine.Close()
	})
}

// TestAnEndlessComputationCanBeCancelled goes round for ever.
func TestAnEndlessComputationCanBeCancelled(t *testing.T) {
	w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{StepLimit: 1 << 40}, map[string]nodeFunc{
		"a": func(context.Context, *nodeCall) pregel.Result { return pregel.Result{Update: `{"n":1}`} },
	}, loopSpec(1))
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "rounds", Request: checkpoint.RunRequest{Input: `{"n":1}`},
	})
	require.NoError(t, err)
	_, err = w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: s.Run.ID})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunCancelled, w.waitRun(s).State)
}
