package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// requireRecentView compares the recent view of a thread, if there is one, with what the store has.
func requireRecentView(t *testing.T, e *engine.Engine, store checkpoint.Store, thread string) (isThere bool) {
	t.Helper()
	const request = "a request that no caller made"
	recent := engine.FindRecentView(e, thread, request)
	if recent == nil {
		return false
	}
	stored, err := buildThreadView(t.Context(), store, thread, request)
	require.NoError(t, err)
	stored.Head.Now = recent.Head.Now
	require.Equal(t, describeView(t, stored), describeView(t, recent), "thread %s", thread)
	records := fmt.Sprintf("%+v %+v %+v %+v", recent.Head, recent.Run, *recent.Interrupts, recent.Pending)
	require.NotContains(t, records, " m=", "the store keeps no monotonic time, by which an expiry would come late")
	return true
}

// describeView returns a view as text, in which equal times are equal, and no list is an empty one.
func describeView(t *testing.T, v *checkpoint.ThreadView) string {
	t.Helper()
	text, err := json.MarshalIndent(normalizeView(v), "", " ")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "[]", "null")
}

// normalizeView returns a view with what a store gives to interrupts left out.
func normalizeView(v *checkpoint.ThreadView) checkpoint.ThreadView {
	out := *v
	withoutChange := func(list []checkpoint.Interrupt) []checkpoint.Interrupt {
		var bare []checkpoint.Interrupt
		for _, q := range list {
			q.Change = 0
			bare = append(bare, q)
		}
		return bare
	}
	if v.Interrupts != nil {
		all := withoutChange(*v.Interrupts)
		out.Interrupts = &all
	}
	if v.Pending != nil {
		p := *v.Pending
		p.Interrupts = withoutChange(p.Interrupts)
		out.Pending = &p
	}
	return out
}

// askingSpec returns a graph that asks twice and has no effects: a run of it is one change up to
// each question.
func askingSpec() *graph.Spec {
	s := chainSpec("g", channelsLog, "first", "second")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Function, n.Ask = nil, &graph.AskSpec{Value: "'?'"}
	}
	return s
}

// askingNodes is the code of its nodes.
func askingNodes() map[string]nodeFunc {
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) }
	return map[string]nodeFunc{"first": ask, "second": ask}
}

// recentViewsCase is two servers on one store. Both have thread t in view: first has made it.
type recentViewsCase struct {
	*fixture

	other *engine.Engine
}

func newRecentViewsCase(t *testing.T) *recentViewsCase {
	t.Helper()
	c := &recentViewsCase{fixture: newFixture(t, askingNodes(), askingSpec())}
	c.other = engine.New(t.Context(), c.store, c.graphs, c.nodes, nil, engine.Options{})
	t.Cleanup(func() { closeEngine(t, c.other) })
	require.Equal(t, checkpoint.RunInterrupted, c.runToStop("t", "g", `{"log":[]}`).State)
	return c
}

// answer answers the open question of a thread by its id.
func (c *recentViewsCase) answer(e *engine.Engine, question, value, request string) (*runtime.Started, error) {
	return e.Resume(c.t.Context(), runtime.ResumeRequest{
		Thread: "t", RequestID: request, Digest: request, Responses: []runtime.Response{{Interrupt: question, Value: payload.JSON(value)}},
	})
}

func (c *recentViewsCase) openQuestion() string {
	c.t.Helper()
	open, err := c.engine.Interrupts(c.t.Context(), nil, checkpoint.InterruptQuery{Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen}})
	require.NoError(c.t, err)
	require.Len(c.t, open, 1)
	return open[0].ID
}

func TestAnOutdatedViewRefusesNothing(t *testing.T) {
	c := newRecentViewsCase(t)
	question := c.openQuestion()
	require.True(t, requireRecentView(t, c.engine, c.store, "t"))
	_, err := c.answer(c.other, question, `"theirs"`, "")
	require.NoError(t, err)

	_, err = c.answer(c.engine, question, `"mine"`, "")
	require.ErrorContains(t, err, "INTERRUPT_ALREADY_RESOLVED", "it is open in the view")
	second := c.openQuestion()
	_, err = c.answer(c.engine, second, `"second"`, "")
	require.NoError(t, err, "the view did not have it")
	require.JSONEq(t, `{"log":["theirs","second"],"n":2}`, c.stateValues("t"))
}

func TestARequestFromBeforeIsNotAnsweredFromAView(t *testing.T) {
	c := newRecentViewsCase(t)
	single := func(e *engine.Engine, request string) *runtime.Started {
		t.Helper()
		s, err := e.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", RequestID: request, Digest: request, Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
		return s
	}
	require.False(t, single(c.engine, "a").IsAttached)
	require.True(t, requireRecentView(t, c.engine, c.store, "t"), "it asks again")
	require.True(t, single(c.engine, "a").IsAttached, "the answer was for the first question")
	require.JSONEq(t, `{"log":["yes"],"n":1}`, c.stateValues("t"))

	require.False(t, single(c.other, "b").IsAttached)
	require.True(t, single(c.engine, "b").IsAttached, "another server has used it")
	require.JSONEq(t, `{"log":["yes","yes"],"n":2}`, c.stateValues("t"))
}

func TestAThreadThatWasMadeAnewIsNotTakenForTheOldOne(t *testing.T) {
	c := newRecentViewsCase(t)
	question := c.openQuestion()
	require.NoError(t, c.other.DeleteThread(t.Context(), "t", 0, false))
	_, err := c.answer(c.engine, question, `"late"`, "")
	require.ErrorContains(t, err, "THREAD_NOT_FOUND")

	s, err := c.other.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":[]}`}})
	require.NoError(t, err)
	c.waitRun(s)
	_, err = c.answer(c.engine, question, `"late"`, "")
	require.ErrorContains(t, err, "INTERRUPT_NOT_FOUND")
}

func TestARunOnAThreadAtRestBeginsOnItsView(t *testing.T) {
	c := newRecentViewsCase(t)
	for range 2 {
		_, err := c.answer(c.engine, c.openQuestion(), `"yes"`, "")
		require.NoError(t, err)
	}
	require.True(t, requireRecentView(t, c.engine, c.store, "t"))
	start := runtime.StartRequest{Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["again"]}`}}
	s, err := c.other.Start(t.Context(), start)
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, c.waitRun(s).State)
	_, err = c.engine.Start(t.Context(), start)
	require.ErrorContains(t, err, "THREAD_INTERRUPTED", "it is idle in the view")
	require.Nil(t, engine.FindRecentView(c.engine, "t", ""))
}

// TestAnAnswerSoonAfterItsQuestionReadsNothing counts what a server reads for it.
func TestAnAnswerSoonAfterItsQuestionReadsNothing(t *testing.T) {
	s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t, "--appendfsync", "no").URL("partitions=1")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	store := &readCountingStore{Store: s}
	f := newFixtureOn(t, store, engine.Options{ScanInterval: time.Hour, PollInterval: time.Hour}, askingNodes(), askingSpec())
	f.runToStop("t", "g", `{"log":[]}`)
	requireRecentView(t, f.engine, store, "t")
	store.takeCounts()
	for range 2 {
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}})
		require.NoError(t, err)
	}
	require.Equal(t, [2]int64{0, 0}, store.takeCounts())
	require.JSONEq(t, `{"log":["yes","yes"],"n":2}`, f.stateValues("t"))
	require.True(t, requireRecentView(t, f.engine, store, "t"))
}

// TestAViewOutlivesNodesWithEffects: such nodes run between two changes of a thread, and the view goes
// on with it.
func TestAViewOutlivesNodesWithEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, askingNodes(), chainSpec("g", channelsLog, "first", "second"))
		defer f.engine.Close()
		f.runToStop("t", "g", `{"log":[]}`)
		for range 2 {
			synctest.Wait()
			require.True(t, requireRecentView(t, f.engine, f.store, "t"))
			_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}})
			require.NoError(t, err)
		}
		synctest.Wait()
		require.True(t, requireRecentView(t, f.engine, f.store, "t"))
		require.JSONEq(t, `{"log":["yes","yes"],"n":2}`, f.stateValues("t"))
	})
}

// TestAViewHasAllOfAQuestionThatManyTouch compares the view with the store after each thing that
// people do to a question.
func TestAViewHasAllOfAQuestionThatManyTouch(t *testing.T) {
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	policy := &approval.Policy{Users: []string{"ana", "ben", "cem"}, Approvals: 2, Vetoes: 2, Agree: "answer == 'yes'", NotRequester: true, Delegable: true}
	ask := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askPeople(`"?"`, policy)) }
	store := openSQLite(t)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	f := newFixtureOn(t, store, engine.Options{Conditions: conditions, KnowsCallers: true}, map[string]nodeFunc{"first": ask, "second": ask}, askingSpec())
	f.beginAndWait(runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":[]}`}, By: runtime.Actor{Name: "eva", How: "key"},
		RequestID: "start", Digest: "start",
	})
	c := &recentViewsCase{fixture: f}
	ana, ben, cem := runtime.Actor{Name: "ana", How: "key", Method: "m"}, runtime.Actor{Name: "ben"}, runtime.Actor{Name: "cem"}
	vote := func(by runtime.Actor, value payload.JSON) func(q runtime.Question) error {
		return func(q runtime.Question) error {
			_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
				Thread: "t", By: by, Responses: []runtime.Response{{Interrupt: q.Interrupt, Value: value, Note: "why"}},
			})
			return err
		}
	}
	for _, do := range []func(q runtime.Question) error{
		func(q runtime.Question) error {
			_, err := f.engine.ClaimInterrupt(t.Context(), runtime.ClaimRequest{Question: q, By: ana})
			return err
		},
		func(q runtime.Question) error {
			_, err := f.engine.CommentInterrupt(t.Context(), runtime.CommentRequest{Question: q, Text: "hm", By: ben})
			return err
		},
		vote(ana, `"yes"`),
		func(q runtime.Question) error {
			_, err := f.engine.DelegateInterrupt(t.Context(), runtime.DelegateRequest{Question: q, To: "dora", By: cem})
			return err
		},
		vote(ben, `"no"`),
		vote(runtime.Actor{Name: "dora"}, `"yes"`),
		vote(cem, `"yes"`), // of the second question
		vote(ana, `"yes"`),
	} {
		require.NoError(t, do(runtime.Question{Thread: "t", Interrupt: c.openQuestion()}))
		require.True(t, requireRecentView(t, f.engine, store, "t"))
	}
	require.JSONEq(t, `{"log":["yes","yes"],"n":2}`, f.stateValues("t"))
}

// TestACallerWhoHasLeftGetsAnError repeats a request that was answered, with a call that has ended.
func TestACallerWhoHasLeftGetsAnError(t *testing.T) {
	c := newRecentViewsCase(t)
	answer := runtime.ResumeRequest{Thread: "t", RequestID: "a", Digest: "a", Single: &runtime.Response{Value: `"yes"`}}
	_, err := c.engine.Resume(t.Context(), answer)
	require.NoError(t, err)
	require.NotNil(t, engine.FindRecentView(c.engine, "t", "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started, err := c.engine.Resume(ctx, answer)
	require.True(t, started != nil || err != nil, "neither a run nor an error")
}
