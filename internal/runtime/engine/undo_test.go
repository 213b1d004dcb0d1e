package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

const undoTime = 5 * time.Second

// undoableNode asks a question whose answer can be taken back for a while.
func undoableNode(undo time.Duration, policy *approval.Policy) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		q := pregel.Ask{Value: payload.Quote(c.Node.Name + "?"), Policy: policy, Undo: &undo}
		q.SetDriftDefaults(c.Graph.Spec)
		for _, a := range c.Journal.Answers {
			if a.Matches(&q) {
				return logUpdate(string(a.Value))
			}
		}
		return pregel.Result{Asks: []pregel.Ask{q}}
	}
}

// undoCase is a cluster in virtual time whose thread asks in the nodes "ask" and "ask2", and
// at once in "plain".
type undoCase struct {
	*cluster

	run checkpoint.Run
}

func newUndoCase(t *testing.T, policy *approval.Policy, spec *graph.Spec) *undoCase {
	t.Helper()
	c := newBubbleCluster(t)
	c.opts.KnowsCallers = true
	c.store = guardTrails(t, c.store)
	c.nodes.funcs = map[string]nodeFunc{"ask": undoableNode(undoTime, policy), "ask2": undoableNode(undoTime, policy)}
	for name, code := range crashNodes(c.nodes.ledger) {
		if c.nodes.funcs[name] == nil {
			c.nodes.funcs[name] = code
		}
	}
	c.compileGraphs(spec)
	c.startEngine(c.store)
	u := &undoCase{cluster: c, run: c.beginRun("r")}
	require.Equal(t, checkpoint.RunInterrupted, u.readStopped().State)
	return u
}

func newSingleUndoCase(t *testing.T) *undoCase {
	t.Helper()
	return newUndoCase(t, nil, chainSpec("g", channelsLog, "ask", "last"))
}

// readStopped waits until the run stands.
func (u *undoCase) readStopped() checkpoint.Run {
	u.t.Helper()
	sleepVirtual(time.Second)
	return u.readRun("t", "")
}

// find returns the question of a node.
func (u *undoCase) find(node string) checkpoint.Interrupt {
	u.t.Helper()
	list, err := u.engine.Interrupts(u.t.Context(), nil, checkpoint.InterruptQuery{Thread: "t", Node: node})
	require.NoError(u.t, err)
	require.NotEmpty(u.t, list)
	return list[len(list)-1]
}

func (u *undoCase) answer(who, node, value string, coverage runtime.Coverage) error {
	q := u.find(node)
	_, err := u.engine.Resume(u.t.Context(), runtime.ResumeRequest{
		Thread: "t", By: actor(who), Coverage: coverage,
		Responses: []runtime.Response{{Interrupt: q.ID, Value: payload.JSON(value)}},
	})
	return err
}

// The settings of an answer that is taken back would stay in the run.
func TestAnAnswerThatCanBeTakenBackTakesNoSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		_, err := u.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: ben, Single: &runtime.Response{Value: `"yes"`}, Settings: &runtime.RunSettings{StepLimit: 5},
		})
		require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "%v", err)
		require.Equal(t, checkpoint.InterruptOpen, u.find("ask").State)
	})
}

func (u *undoCase) retract(who, node string) error {
	q := u.find(node)
	_, err := u.engine.RetractResponse(u.t.Context(), runtime.RetractRequest{
		Question: runtime.Question{Thread: "t", Interrupt: q.ID}, Note: "a slip", By: actor(who),
	})
	return err
}

func (u *undoCase) trailOf(node string) []string {
	u.t.Helper()
	entries, err := u.engine.ListTrail(u.t.Context(), runtime.Question{Thread: "t", Interrupt: u.find(node).ID})
	require.NoError(u.t, err)
	return describeTrail(entries)
}

func (u *undoCase) head() checkpoint.Head {
	u.t.Helper()
	h, err := u.engine.Thread(u.t.Context(), "t")
	require.NoError(u.t, err)
	return h
}

// An answer that is taken back was never there for the run; the next answer is used.
func TestAnAnswerIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		u.nodes.takeEntered()
		require.NoError(t, u.answer("ana", "ask", `"no"`, runtime.CoverAll))
		q := u.find("ask")
		require.Equal(t, checkpoint.InterruptRetractable, q.State)
		require.Equal(t, q.ResponseTime.Add(undoTime), q.Effective)
		require.Equal(t, checkpoint.Head{Open: 1, Retractable: 1}, countsOf(u.head()))
		sleepVirtual(2 * time.Second)
		require.Equal(t, approval.RuleResponder, errorMeta(u.retract("ben", "ask"), "rule"))
		require.NoError(t, u.retract("ana", "ask"))
		q = u.find("ask")
		require.Equal(t, checkpoint.InterruptOpen, q.State)
		require.Empty(t, q.Response)
		require.Empty(t, q.Responder)
		require.Equal(t, checkpoint.Head{Open: 1}, countsOf(u.head()))
		require.NoError(t, u.retract("ana", "ask"), "there is nothing left to take back")
		sleepVirtual(time.Minute)
		require.Empty(t, u.nodes.takeEntered(), "the run was never woken")
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		sleepVirtual(undoTime + time.Second)
		require.JSONEq(t, `{"log":["r","yes","last"],"n":2}`, string(u.readRun("t", "").Output))
		require.Equal(t, []string{
			"asked", `answered ana "no"`, "retracted ana a slip", `answered ana "yes"`, "used",
		}, u.trailOf("ask"))
		require.Equal(t, runtime.ReasonResponseInEffect, errorReason(u.retract("ana", "ask")))
	})
}

// A server that is down when an answer would take effect lets it take effect later, once.
func TestAnAnswerTakesEffectAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		sleepVirtual(2 * time.Second)
		u.engine.Close()
		u.nodes.takeEntered()
		sleepVirtual(time.Minute)
		u.startEngine(u.store)
		sleepVirtual(time.Second)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
		require.Equal(t, []string{"ask", "last"}, u.nodes.takeEntered())
	})
}

// The effect and the retraction meet at the head of the thread; one of them comes first.
func TestAnAnswerIsTakenBackAtTheMomentOfItsEffect(t *testing.T) {
	outcomes := map[string]int{}
	for delay := -2 * time.Millisecond; delay <= 2*time.Millisecond; delay += 20 * time.Microsecond {
		synctest.Test(t, func(t *testing.T) {
			u := newSingleUndoCase(t)
			u.opts.PollInterval = time.Millisecond
			other := u.startEngine(u.store)
			require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
			u.nodes.takeEntered()
			q := u.find("ask")
			sleepVirtual(time.Until(q.Effective) + delay)
			_, err := other.RetractResponse(t.Context(), runtime.RetractRequest{Question: runtime.Question{Thread: "t", Interrupt: q.ID}, By: actor("ana")})
			sleepVirtual(time.Minute)
			entered := u.nodes.takeEntered()
			outcomes[errorReason(err)]++
			switch errorReason(err) {
			case "":
				require.Equal(t, checkpoint.InterruptOpen, u.find("ask").State)
				require.Empty(t, entered)
			case runtime.ReasonResponseInEffect:
				require.Equal(t, checkpoint.InterruptConsumed, u.find("ask").State)
				require.Equal(t, []string{"ask", "last"}, entered)
			default:
				require.NoError(t, err)
			}
		})
	}
	require.Len(t, outcomes, 2, "%v", outcomes)
}

// A run that needs all answers goes on when all are in effect.
func TestARunWaitsForTheEffectOfAllAnswers(t *testing.T) {
	for name, coverage := range map[string]runtime.Coverage{"collected": runtime.CoverCollect, "partial": runtime.CoverPartial} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUndoCase(t, nil, parallelSpec("g", "ask", "ask2"))
				u.nodes.takeEntered()
				require.NoError(t, u.answer("ana", "ask", `"1"`, coverage))
				sleepVirtual(undoTime / 2)
				require.NoError(t, u.answer("ana", "ask2", `"2"`, coverage))
				sleepVirtual(undoTime/2 + time.Second)
				if coverage == runtime.CoverPartial {
					require.Equal(t, []string{"ask"}, u.nodes.takeEntered(), "the first answer is in effect")
				} else {
					require.Empty(t, u.nodes.takeEntered(), "one answer can still be taken back")
				}
				require.NoError(t, u.retract("ana", "ask2"))
				sleepVirtual(time.Minute)
				require.Equal(t, checkpoint.RunInterrupted, u.readRun("t", "").State)
				require.Empty(t, u.nodes.takeEntered())
				require.NoError(t, u.answer("ana", "ask2", `"3"`, coverage))
				sleepVirtual(undoTime + time.Second)
				require.JSONEq(t, `{"log":["r","1","3","join"],"n":3}`, string(u.readRun("t", "").Output))
			})
		})
	}
}

// A server that comes late puts answers in effect in the order of their effect, not in that of
// their questions: the last says whether the run needs all answers.
func TestALateServerKeepsTheOrderOfEffects(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			u := newUndoCase(t, nil, parallelSpec("g", "ask", "ask2", "inner"))
			first, second := "ask", "ask2"
			if u.listOpen("t")[0].Node == "ask2" || u.listOpen("t")[1].Node == "ask2" && u.listOpen("t")[2].Node == "ask" {
				first, second = second, first
			}
			require.NoError(t, u.answer("ana", second, `"1"`, runtime.CoverCollect))
			sleepVirtual(time.Second)
			require.NoError(t, u.answer("ana", first, `"2"`, runtime.CoverPartial))
			if isLate {
				u.engine.Close()
			}
			u.nodes.takeEntered()
			sleepVirtual(undoTime + time.Minute)
			if isLate {
				u.startEngine(u.store)
				sleepVirtual(time.Minute)
			}
			require.ElementsMatch(t, []string{"ask", "ask2"}, u.nodes.takeEntered(), "late: %v", isLate)
		})
	}
}

// An answer that takes effect at once waits for one of the same call that does not.
func TestAnswersOfACallTakeEffectTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoCase(t, nil, parallelSpec("g", "ask", "inner"))
		u.nodes.takeEntered()
		req := runtime.ResumeRequest{Thread: "t", By: ben, Coverage: runtime.CoverAll}
		for _, q := range u.listOpen("t") {
			req.Responses = append(req.Responses, runtime.Response{Interrupt: q.ID, Value: `"yes"`})
		}
		_, err := u.engine.Resume(t.Context(), req)
		require.NoError(t, err)
		sleepVirtual(undoTime - time.Second)
		require.Empty(t, u.nodes.takeEntered())
		require.Equal(t, checkpoint.Head{Open: 1, Retractable: 1, Answered: 1, NeedsAllAnswers: true}, countsOf(u.head()))
		sleepVirtual(2 * time.Second)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
	})
}

// A vote can be taken back before and after the votes decide.
func TestAVoteIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoCase(t, &approval.Policy{Approvals: 2}, chainSpec("g", channelsLog, "ask", "last"))
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		require.NoError(t, u.retract("ana", "ask"))
		require.Empty(t, u.find("ask").Votes)
		for _, who := range []string{"ana", "ben"} {
			require.NoError(t, u.answer(who, "ask", `"yes"`, runtime.CoverAll))
		}
		require.Equal(t, checkpoint.InterruptRetractable, u.find("ask").State)
		require.Equal(t, approval.RuleResponder, errorMeta(u.retract("eve", "ask"), "rule"))
		require.NoError(t, u.retract("ana", "ask"))
		require.Equal(t, checkpoint.InterruptOpen, u.find("ask").State, "the vote of ben alone does not decide")
		require.Len(t, u.find("ask").Votes, 1)
		require.NoError(t, u.answer("dora", "ask", `"yes"`, runtime.CoverAll))
		sleepVirtual(undoTime + time.Second)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
		require.Equal(t, []string{
			"asked", `voted ana "yes"`, "retracted ana a slip", `voted ana "yes"`, `voted ben "yes"`, `answered ben "yes"`,
			"retracted ana a slip", `voted dora "yes"`, `answered dora "yes"`, "used",
		}, u.trailOf("ask"))
	})
}

// Retractions are bounded: each stays in the trail.
func TestRetractionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		for range 20 {
			require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
			require.NoError(t, u.retract("ana", "ask"))
		}
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		require.Equal(t, runtime.ReasonTrailFull, errorReason(u.retract("ana", "ask")))
		sleepVirtual(undoTime + time.Second)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
	})
}

// While an answer can be taken back the same answer is acknowledged, another one is refused, and
// a call that only wants to go on follows the run.
func TestAnswersBesideARetractableAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newSingleUndoCase(t)
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		before := u.head().Revision
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(u.answer("ben", "ask", `"no"`, runtime.CoverAll)))
		_, err := u.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: ben})
		require.NoError(t, err)
		_, err = u.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: ben, Update: `{"n":7}`})
		require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "%v", err)
		require.Equal(t, before, u.head().Revision, "nothing was stored")
		sleepVirtual(undoTime + time.Second)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
	})
}

// A run that is cancelled, superseded or copied takes a retractable answer along.
func TestWhatHappensToARetractableAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(u *undoCase) error
		want checkpoint.InterruptState
		run  checkpoint.RunState
	}{
		"the run is cancelled": {func(u *undoCase) error {
			_, err := u.engine.Cancel(u.t.Context(), runtime.CancelRequest{Thread: "t", Run: u.run.ID, By: eve})
			return err
		}, checkpoint.InterruptCancelled, checkpoint.RunCancelled},
		"the run is to end after its superstep": {func(u *undoCase) error {
			_, err := u.engine.Cancel(u.t.Context(), runtime.CancelRequest{Thread: "t", Run: u.run.ID, Grace: checkpoint.DrainGrace, By: eve})
			return err
		}, checkpoint.InterruptConsumed, checkpoint.RunSucceeded},
		"another run discards it": {func(u *undoCase) error {
			_, err := u.engine.Start(u.t.Context(), runtime.StartRequest{
				Thread: "t", Graph: "g", Open: runtime.DiscardOpen, Request: checkpoint.RunRequest{Input: `{"log":["r2"]}`}, By: eve,
			})
			return err
		}, checkpoint.InterruptSuperseded, checkpoint.RunInterrupted},
		"another run is refused": {func(u *undoCase) error {
			_, err := u.engine.Start(u.t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{}`}, By: eve})
			require.Equal(u.t, runtime.ReasonThreadInterrupted, errorReason(err), "%v", err)
			return nil
		}, checkpoint.InterruptConsumed, checkpoint.RunSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newSingleUndoCase(t)
				require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
				first := u.find("ask").ID
				require.NoError(t, tc.do(u))
				sleepVirtual(time.Minute)
				require.Equal(t, tc.run, u.readRun("t", "").State)
				q, err := u.engine.Interrupt(t.Context(), "t", first)
				require.NoError(t, err)
				require.Equal(t, tc.want, q.State)
				require.Zero(t, u.head().Retractable)
			})
		})
	}
}

// An answer to a question of a failed run takes effect later too, by a run of its own.
func TestARetractableAnswerToAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBubbleCluster(t)
		u.store = guardTrails(t, u.store)
		fails := true
		u.nodes.funcs = map[string]nodeFunc{
			"ask": undoableNode(undoTime, nil),
			"broken": func(ctx context.Context, _ *nodeCall) pregel.Result {
				if workFor(ctx, time.Second) != nil || fails {
					return failedResult("broken")
				}
				return logUpdate(`"mended"`)
			},
			"join": updateNode(`{"log":["join"]}`),
		}
		u.compileGraphs(parallelSpec("g", "ask", "broken"))
		u.startEngine(u.store)
		c := &undoCase{cluster: u, run: u.beginRun("r")}
		sleepVirtual(5 * time.Second)
		require.Equal(t, checkpoint.RunFailed, c.readRun("t", "").State)
		fails = false
		require.NoError(t, c.answer("ana", "ask", `"no"`, runtime.CoverAll))
		require.Equal(t, checkpoint.ThreadInterrupted, c.head().State)
		require.NoError(t, c.retract("ana", "ask"))
		sleepVirtual(time.Minute)
		require.Equal(t, checkpoint.RunInterrupted, c.readRun("t", "").State)
		require.NoError(t, c.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		sleepVirtual(undoTime + 3*time.Second)
		r := c.readRun("t", "")
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.NotEqual(t, c.run.ID, r.ID)
		require.JSONEq(t, `{"log":["r","yes","mended","join"],"n":2}`, string(r.Output))
	})
}

// The default of the server holds for questions that say nothing, and a question may say that it
// takes its answer at once.
func TestUndoByDefault(t *testing.T) {
	none := time.Duration(0)
	long := approval.MaxUndo + 1
	for name, c := range map[string]struct {
		given  *time.Duration
		server time.Duration
		want   time.Duration
		fails  bool
	}{
		"nothing":    {nil, 0, 0, false},
		"the server": {nil, undoTime, undoTime, false},
		"at once":    {&none, undoTime, 0, false},
		"too long":   {&long, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{Undo: c.server}, map[string]nodeFunc{"ask": func(_ context.Context, _ *nodeCall) pregel.Result {
				return pregel.Result{Asks: []pregel.Ask{{Value: `1`, Undo: c.given}}}
			}}, chainSpec("g", channelsLog, "ask"))
			run := f.runToStop("t", "g", `{}`)
			if c.fails {
				require.Equal(t, checkpoint.RunFailed, run.State)
				require.Contains(t, run.Failure.Message, "undo is 24h0m0.000000001s")
				return
			}
			list, err := f.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "t"})
			require.NoError(t, err)
			require.Equal(t, c.want, list[0].Undo)
		})
	}
}

// An answer is taken back, and another one takes effect on another server, over every store.
func TestUndoOnEveryStore(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) {
			undo := time.Hour
			u := newRealUndoCase(t, open(), &undo, chainSpec("g", channelsLog, "ask"))
			defer u.closeAll()
			c := u.cluster
			require.NoError(t, u.answer("ana", "ask", `"no"`, runtime.CoverAll))
			require.Equal(t, checkpoint.Head{Open: 1, Retractable: 1}, countsOf(u.head()))
			require.NoError(t, u.retract("ana", "ask"))
			require.Equal(t, checkpoint.Head{Open: 1}, countsOf(u.head()))

			undo = 200 * time.Millisecond
			next := c.startRun("r2", runtime.StartRequest{Thread: "t", Graph: "g", Open: runtime.DiscardOpen, Request: newInput("x")})
			c.waitRun(next)
			require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
			c.engine.Close()
			c.startEngine(c.store)
			require.Equal(t, checkpoint.RunSucceeded, c.waitRun(next).State)
			require.Equal(t, []string{"asked", `answered ana "yes"`, "used"}, u.trailOf("ask"))
		})
	}
}

// newRealUndoCase makes a case in a store, in real time. An answer takes effect after undo.
func newRealUndoCase(t *testing.T, store checkpoint.Store, undo *time.Duration, spec *graph.Spec) *undoCase {
	t.Helper()
	c := newCluster(t, store, 0, faultRefused)
	c.opts.ScanInterval, c.opts.PollInterval = 50*time.Millisecond, 20*time.Millisecond
	c.nodes.funcs = crashNodes(c.nodes.ledger)
	for _, name := range []string{"ask", "ask2"} {
		c.nodes.funcs[name] = func(ctx context.Context, n *nodeCall) pregel.Result { return undoableNode(*undo, nil)(ctx, n) }
	}
	c.compileGraphs(spec)
	c.startEngine(c.store)
	u := &undoCase{cluster: c, run: c.beginRun("r")}
	c.waitRun(u.run)
	return u
}

// An answer that can still be taken back holds up a run that needs all answers.
func TestTwoAnswersWithUndoOnEveryStore(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) {
			undo := time.Hour
			u := newRealUndoCase(t, open(), &undo, parallelSpec("g", "ask", "ask2"))
			defer u.closeAll()
			require.NoError(t, u.answer("ana", "ask2", `"2"`, runtime.CoverCollect))
			require.NoError(t, u.answer("ben", "ask", `"1"`, runtime.CoverCollect))
			require.Equal(t, checkpoint.Head{Open: 2, Retractable: 2}, countsOf(u.head()))
			require.NoError(t, u.retract("ana", "ask2"))
			require.NoError(t, u.retract("ben", "ask"))
			require.Equal(t, checkpoint.Head{Open: 2}, countsOf(u.head()))

			undo = 50 * time.Millisecond
			next := u.startRun("r2", runtime.StartRequest{Thread: "t", Graph: "g", Open: runtime.DiscardOpen, Request: newInput("x")})
			u.waitRun(next)
			u.nodes.takeEntered()
			require.NoError(t, u.answer("ben", "ask", `"1"`, runtime.CoverCollect))
			require.Eventually(t, func() bool { return u.find("ask").State == checkpoint.InterruptAnswered }, time.Minute, 5*time.Millisecond)
			require.Empty(t, u.nodes.takeEntered(), "the other answer is missing")
			require.NoError(t, u.answer("ana", "ask2", `"3"`, runtime.CoverCollect))
			require.Eventually(t, func() bool { return u.readRun("t", "").State == checkpoint.RunSucceeded }, time.Minute, 5*time.Millisecond)
			require.Equal(t, []string{"asked", `answered ana "3"`, "used"}, u.trailOf("ask2"))
		})
	}
}

// countsOf keeps what a head counts.
func countsOf(h checkpoint.Head) checkpoint.Head {
	return checkpoint.Head{Open: h.Open, Retractable: h.Retractable, Answered: h.Answered, NeedsAllAnswers: h.NeedsAllAnswers}
}
