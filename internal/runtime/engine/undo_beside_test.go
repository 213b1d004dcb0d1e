package engine_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// expiringIn is a node whose question expires.
func expiringIn(ttl time.Duration, action checkpoint.ExpiryAction) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		if list := c.Journal.Answers; len(list) > 0 {
			return logUpdate(string(list[0].Value))
		}
		return pregel.Result{Asks: []pregel.Ask{{Value: `"late?"`, TTL: ttl, Expiry: action, Default: `"default"`}}}
	}
}

// newBesideCase begins a run that asks "ask", whose answer can be taken back, beside other nodes.
func newBesideCase(t *testing.T, spec *graph.Spec, more map[string]nodeFunc) *undoCase {
	t.Helper()
	c := newBubbleCluster(t)
	c.opts.KnowsCallers = true
	c.store = guardTrails(t, c.store)
	c.nodes.funcs = crashNodes(c.nodes.ledger)
	c.nodes.funcs["ask"] = undoableNode(undoTime, nil)
	c.nodes.funcs["long"] = undoableNode(time.Hour, nil)
	maps.Copy(c.nodes.funcs, more)
	c.compileGraphs(spec)
	c.startEngine(c.store)
	u := &undoCase{cluster: c, run: c.beginRun("r")}
	sleepVirtual(time.Second)
	return u
}

// No answer takes effect in the change in which an expiry cancels the run.
func TestNoEffectInACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBesideCase(t, parallelSpec("g", "ask", "late"), map[string]nodeFunc{"late": expiringIn(30*time.Second, checkpoint.ExpiryCancelRun)})
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverPartial))
		u.engine.Close()
		sleepVirtual(time.Minute)
		u.startEngine(u.store)
		sleepVirtual(time.Second)
		require.Equal(t, checkpoint.RunCancelled, u.readRun("t", "").State)
		require.Equal(t, checkpoint.InterruptCancelled, u.find("ask").State)
		require.Equal(t, []string{"asked", `answered ana "yes"`, "cancelled"}, u.trailOf("ask"))
		require.Equal(t, checkpoint.Head{}, countsOf(u.head()))
	})
}

// A copy would use an answer once more that no node of the thread has used yet.
func TestAThreadWithUnusedAnswersIsNotCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBesideCase(t, parallelSpec("g", "ask", "inner"), nil)
		copyTo := func(thread string) string {
			_, err := u.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: thread})
			return errorReason(err)
		}
		require.NoError(t, u.answer("ana", "ask", `"2"`, runtime.CoverCollect))
		require.Equal(t, runtime.ReasonThreadBusy, copyTo("early"), "the answer takes effect later")
		require.NoError(t, u.retract("ana", "ask"))
		require.Empty(t, copyTo("open"))
		require.NoError(t, u.answer("ana", "ask", `"2"`, runtime.CoverCollect))
		sleepVirtual(time.Minute)
		require.Equal(t, runtime.ReasonThreadBusy, copyTo("waits"), "the answer waits for the other")
		require.NoError(t, u.answer("ben", "inner", `"1"`, runtime.CoverPartial))
		sleepVirtual(time.Minute)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
		require.Empty(t, copyTo("done"))
	})
}

// What a call says of all answers holds for its own answers, from their effect on.
func TestEachAnswerKeepsItsCoverage(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, u *undoCase)
		runs bool // the run goes on
	}{
		"a retracted answer leaves another call's collect": {func(t *testing.T, u *undoCase) {
			t.Helper()
			require.NoError(t, u.answer("ben", "inner", `"1"`, runtime.CoverCollect))
			require.NoError(t, u.answer("ana", "ask", `"2"`, runtime.CoverPartial))
			require.NoError(t, u.retract("ana", "ask"))
		}, false},
		"a later collect leaves a partial answer": {func(t *testing.T, u *undoCase) {
			t.Helper()
			require.NoError(t, u.answer("ana", "ask", `"2"`, runtime.CoverPartial))
			require.NoError(t, u.answer("ben", "inner", `"1"`, runtime.CoverCollect))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newBesideCase(t, parallelSpec("g", "ask", "inner", "ask2"), nil)
				u.nodes.takeEntered()
				c.do(t, u)
				sleepVirtual(time.Minute)
				require.Equal(t, c.runs, len(u.nodes.takeEntered()) > 0)
			})
		})
	}
}

// A run that is paused does not start again by itself when an answer takes effect.
func TestAPausedRunBesideARetractableAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBesideCase(t, parallelSpec("g", "ask", "inner", "slow"), nil)
		require.NoError(t, u.answer("ana", "ask", `"2"`, runtime.CoverPartial))
		_, err := u.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: u.run.ID, Grace: checkpoint.PauseGrace, By: eve})
		require.NoError(t, err)
		sleepVirtual(time.Second)
		u.nodes.takeEntered()
		require.Equal(t, checkpoint.RunInterrupted, u.readRun("t", "").State)
		sleepVirtual(time.Minute)
		require.Empty(t, u.nodes.takeEntered())
		require.NoError(t, u.answer("ben", "inner", `"1"`, runtime.CoverPartial))
		sleepVirtual(time.Minute)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
	})
}

// A collected answer, a breakpoint and an expiry do not hold a run for ever.
func TestABreakpointBesideARetractableAnswer(t *testing.T) {
	for name, late := range map[string]bool{"alone": false, "beside a question that expires": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := []string{"ask", "fast"}
				if late {
					nodes = append(nodes, "late")
				}
				spec := parallelSpec("g", nodes...)
				spec.Nodes[2].Function, spec.Nodes[2].Graph = nil, &graph.SubgraphSpec{Name: "inner"}
				inner := chainSpec("inner", channelsLog, "quick")
				inner.InterruptBefore = []string{"quick"}
				c := newBubbleCluster(t)
				c.store = guardTrails(t, c.store)
				c.nodes.funcs = crashNodes(c.nodes.ledger)
				c.nodes.funcs["ask"] = undoableNode(undoTime, nil)
				c.nodes.funcs["late"] = expiringIn(30*time.Second, checkpoint.ExpiryResumeDefault)
				c.compileGraphs(inner, spec)
				c.startEngine(c.store)
				u := &undoCase{cluster: c, run: c.beginRun("r")}
				sleepVirtual(time.Second)
				require.Equal(t, checkpoint.RunInterrupted, u.readRun("t", "").State)
				require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverCollect))
				sleepVirtual(time.Minute)
				require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
			})
		})
	}
}

// Who waits for a run that would have gone on by itself learns that it does not.
func TestWaitersLearnThatARunRests(t *testing.T) {
	for name, do := range map[string]func(u *undoCase) error{
		"taken back": func(u *undoCase) error { return u.retract("ana", "long") },
		"collected by another call, and in effect": func(u *undoCase) error {
			sleepVirtual(2 * time.Hour)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newBesideCase(t, parallelSpec("g", "long", "inner"), nil)
				require.NoError(t, u.answer("ana", "long", `"yes"`, runtime.CoverCollect))
				ended := make(chan checkpoint.Run, 1)
				go func() {
					run, _ := u.engine.WaitRun(t.Context(), "t", u.run.ID)
					ended <- run
				}()
				synctest.Wait()
				require.Empty(t, ended)
				require.NoError(t, do(u))
				synctest.Wait()
				require.Equal(t, checkpoint.RunInterrupted, (<-ended).State)
			})
		})
	}
}

// The labels of an answer are those of the run that goes on after a failed run.
func TestLabelsOfARetractableAnswerToAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBesideCase(t, parallelSpec("g", "ask", "broken"), map[string]nodeFunc{"broken": func(ctx context.Context, _ *nodeCall) pregel.Result {
			_ = workFor(ctx, 2*time.Second)
			return failedResult("broken")
		}})
		sleepVirtual(5 * time.Second)
		failed := u.readRun("t", "")
		require.Equal(t, checkpoint.RunFailed, failed.State)
		started, err := u.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: ana, Responses: []runtime.Response{{Interrupt: u.find("ask").ID, Value: `"yes"`}},
			Metadata: map[string]string{"a": "b"},
		})
		require.NoError(t, err)
		require.NotEqual(t, failed.ID, started.Run.ID)
		next := u.readRun("t", "")
		require.Equal(t, started.Run.ID, next.ID)
		require.Equal(t, map[string]string{"a": "b"}, next.Metadata)
		require.NotZero(t, next.FirstEvent)
		require.Empty(t, u.readRun("t", failed.ID).Metadata)
	})
}

// A thread does not expire with an answer that takes effect later, and an answer is not taken
// back when its question has expired meanwhile.
func TestExpiriesBesideARetractableAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = map[string]nodeFunc{"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			if list := c.Journal.Answers; len(list) > 0 {
				return logUpdate(string(list[0].Value))
			}
			undo := time.Hour
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, Undo: &undo, TTL: time.Minute, Expiry: checkpoint.ExpiryCancelRun}}}
		}}
		c.compileGraphs(chainSpec("g", channelsLog, "ask"))
		c.startEngine(c.store)
		_, err := c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Expiration: runtime.Expiration{TTL: 30 * time.Minute}})
		require.NoError(t, err)
		u := &undoCase{cluster: c, run: c.beginRun("r")}
		sleepVirtual(time.Second)
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverAll))
		sleepVirtual(2 * time.Minute)
		require.Equal(t, runtime.ReasonInterruptExpired, errorReason(u.retract("ana", "ask")))
		sleepVirtual(time.Hour)
		require.Equal(t, checkpoint.RunSucceeded, u.readRun("t", "").State)
	})
}

// An answer that is repeated brings no update into a run that waits for its effect.
func TestARepeatedAnswerBringsNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newBesideCase(t, parallelSpec("g", "ask", "inner"), nil)
		require.NoError(t, u.answer("ana", "ask", `"yes"`, runtime.CoverPartial))
		_, err := u.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: actor("ana"), Update: `{"n":1}`, Responses: []runtime.Response{{Interrupt: u.find("ask").ID, Value: `"yes"`}},
		})
		require.Equal(t, runtime.ReasonInvalidField, errorReason(err), "%v", err)
	})
}
