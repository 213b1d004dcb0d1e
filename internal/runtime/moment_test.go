package runtime_test

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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// hesitant is a store in front of which one change is held up while something
// else happens, or whose answers to it are lost.
type hesitant struct {
	checkpoint.Store

	when func(c *checkpoint.Change) bool // the change that is meant
	then func()                          // happens just before it, once
	lost int                             // so many of its answers are lost
}

func (s *hesitant) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if s.when == nil || !s.when(c) {
		return s.Store.Apply(ctx, c)
	}
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	r, err := s.Store.Apply(ctx, c)
	if err == nil && s.lost > 0 {
		s.lost--
		return checkpoint.Receipt{}, fmt.Errorf("%w: answer lost", checkpoint.ErrUnavailable)
	}
	return r, err
}

func answers(c *checkpoint.Change) bool {
	return slices.ContainsFunc(c.Interrupts, func(q checkpoint.Interrupt) bool { return q.Response != "" })
}

// approval asks and does then what was asked for, once: graphs that compute all
// the way, that have an effect at the end, and whose question needs code.
func approval(asks, acts bool) *graph.Spec {
	s := chain("g", channelsLog, "plan", "ask", "weigh", "act", "last")
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

type moment struct {
	t     *testing.T
	w     *world
	other *runtime.Engine // another server on the same store
	store *hesitant
	acted int
}

func newMoment(t *testing.T, asks, acts bool) *moment {
	t.Helper()
	m := &moment{t: t, store: &hesitant{Store: memory.New(memory.Options{})}}
	quick := func(_ context.Context, c *call) pregel.Result { return wrote(`"` + c.Node.Name + `"`) }
	m.w = newWorldOn(t, m.store, runtime.Options{}, map[string]node{
		"plan": quick, "weigh": quick, "last": quick,
		"ask": func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"delete?"`)) },
		"act": func(_ context.Context, c *call) pregel.Result {
			if acts {
				m.acted++
				require.Contains(t, strings.Join(m.w.transcript("t"), "\n"), "weigh succeeded", "what leads to an effect is durable before it")
			}
			return wrote(`"act"`)
		},
	}, approval(asks, acts))
	m.other = runtime.New(t.Context(), m.store.Store, m.w.graphs, m.w.nodes, nil, runtime.Options{})
	t.Cleanup(m.other.Close)
	require.Equal(t, checkpoint.RunInterrupted, m.w.run("t", "g", `{"log":["in"]}`).State)
	synctest.Wait()
	return m
}

func (m *moment) resume(e *runtime.Engine, value, request string) (runtime.Started, error) {
	open, err := e.Interrupts(m.t.Context(), checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(m.t, err)
	req := runtime.ResumeRequest{Thread: "t", RequestID: request, Digest: request}
	for _, q := range open {
		req.Responses = []runtime.Response{{Interrupt: q.ID, Value: payload.JSON(value)}}
	}
	return e.Resume(m.t.Context(), req)
}

// settled checks what holds whatever came first: the question was closed once,
// each run has ended once, and events have no gaps.
func (m *moment) settled() (head checkpoint.Head, values string) {
	m.t.Helper()
	rest(time.Minute)
	head, err := m.store.Head(m.t.Context(), "t")
	require.NoError(m.t, err)
	require.NotEqual(m.t, checkpoint.ThreadBusy, head.State)
	events, err := m.store.Events(m.t.Context(), "t", 0, 0)
	require.NoError(m.t, err)
	closed, ended := map[string]int{}, map[string]int{}
	for i, e := range events {
		require.EqualValues(m.t, i+1, e.Seq)
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
		require.Equal(m.t, 1, n, "question %s", id)
	}
	for id, n := range ended {
		require.Equal(m.t, 1, n, "run %s", id)
	}
	return head, m.w.values("t")
}

// TestWhatHappensAtTheMomentOfAnAnswer lets something else come first, just
// before the change with an answer and what follows it is made.
func TestWhatHappensAtTheMomentOfAnAnswer(t *testing.T) {
	both := `{"log":["in","plan","%s","weigh","act","last"],"n":5}`
	for name, c := range map[string]struct {
		then   func(m *moment) error
		reason string // of the answer
		values string
		acts   int
	}{
		"another answer": {
			then: func(m *moment) error {
				_, err := m.resume(m.other, `"no"`, "")
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: fmt.Sprintf(both, "no"), acts: 1,
		},
		"the same answer": {
			then: func(m *moment) error {
				_, err := m.resume(m.other, `"yes"`, "")
				return err
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"the same request": {
			then: func(m *moment) error {
				_, err := m.resume(m.other, `"yes"`, "request")
				return err
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"a cancel": {
			then: func(m *moment) error {
				_, err := m.other.Cancel(m.t.Context(), runtime.CancelRequest{Thread: "t"})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":["in","plan"],"n":1}`,
		},
		"a cancel that takes back": {
			then: func(m *moment) error {
				_, err := m.other.Cancel(m.t.Context(), runtime.CancelRequest{Thread: "t", Rollback: true})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":[]}`,
		},
		"another state": {
			then: func(m *moment) error {
				_, err := m.other.UpdateState(m.t.Context(), runtime.UpdateStateRequest{
					Thread: "t", Values: `{"log":["hand"]}`, AsNode: "last", Supersede: true,
				})
				return err
			},
			reason: runtime.ReasonInterruptAlreadyResolved, values: `{"log":["in","plan","hand"],"n":1}`,
		},
		"the end of the thread, and another of its name": {
			then: func(m *moment) error {
				require.NoError(m.t, m.other.DeleteThread(m.t.Context(), "t", 0, false))
				_, err := m.other.Start(m.t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("new")})
				return err
			},
			reason: runtime.ReasonInterruptNotFound, values: `{"log":["new","plan"],"n":1}`,
		},
		"the end of the server": {
			then: func(m *moment) error {
				go m.w.engine.Drain(context.WithoutCancel(m.t.Context()))
				return nil
			},
			values: fmt.Sprintf(both, "yes"), acts: 1,
		},
		"a change of what the thread is called": {
			then: func(m *moment) error {
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
					m := newMoment(t, kind == "with code that asks", kind != "computing")
					m.store.when = answers
					m.store.then = func() {
						require.NoError(t, c.then(m))
						rest(time.Second)
					}
					_, err := m.resume(m.w.engine, `"yes"`, "request")
					require.Equal(t, c.reason, reason(err))
					require.Nil(t, m.store.then)
					_, values := m.settled()
					require.JSONEq(t, c.values, values)
					if kind != "computing" {
						require.Equal(t, c.acts, m.acted)
					}
				})
			})
		}
	}
}

// TestAnAnswerWhoseReplyIsLost is given again under its request id, to the same
// server and to another one.
func TestAnAnswerWhoseReplyIsLost(t *testing.T) {
	for _, kind := range []string{"computing", "with an effect", "with code that asks"} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMoment(t, kind == "with code that asks", kind != "computing")
					m.store.when, m.store.lost = answers, 3
					_, err := m.resume(m.w.engine, `"yes"`, "request")
					require.Equal(t, runtime.ReasonStoreUnavailable, reason(err))
					m.store.lost = 0
					e := m.w.engine
					if elsewhere {
						e = m.other
					}
					s, err := m.resume(e, `"yes"`, "request")
					require.NoError(t, err)
					require.True(t, s.Attached)
					_, err = m.resume(e, `"no"`, "another request")
					require.Equal(t, runtime.ReasonInterruptAlreadyResolved, reason(err))
					_, values := m.settled()
					require.JSONEq(t, `{"log":["in","plan","yes","weigh","act","last"],"n":5}`, values)
					if kind != "computing" {
						require.Equal(t, 1, m.acted)
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
						m := newMoment(t, false, acts)
						if bold {
							for n := range 20 {
								m.w.run(fmt.Sprint("new", n), "g", `{"log":[]}`)
							}
						}
						req := runtime.StartRequest{Thread: "u", CreateThread: true, Graph: "g", Request: input("x")}
						if ids == "run" {
							req.Run = "mine"
						} else {
							req.RequestID, req.Digest = "mine", "digest"
						}
						lose := func() {
							m.store.lost, m.store.when = 3, func(c *checkpoint.Change) bool { return c.Thread == "u" }
							_, err := m.w.engine.Start(t.Context(), req)
							require.Equal(t, runtime.ReasonStoreUnavailable, reason(err))
							m.store.when = nil
						}
						again := func() runtime.Started {
							s, err := m.w.engine.Start(t.Context(), req)
							require.NoError(t, err)
							require.True(t, s.Attached)
							return s
						}
						lose()
						first := again()
						require.Equal(t, first.Run.ID, again().Run.ID)
						require.Equal(t, checkpoint.RunInterrupted, m.w.wait(first).State)
						require.Len(t, m.w.history("u", ""), 3)
						other := req
						other.Request, other.Digest = input("y"), "other"
						_, err := m.w.engine.Start(t.Context(), other)
						require.Contains(t, []string{runtime.ReasonRunExists, runtime.ReasonRequestIDConflict}, reason(err))

						rest(time.Second)
						require.NoError(t, m.w.engine.DeleteThread(t.Context(), "u", 0, true))
						s, err := m.w.engine.Start(t.Context(), req)
						require.NoError(t, err)
						require.False(t, s.Attached)
						require.Equal(t, checkpoint.RunInterrupted, m.w.wait(s).State)
						require.Equal(t, s.Run.ID, again().Run.ID)
						require.Len(t, m.w.history("u", ""), 3)
					})
				})
			}
		}
	}
}
