package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// delayingStore runs something else just before one change, or loses its answers.
type delayingStore struct {
	checkpoint.Store

	matches     func(c *checkpoint.Change) bool // the change that is meant
	beforeApply func()                          // happens just before it, once
	lostAnswers int                             // so many of its answers are lost
}

func (s *delayingStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if s.matches == nil || !s.matches(c) {
		return s.Store.Apply(ctx, c)
	}
	if then := s.beforeApply; then != nil {
		s.beforeApply = nil
		then()
	}
	r, err := s.Store.Apply(ctx, c)
	if err == nil && s.lostAnswers > 0 {
		s.lostAnswers--
		return checkpoint.Receipt{}, fmt.Errorf("%w: answer lost", checkpoint.ErrUnavailable)
	}
	return r, err
}

func hasAnswer(c *checkpoint.Change) bool {
	return slices.ContainsFunc(c.Interrupts, func(q checkpoint.Interrupt) bool { return q.Response != "" })
}

// approvalSpec asks and does then what was asked for, once: graphs that compute all
// the way, that have an effect at the end, and whose interrupt needs code.
func approvalSpec(asks, acts bool) *graph.Spec {
	s := chainSpec("g", channelsLog, "plan", "ask", "weigh", "act", "last")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Name == "ask" && asks || n.Name == "act" && acts {
			continue
		}
		n.Function, n.Expr = nil, &graph.ExprSpec{}
		if n.Name == "ask" {
			n.Expr, n.Ask = nil, &graph.AskSpec{Value: "'?'"}
		}
	}
	return s
}

type raceCase struct {
	t        *testing.T
	fixture  *fixture
	other    *engine.Engine // another server on the same store
	store    *delayingStore
	actCount int
}

func newRaceCase(t *testing.T, asks, acts bool) *raceCase {
	t.Helper()
	m := &raceCase{t: t, store: &delayingStore{Store: memory.New(memory.Options{})}}
	quick := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(`"` + c.Node.Name + `"`) }
	m.fixture = newFixtureOn(t, m.store, engine.Options{}, map[string]nodeFunc{
		"plan": quick, "weigh": quick, "last": quick,
		"ask": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"delete?"`)) },
		"act": func(_ context.Context, c *nodeCall) pregel.Result {
			if acts {
				m.actCount++
				require.Contains(t, strings.Join(m.fixture.describeEvents("t"), "\n"), "weigh succeeded", "what leads to an effect is durable before it")
			}
			return logUpdate(`"act"`)
		},
	}, approvalSpec(asks, acts))
	m.other = engine.New(t.Context(), m.store.Store, m.fixture.graphs, m.fixture.nodes, nil, engine.Options{})
	t.Cleanup(m.other.Close)
	require.Equal(t, checkpoint.RunInterrupted, m.fixture.runToStop("t", "g", `{"log":["in"]}`).State)
	synctest.Wait()
	return m
}

func (c *raceCase) answerOpen(e *engine.Engine, value, request string) (*runtime.Started, error) {
	open, err := e.Interrupts(c.t.Context(), nil, checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(c.t, err)
	req := runtime.ResumeRequest{Thread: "t", RequestID: request, Digest: request}
	for _, q := range open {
		req.Responses = []runtime.Response{{Interrupt: q.ID, Value: payload.JSON(value)}}
	}
	return e.Resume(c.t.Context(), req)
}

// checkSettled checks what holds whatever came first: the interrupt was closed once,
// each run has ended once, and events have no gaps.
func (c *raceCase) checkSettled() (head checkpoint.Head, values string) {
	c.t.Helper()
	sleepVirtual(time.Minute)
	head, err := c.store.Head(c.t.Context(), "t")
	require.NoError(c.t, err)
	require.NotEqual(c.t, checkpoint.ThreadBusy, head.State)
	events, err := c.store.Events(c.t.Context(), "t", 0, 0)
	require.NoError(c.t, err)
	closed, ended := map[string]int{}, map[string]int{}
	for i, e := range events {
		require.EqualValues(c.t, i+1, e.Seq)
		if e.Kind == checkpoint.EventRunState && e.State.Terminal() {
			ended[e.Run]++
		}
		if e.Kind == checkpoint.EventResolved {
			for _, q := range e.Interrupts {
				closed[q.ID]++
			}
		}
	}
	for id, n := range closed {
		require.Equal(c.t, 1, n, "question %s", id)
	}
	for id, n := range ended {
		require.Equal(c.t, 1, n, "run %s", id)
	}
	return head, c.fixture.stateValues("t")
}

// TestWhatHappensAtTheMomentOfAnAnswer lets something else come first, just
// before the change with an answer and what follows it is made.
func TestWhatHappensAtTheMomentOfAnAnswer(t *testing.T) {
	both := `{"log":["in","plan","%s","weigh","act","last"],"n":5}`
	for name, c := range map[string]struct {
		then   func(m *raceCase) error
		reason string // of the answer
		values string
		acts   int
	}{
		"another answer": {
			then: func(m *raceCase) error {
				_, err := m.answerOpen(m.other, `"no"`, "")
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: fmt.Sprintf(both, "no"), acts: 1,
		},
		"the same answer": {
			then: func(m *raceCase) error {
				_, err := m.answerOpen(m.other, `"yes"`, "")
				return err
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"the same request": {
			then: func(m *raceCase) error {
				_, err := m.answerOpen(m.other, `"yes"`, "request")
				return err
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"a cancel": {
			then: func(m *raceCase) error {
				_, err := m.other.Cancel(m.t.Context(), runtime.CancelRequest{Thread: "t"})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":["in","plan"],"n":1}`,
		},
		"a cancel that takes back": {
			then: func(m *raceCase) error {
				_, err := m.other.Cancel(m.t.Context(), runtime.CancelRequest{Thread: "t", Rollback: true})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":[]}`,
		},
		"another state": {
			then: func(m *raceCase) error {
				_, err := m.other.UpdateState(m.t.Context(), runtime.UpdateStateRequest{
					Thread: "t", Values: `{"log":["hand"]}`, AsNode: "last", SupersedeInterrupts: true,
				})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":["in","plan","hand"],"n":1}`,
		},
		"the end of the thread, and another of its name": {
			then: func(m *raceCase) error {
				require.NoError(m.t, m.other.DeleteThread(m.t.Context(), "t", 0, false))
				_, err := m.other.Start(m.t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("new")})
				return err
			},
			reason: runtime.ReasonInterruptNotFound, values: `{"log":["new","plan"],"n":1}`,
		},
		"the end of the server": {
			then: func(m *raceCase) error {
				go m.fixture.engine.Drain(context.WithoutCancel(m.t.Context()))
				return nil
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"a change of what the thread is called": {
			then: func(m *raceCase) error {
				head, err := m.store.Head(m.t.Context(), "t")
				require.NoError(m.t, err)
				change := checkpoint.Change{Thread: "t", Expect: head.Revision, LogID: head.LogID, Op: "other", Head: head}
				change.Head.Metadata = map[string]string{"by": "another"}
				_, err = m.store.Store.Apply(m.t.Context(), &change)
				return err
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
	} {
		for _, kind := range []string{"computing", "with an effect", "with code that asks"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newRaceCase(t, kind == "with code that asks", kind != "computing")
					m.store.matches = hasAnswer
					m.store.beforeApply = func() {
						require.NoError(t, c.then(m))
						sleepVirtual(time.Second)
					}
					_, err := m.answerOpen(m.fixture.engine, `"yes"`, "request")
					require.Equal(t, c.reason, errorReason(err))
					require.Nil(t, m.store.beforeApply)
					_, values := m.checkSettled()
					require.JSONEq(t, c.values, values)
					if kind != "computing" {
						require.Equal(t, c.acts, m.actCount)
					}
				})
			})
		}
	}
}

// TestAnAnswerWhoseReplyIsLost gives the answer again under its request id, to the same
// server and to another one.
func TestAnAnswerWhoseReplyIsLost(t *testing.T) {
	for _, kind := range []string{"computing", "with an effect", "with code that asks"} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newRaceCase(t, kind == "with code that asks", kind != "computing")
					m.store.matches, m.store.lostAnswers = hasAnswer, 3
					_, err := m.answerOpen(m.fixture.engine, `"yes"`, "request")
					require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
					m.store.lostAnswers = 0
					e := m.fixture.engine
					if elsewhere {
						e = m.other
					}
					s, err := m.answerOpen(e, `"yes"`, "request")
					require.NoError(t, err)
					require.True(t, s.IsAttached)
					_, err = m.answerOpen(e, `"no"`, "another request")
					require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err))
					_, values := m.checkSettled()
					require.JSONEq(t, `{"log":["in","plan","yes","weigh","act","last"],"n":5}`, values)
					if kind != "computing" {
						require.Equal(t, 1, m.actCount)
					}
				})
			})
		}
	}
}

// TestTheSameStartTwice begins a run with the same request id or run id again:
// after the reply was lost, in a thread that was deleted, and without looking
// whether the thread is there.
func TestTheSameStartTwice(t *testing.T) {
	for _, ids := range []string{"request", "run"} {
		for _, bold := range []bool{false, true} {
			for _, acts := range []bool{false, true} {
				t.Run(fmt.Sprint(ids, " ", bold, acts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := newRaceCase(t, false, acts)
						if bold {
							for n := range 20 {
								m.fixture.runToStop(fmt.Sprint("new", n), "g", `{"log":[]}`)
							}
						}
						req := runtime.StartRequest{Thread: "u", CreateThread: true, Graph: "g", Request: newInput("x")}
						if ids == "run" {
							req.Run = "mine"
						} else {
							req.RequestID, req.Digest = "mine", "digest"
						}
						lose := func() {
							m.store.lostAnswers, m.store.matches = 3, func(c *checkpoint.Change) bool { return c.Thread == "u" }
							_, err := m.fixture.engine.Start(t.Context(), req)
							require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
							m.store.matches = nil
						}
						again := func() *runtime.Started {
							s, err := m.fixture.engine.Start(t.Context(), req)
							require.NoError(t, err)
							require.True(t, s.IsAttached)
							return s
						}
						lose()
						first := again()
						require.Equal(t, first.Run.ID, again().Run.ID)
						require.Equal(t, checkpoint.RunInterrupted, m.fixture.waitRun(first).State)
						require.Len(t, m.fixture.listCheckpoints("u", ""), 3)
						other := req
						other.Request, other.Digest = newInput("y"), "other"
						_, err := m.fixture.engine.Start(t.Context(), other)
						require.Contains(t, []string{runtime.ReasonRunExists, runtime.ReasonRequestIDConflict}, errorReason(err))

						sleepVirtual(time.Second)
						require.NoError(t, m.fixture.engine.DeleteThread(t.Context(), "u", 0, true))
						s, err := m.fixture.engine.Start(t.Context(), req)
						require.NoError(t, err)
						require.False(t, s.IsAttached)
						require.Equal(t, checkpoint.RunInterrupted, m.fixture.waitRun(s).State)
						require.Equal(t, s.Run.ID, again().Run.ID)
						require.Len(t, m.fixture.listCheckpoints("u", ""), 3)
					})
				})
			}
		}
	}
}
