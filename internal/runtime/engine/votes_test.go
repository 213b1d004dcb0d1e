package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// voteCase is a thread that asks "pay?" with a policy. What a caller says is written like
// "ana: 1240", "ana/finance: true" with a group, or "ana:" for a dismissal.
type voteCase struct {
	*fixture

	payments *[]string
}

func newVoteCase(tb testing.TB, policy *approval.Policy) *voteCase {
	tb.Helper()
	return newStoredVoteCase(tb, memory.New(memory.Options{}), policy)
}

// newStoredVoteCase makes a case in a store.
func newStoredVoteCase(tb testing.TB, store checkpoint.Store, policy *approval.Policy) *voteCase {
	tb.Helper()
	var payments []string
	v := beginVoteCase(tb, store, func(_ context.Context, c *nodeCall) pregel.Result {
		answer := c.askPeople(`"pay?"`, policy)
		payments = append(payments, answer)
		return pregel.Result{Update: payload.JSON(`{"paid":` + answer + `}`)}
	})
	v.payments = &payments
	return v
}

// newVoteCaseOn makes a case whose node is given.
func newVoteCaseOn(tb testing.TB, pay nodeFunc) *voteCase {
	tb.Helper()
	return beginVoteCase(tb, memory.New(memory.Options{}), pay)
}

// beginVoteCase begins a run of eva that asks in its node.
func beginVoteCase(tb testing.TB, store checkpoint.Store, pay nodeFunc) *voteCase {
	tb.Helper()
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(tb, err)
	f := newFixtureOn(tb, guardTrails(tb, store), engine.Options{Conditions: conditions, KnowsCallers: true},
		map[string]nodeFunc{"pay": pay}, chainSpec("g", []graph.ChannelSpec{{Name: "paid"}}, "pay"))
	run := f.beginAndWait(runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: "{}"}, By: runtime.Actor{Name: "eva"},
	})
	require.Equal(tb, checkpoint.RunInterrupted, run.State, "%+v", run.Failure)
	return &voteCase{fixture: f}
}

func (c *voteCase) say(e *engine.Engine, text string) (*runtime.Started, error) {
	who, value, _ := strings.Cut(text, ":")
	name, group, _ := strings.Cut(who, "/")
	by := runtime.Actor{Name: name, How: "jwt", Method: "GraphService/Resume"}
	if group != "" {
		by.Groups = []string{group}
	}
	value = strings.TrimSpace(value)
	return e.Resume(c.t.Context(), runtime.ResumeRequest{
		Thread: "t", By: by, Single: &runtime.Response{Value: payload.JSON(value), Dismissed: value == ""},
	})
}

// question is the only question of the thread.
func (c *voteCase) question() checkpoint.Interrupt {
	c.t.Helper()
	list, err := c.engine.Interrupts(c.t.Context(), nil, checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(c.t, err)
	require.Len(c.t, list, 1)
	return list[0]
}

// votes lists the votes of the question as they are said, "!" before those that do not
// agree.
func (c *voteCase) votes() string {
	var all []string
	for _, v := range c.question().Votes {
		text := v.Voter + ":" + string(v.Value)
		if !v.Agrees {
			text = "!" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestVotes(t *testing.T) {
	for store, open := range listStores(t) {
		t.Run(store, func(t *testing.T) { checkVotes(t, open) })
	}
}

func checkVotes(t *testing.T, open func() checkpoint.Store) {
	t.Helper()
	const agree = "answer != false"
	for name, c := range map[string]struct {
		policy approval.Policy
		say    []string
		want   []string // after each: the number of votes, "paid", "failed", or the rule of a refusal
		votes  string
	}{
		"two approve":               {approval.Policy{Approvals: 2}, []string{"ana: true", "ben: true"}, []string{"1", "paid"}, "ana:true ben:true"},
		"one approves twice":        {approval.Policy{Approvals: 2}, []string{"ana: true", "ana: true"}, []string{"1", "1"}, "ana:true"},
		"one changes the vote":      {approval.Policy{Approvals: 2}, []string{"ana: 900", "ana: 1240", "ben: 1240"}, []string{"1", "1", "paid"}, "ana:1240 ben:1240"},
		"votes are for a value":     {approval.Policy{Approvals: 2}, []string{"ben: 1240", "ana: 900", "dora: 1240"}, []string{"1", "2", "paid"}, "ben:1240 ana:900 dora:1240"},
		"a veto":                    {approval.Policy{Approvals: 3, Agree: agree}, []string{"ana: true", "ben: false"}, []string{"1", "paid"}, "ana:true !ben:false"},
		"a dismissal is a veto":     {approval.Policy{Approvals: 2}, []string{"ana: true", "ben:"}, []string{"1", "failed"}, "ana:true !ben:"},
		"who asked for it":          {approval.Policy{NotRequester: true}, []string{"eva: true", "ana: true"}, []string{approval.RuleNotRequester, "paid"}, "ana:true"},
		"a requester that is named": {approval.Policy{NotRequester: true, Requester: "ana"}, []string{"ana: true", "eva: true"}, []string{approval.RuleNotRequester, "paid"}, "eva:true"},
		"not of the group":          {approval.Policy{Groups: []string{"finance"}}, []string{"ana: true", "ben/it: true", "ben/finance: true"}, []string{approval.RuleGroup, approval.RuleGroup, "paid"}, "ben:true"},
		"out of the group later":    {approval.Policy{Groups: []string{"finance"}, Approvals: 2}, []string{"ana/finance: true", "ana: false", "ben/finance: true"}, []string{"1", approval.RuleGroup, "paid"}, "ana:true ben:true"},
		"numbers beyond doubles": {
			approval.Policy{Approvals: 2},
			[]string{"ana: 9007199254740993", "ben: 9007199254740992", "dora: 9007199254740993"},
			[]string{"1", "2", "paid"},
			"ana:9007199254740993 ben:9007199254740992 dora:9007199254740993",
		},
		"no name":                     {approval.Policy{Approvals: 2}, []string{": true"}, []string{approval.RuleCallers}, ""},
		"a condition of another kind": {approval.Policy{Agree: "answer.ok"}, []string{"ana: 5", `ana: {"ok":true}`}, []string{"invalid", "paid"}, `ana:{"ok":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			v := newStoredVoteCase(t, open(), &c.policy)
			var paid []string
			for i, text := range c.say {
				s, err := v.say(v.engine, text)
				switch want := c.want[i]; want {
				case "paid":
					require.NoError(t, err)
					require.Equal(t, checkpoint.RunSucceeded, v.waitRun(s).State)
					_, value, _ := strings.Cut(text, ": ")
					paid = append(paid, value)
				case "failed":
					require.NoError(t, err)
					require.Equal(t, checkpoint.RunFailed, v.waitRun(s).State)
					paid = append(paid, "") // a dismissal has no value
				case "invalid":
					require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "%v", err)
				case "1", "2":
					require.NoError(t, err)
					require.Equal(t, checkpoint.RunInterrupted, v.waitRun(s).State)
					require.Equal(t, want, fmt.Sprint(len(v.question().Votes)))
				default:
					require.Equal(t, runtime.ReasonAccessDenied, errorReason(err), "%v", err)
					require.Equal(t, want, errorMeta(err, "rule"))
				}
			}
			require.Equal(t, c.votes, v.votes())
			require.Equal(t, paid, *v.payments, "the node gets the value that was decided on")
		})
	}
}

func TestLateVoteNamesWhoAnswered(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2})
	for _, text := range []string{"ana: true", "ben: true"} {
		s, err := v.say(v.engine, text)
		require.NoError(t, err)
		v.waitRun(s)
	}
	q := v.question()
	require.Equal(t, "ben", q.Responder)
	require.False(t, q.Votes[0].Time.IsZero())
	_, err := v.engine.Resume(t.Context(), runtime.ResumeRequest{
		Thread: "t", By: runtime.Actor{Name: "dora"}, Responses: []runtime.Response{{Interrupt: q.ID, Value: "false"}},
	})
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err), "%v", err)
	require.Equal(t, "ben", errorMeta(err, "responder"))
	require.Equal(t, q.ResponseTime.UTC().Format(time.RFC3339), errorMeta(err, "resolveTime"))
	require.ErrorContains(t, err, "was answered already by ben, at ")
}

// What a caller may not pass by with an answer that decides nothing.
func TestVotesPassNothing(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2, Groups: []string{"finance"}})
	vote := func(name, value string, change func(*runtime.ResumeRequest)) error {
		req := runtime.ResumeRequest{
			Thread: "t", By: runtime.Actor{Name: name, Groups: []string{"finance"}}, Single: &runtime.Response{Value: payload.JSON(value)},
		}
		if change != nil {
			change(&req)
		}
		_, err := v.engine.Resume(t.Context(), req)
		return err
	}
	before, err := v.store.Head(t.Context(), "t")
	require.NoError(t, err)
	err = vote("ana", "true", func(r *runtime.ResumeRequest) { r.Update = `{"paid":1}` })
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "a command waits for the decision: %v", err)
	after, err := v.store.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, before.Revision, after.Revision, "nothing is stored")

	err = vote("ana", "true", func(r *runtime.ResumeRequest) { r.Settings = &runtime.RunSettings{Context: `{"account":"mine"}`} })
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "settings wait for the decision: %v", err)
	after, err = v.store.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, before.Revision, after.Revision, "nothing is stored")

	require.NoError(t, vote("ana", "true", nil))
	require.NoError(t, vote("ana", "true", func(r *runtime.ResumeRequest) { r.Coverage = runtime.CoverAll }), "a repeated vote covers its question")
	require.NoError(t, vote("ben", "true", nil))
	sleepUntilRun(t, v, checkpoint.RunSucceeded)

	q := v.question()
	late := func(by runtime.Actor, value string) error {
		_, err := v.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: by, Responses: []runtime.Response{{Interrupt: q.ID, Value: payload.JSON(value)}},
		})
		return err
	}
	finance := []string{"finance"}
	require.NoError(t, late(runtime.Actor{Name: "ana", Groups: finance}, "true"), "a repetition")
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(late(runtime.Actor{Name: "dora", Groups: finance}, "true")))
	for _, value := range []string{"true", "false"} {
		require.Equal(t, runtime.ReasonAccessDenied, errorReason(late(runtime.Actor{Name: "carl"}, value)), "the decision can't be guessed")
	}
}

func sleepUntilRun(t *testing.T, v *voteCase, state checkpoint.RunState) {
	t.Helper()
	require.Eventually(t, func() bool {
		runs, err := v.store.Runs(t.Context(), "t", 0, 1)
		require.NoError(t, err)
		return runs[0].State == state
	}, time.Minute, time.Millisecond)
}

// A repeated answer passes no breakpoint at which the thread has come to stand since.
func TestRepeatedAnswerPassesNoBreakpoint(t *testing.T) {
	code := map[string]nodeFunc{
		"ask":    func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"deploy?"`)) },
		"deploy": updateNode(`{"log":["deployed"]}`),
	}
	spec := chainSpec("g", channelsLog, "ask", "deploy")
	spec.InterruptBefore = []string{"deploy"}
	f := newFixture(t, code, spec)
	f.runToStop("t", "g", `{"log":[]}`)
	open, err := f.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(t, err)
	for range 2 {
		s, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Responses: []runtime.Response{{Interrupt: open[0].ID, Value: "1"}}})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, f.waitRun(s).State)
		require.NotContains(t, f.stateValues("t"), "deployed")
	}
	s, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t"})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, f.waitRun(s).State)
}

// An answer that was given under one policy is not used under another.
func TestAnswersStayWithTheirPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		later approval.Policy
		want  checkpoint.RunState
	}{
		"the same policy":   {approval.Policy{Groups: []string{"finance"}}, checkpoint.RunSucceeded},
		"another group":     {approval.Policy{Groups: []string{"board"}}, checkpoint.RunFailed},
		"more must agree":   {approval.Policy{Groups: []string{"finance"}, Approvals: 2}, checkpoint.RunFailed},
		"nobody any longer": {approval.Policy{}, checkpoint.RunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			policy := approval.Policy{Groups: []string{"finance"}}
			v := newVoteCase(t, &policy)
			policy = c.later
			s, err := v.say(v.engine, "ana/finance: true")
			require.NoError(t, err)
			run := v.waitRun(s)
			require.Equal(t, c.want, run.State, "%+v", run.Failure)
			if c.want == checkpoint.RunFailed {
				require.Equal(t, runtime.FailedNonDeterministic, run.Failure.Reason)
				require.Empty(t, *v.payments)
			}
		})
	}
}

// Votes that never decide do not fill the memory.
func TestVotesHaveABound(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2})
	large := func(n int) string { return fmt.Sprintf(`voter%d: "%d%s"`, n, n, strings.Repeat("x", 200_000)) }
	for n := range 4 {
		_, err := v.say(v.engine, large(n))
		require.NoError(t, err)
	}
	_, err := v.say(v.engine, large(4))
	require.Equal(t, runtime.ReasonPayloadTooLarge, errorReason(err), "%v", err)
	require.Equal(t, "1048576", errorMeta(err, "limitBytes"))
	require.Len(t, v.question().Votes, 4)
	_, value, _ := strings.Cut(large(2), ": ")
	s, err := v.say(v.engine, "voter9: "+value)
	require.NoError(t, err, "a vote that decides")
	require.Equal(t, checkpoint.RunSucceeded, v.waitRun(s).State)
}

// The last two votes come at the same instant, to two servers: one of them decides.
func TestLastVotesAtOnce(t *testing.T) {
	for range 500 {
		v := newVoteCase(t, &approval.Policy{Approvals: 3})
		other := engine.New(t.Context(), v.store, v.graphs, v.nodes, nil, v.opts)
		_, err := v.say(v.engine, "eva: true")
		require.NoError(t, err)
		var group sync.WaitGroup
		begun := make(chan struct{})
		for i, e := range []*engine.Engine{v.engine, other} {
			group.Go(func() {
				<-begun
				_, err := v.say(e, fmt.Sprintf("voter%d: true", i))
				require.NoError(t, err)
			})
		}
		close(begun)
		group.Wait()
		require.Eventually(t, func() bool {
			runs, err := v.store.Runs(t.Context(), "t", 0, 1)
			require.NoError(t, err)
			return runs[0].State == checkpoint.RunSucceeded
		}, time.Minute, time.Millisecond)
		require.Equal(t, []string{"true"}, *v.payments)
		require.Len(t, v.question().Votes, 3)
		other.Close()
	}
}

// A policy that the server can't keep fails the task: it is never ignored.
func TestPoliciesThatCantBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		policy  approval.Policy
		options func(*engine.Options)
		text    string
	}{
		"nobody is known":       {approval.Policy{Approvals: 2}, func(o *engine.Options) { o.KnowsCallers = false }, "does not know who calls"},
		"no conditions":         {approval.Policy{Agree: "answer"}, func(o *engine.Options) { o.Conditions = nil }, "evaluates no conditions"},
		"a broken condition":    {approval.Policy{Agree: "state.x"}, func(*engine.Options) {}, "people.agree"},
		"a number too large":    {approval.Policy{Approvals: 101}, func(*engine.Options) {}, "people.approvals"},
		"nobody has started it": {approval.Policy{NotRequester: true}, func(*engine.Options) {}, "it is not known who started the run"},
		"a requester that is needed": {
			approval.Policy{Users: []string{"ana", "ben"}, Approvals: 2, NotRequester: true, Requester: "ana"}, func(*engine.Options) {}, "users names 1",
		},
		"too few who may vote": {approval.Policy{Users: []string{"ana"}, Approvals: 2}, func(*engine.Options) {}, "people.approvals"},
	} {
		t.Run(name, func(t *testing.T) {
			conditions, err := expr.NewConditions(expr.Options{})
			require.NoError(t, err)
			options := engine.Options{Conditions: conditions, KnowsCallers: true}
			c.options(&options)
			code := map[string]nodeFunc{"pay": func(_ context.Context, call *nodeCall) pregel.Result {
				call.askPeople(`"pay?"`, &c.policy)
				return pregel.Result{}
			}}
			f := newFixtureOn(t, memory.New(memory.Options{}), options, code, chainSpec("g", []graph.ChannelSpec{{Name: "paid"}}, "pay"))
			run := f.runToStop("t", "g", "{}")
			require.Equal(t, checkpoint.RunFailed, run.State)
			require.Contains(t, run.Failure.Message, c.text)
		})
	}
}

// What an answer would do is known before it is given, and nothing changes.
func TestAnswersAreChecked(t *testing.T) {
	undo := time.Minute
	v := newVoteCaseOn(t, func(_ context.Context, c *nodeCall) pregel.Result {
		return pregel.Result{Asks: []pregel.Ask{{
			Value: `"pay?"`, Policy: &approval.Policy{Groups: []string{"finance"}, Approvals: 3}, Undo: &undo, Drift: checkpoint.DriftFail,
		}}}
	})
	id := v.question().ID
	check := func(who, group, value string) (runtime.CheckedResponse, error) {
		before := v.question()
		list, err := v.engine.CheckResponses(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: runtime.Actor{Name: who, Groups: []string{group}}, Responses: []runtime.Response{{Interrupt: id, Value: payload.JSON(value)}},
		})
		require.Equal(t, before, v.question())
		if err != nil {
			return runtime.CheckedResponse{}, err
		}
		require.Len(t, list, 1)
		return list[0], nil
	}
	require.Equal(t, runtime.CheckedResponse{Interrupt: id, MissingVotes: 2, Undo: undo}, must(check("ana", "finance", `1`)))
	for _, who := range []string{"ana", "ben"} {
		_, err := v.say(v.engine, who+"/finance: 1")
		require.NoError(t, err)
	}
	require.Equal(t, runtime.CheckedResponse{Interrupt: id, IsRepeated: true}, must(check("ana", "finance", `1`)))
	require.Equal(t, runtime.CheckedResponse{Interrupt: id, MissingVotes: 2, Undo: undo}, must(check("dora", "finance", `2`)))
	require.Equal(t, runtime.CheckedResponse{Interrupt: id, Decides: true, Undo: undo}, must(check("dora", "finance", `1`)))
	_, err := check("carl", "it", `1`)
	require.Equal(t, approval.RuleGroup, errorMeta(err, "rule"))
	_, err = v.engine.CheckResponses(t.Context(), runtime.ResumeRequest{Thread: "t", Responses: []runtime.Response{{Interrupt: "none"}}})
	require.Equal(t, runtime.ReasonInterruptNotFound, errorReason(err))
	_, err = v.engine.CheckResponses(t.Context(), runtime.ResumeRequest{Thread: "none", Responses: []runtime.Response{{Interrupt: id}}})
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Who has edited the state may not answer what is asked of it, also when another caller goes on with
// the thread.
func TestContributorsMayNotAnswer(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{NotContributor: true})
	_, err := v.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{
		Thread: "t", By: runtime.Actor{Name: "ana"}, Values: `{"paid":0}`, AsNode: "__start__", SupersedeInterrupts: true,
	})
	require.NoError(t, err)
	start := func(who string, input payload.JSON) {
		t.Helper()
		run := v.beginAndWait(runtime.StartRequest{
			Thread: "t", Graph: "g", Open: runtime.DiscardOpen, Request: checkpoint.RunRequest{Input: input}, By: runtime.Actor{Name: who},
		})
		require.Equal(t, checkpoint.RunInterrupted, run.State, "%+v", run.Failure)
	}
	for _, next := range []struct {
		who   string
		input payload.JSON
		rule  string // that refuses ana
	}{
		{"eva", "", approval.RuleContributor},   // goes on with what ana has edited
		{"ana", `{}`, approval.RuleContributor}, // starts anew what she has edited herself
		{"eva", `{}`, ""},                       // takes the state as it is
	} {
		start(next.who, next.input)
		checked, err := v.engine.CheckResponses(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: runtime.Actor{Name: "ana"}, Responses: []runtime.Response{{Interrupt: v.openQuestion().ID, Value: "1"}},
		})
		require.Equal(t, next.rule, errorMeta(err, "rule"), "%+v: %v", next, err)
		require.Equal(t, next.rule == "", len(checked) == 1 && checked[0].Decides)
	}
	started, err := v.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: runtime.Actor{Name: "ben"}, Update: `{"paid":1}`})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, v.waitRun(started).State)
	_, err = v.say(v.engine, "ben: 1")
	require.Equal(t, approval.RuleContributor, errorMeta(err, "rule"), "an update with a call is an edit: %v", err)
}

// openQuestion is the open question of the thread.
func (c *voteCase) openQuestion() checkpoint.Interrupt {
	c.t.Helper()
	list, err := c.engine.Interrupts(c.t.Context(), nil, checkpoint.InterruptQuery{Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen}})
	require.NoError(c.t, err)
	require.Len(c.t, list, 1)
	return list[0]
}

// A delegate answers in the place of another user, who takes the place back until then.
func TestDelegates(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Users: []string{"ana", "ben"}, Approvals: 2, Delegable: true})
	delegate := func(from, to string) error {
		_, err := v.engine.DelegateInterrupt(t.Context(), runtime.DelegateRequest{Question: v.name(), To: to, Note: "on leave", By: runtime.Actor{Name: from}})
		return err
	}
	rule := func(text string) string {
		_, err := v.say(v.engine, text)
		return errorMeta(err, "rule")
	}
	require.Equal(t, approval.RuleGroup, errorMeta(delegate("carl", "dora"), "rule"))
	require.Equal(t, approval.RuleCallers, errorMeta(delegate("", "dora"), "rule"))
	require.NoError(t, v.claim("ana", time.Hour))
	require.NoError(t, delegate("ana", "carl"))
	q := v.question()
	require.Empty(t, q.ClaimedBy)
	require.Equal(t, []string{"carl"}, q.Assignees)
	require.Contains(t, q.Tags(), checkpoint.UserTag("carl"), "it is in the inbox of carl")
	require.Equal(t, approval.RuleDelegated, rule("ana: 1"))
	require.NoError(t, delegate("ana", "ana"), "taken back")
	require.Equal(t, approval.RuleGroup, rule("carl: 1"))
	require.NoError(t, delegate("ana", "carl"))
	require.Empty(t, rule("carl: 1"))
	require.NoError(t, delegate("ana", "carl"), "a repeated call")
	require.Equal(t, runtime.ReasonInvalidField, errorReason(delegate("ana", "ana")), "carl has voted")
	require.Equal(t, runtime.ReasonInvalidField, errorReason(delegate("carl", "dora")), "carl has voted")
	require.Equal(t, approval.RuleDelegated, rule("ana: 1"), "one place, one vote")
	started, err := v.say(v.engine, "ben: 1")
	require.NoError(t, err)
	v.waitRun(started)
	require.Equal(t, []string{
		"asked", "claimed ana", "delegated ana on leave", "delegated ana on leave", "delegated ana on leave", "voted carl 1", "voted ben 1", "answered ben 1", "used",
	}, v.trail())
}

// Who has voted can't take another place: it would be lost.
func TestAVoterIsNoDelegate(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Groups: []string{"finance"}, Approvals: 2, Delegable: true})
	v.mustSay("ben/finance: 1")
	_, err := v.engine.DelegateInterrupt(t.Context(), runtime.DelegateRequest{Question: v.name(), To: "ben", By: actor("ana")})
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "%v", err)
	q := v.question()
	require.Empty(t, q.PropertyChanges().Delegations)
	v.mustSay("ana/finance: 1")
	require.Equal(t, checkpoint.InterruptConsumed, v.question().State)
}

// A call that is repeated, since its reply was lost, changes nothing, also of a caller who may not
// delegate any more. After another change it is a new call.
func TestRepeatedDelegations(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Users: []string{"ana"}, Delegable: true})
	delegateTwice := func(from, to string) {
		t.Helper()
		for range 2 {
			_, err := v.engine.DelegateInterrupt(t.Context(), runtime.DelegateRequest{Question: v.name(), To: to, By: actor(from)})
			require.NoError(t, err)
		}
	}
	delegateTwice("ana", "ben")
	delegateTwice("ben", "carl")
	delegateTwice("ana", "ana")
	q := v.question()
	require.Empty(t, q.PropertyChanges().Delegations)
	_, err := v.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{Question: v.name(), Assignees: &[]string{}, By: actor("eva")})
	require.NoError(t, err)
	delegateTwice("ana", "ben")
	require.Equal(t, []string{"ben"}, v.question().Assignees)
	require.Equal(t, []string{"asked", "delegated ana", "delegated ben", "delegated ana", "changed eva", "delegated ana"}, v.trail())
}

// Without the leave of the policy a question is assigned, and no caller gets a right.
func TestDelegationOfAnAssignment(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Groups: []string{"finance"}})
	_, err := v.engine.DelegateInterrupt(t.Context(), runtime.DelegateRequest{Question: v.name(), To: "carl", By: actor("ana")})
	require.NoError(t, err)
	require.Equal(t, []string{"carl"}, v.question().Assignees)
	q := v.question()
	require.Empty(t, q.PropertyChanges().Delegations)
	_, err = v.say(v.engine, "carl: 1")
	require.Equal(t, approval.RuleGroup, errorMeta(err, "rule"))
	_, err = v.say(v.engine, "ana/finance: 1")
	require.NoError(t, err)
}
