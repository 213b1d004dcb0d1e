package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// steppedAsk is a question of finance that reminds after a time, goes to the board after
// twice that, and answers itself after three times.
func steppedAsk(every time.Duration) pregel.Ask {
	return pregel.Ask{
		Value: `"pay?"`, Policy: &approval.Policy{Groups: []string{"finance"}}, TTL: 3 * every, Expiry: checkpoint.ExpiryResumeDefault, Default: `"no"`,
		Steps: []approval.Step{
			{After: every}, {After: 2 * every, Escalates: true, Groups: []string{"board"}, Priority: approval.Urgent},
		},
	}
}

// steppedNode asks steppedAsk.
func steppedNode(every time.Duration) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		if list := c.Journal.Answers; len(list) > 0 {
			return logUpdate(string(list[0].Value))
		}
		q := steppedAsk(every)
		q.SetDriftDefaults(c.Graph.Spec)
		return pregel.Result{Asks: []pregel.Ask{q}}
	}
}

// stepsCase is a cluster in virtual time whose thread asks steppedAsk.
type stepsCase struct {
	*cluster

	question checkpoint.Interrupt
}

func newStepsCase(t *testing.T) *stepsCase {
	t.Helper()
	c := newBubbleCluster(t)
	c.opts.KnowsCallers = true
	c.store = guardTrails(t, c.store)
	c.nodes.funcs = map[string]nodeFunc{"ask": steppedNode(time.Minute)}
	c.compileGraphs(chainSpec("g", channelsLog, "ask"))
	c.startEngine(c.store)
	return &stepsCase{c, c.runToInterrupt("t")}
}

func (c *stepsCase) read() checkpoint.Interrupt {
	c.t.Helper()
	q, err := c.engine.Interrupt(c.t.Context(), "t", c.question.ID)
	require.NoError(c.t, err)
	return q
}

func (c *stepsCase) trail() []string {
	c.t.Helper()
	entries, err := c.engine.ListTrail(c.t.Context(), runtime.Question{Thread: "t", Interrupt: c.question.ID})
	require.NoError(c.t, err)
	return describeTrail(entries)
}

func (c *stepsCase) answer(name, group string) error {
	_, err := c.engine.Resume(c.t.Context(), runtime.ResumeRequest{
		Thread: "t", By: runtime.Actor{Name: name, Groups: []string{group}}, Single: &runtime.Response{Value: `"yes"`},
	})
	return err
}

// The steps are taken in order, and then the default.
func TestStepsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStepsCase(t)
		asked := c.read()
		require.Equal(t, asked.Created.Add(time.Minute), asked.DueTime())
		sleepVirtual(61 * time.Second)
		require.Equal(t, []string{"asked", "reminded"}, c.trail())
		require.Equal(t, approval.RuleGroup, errorMeta(c.answer("eva", "board"), "rule"))
		sleepVirtual(time.Minute)
		require.Equal(t, []string{"asked", "reminded", "escalated"}, c.trail())
		q := c.read()
		require.Equal(t, approval.Urgent, q.Priority)
		require.Equal(t, []string{"finance", "board"}, q.VoterPolicy().Groups)
		require.Equal(t, []string{"finance"}, q.Policy.Groups, "the policy that the node asked with is compared at replay")
		sleepVirtual(time.Minute)
		require.Equal(t, []string{"asked", "reminded", "escalated", `expired "no"`}, c.trail())
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
		require.Empty(t, c.read().Responder)
	})
}

// The steps are taken and the node gets the default over every store.
func TestStepsOnEveryStore(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, guardTrails(t, open()), 0, faultRefused)
			defer c.closeAll()
			c.opts.ScanInterval, c.opts.PollInterval = 50*time.Millisecond, 20*time.Millisecond
			c.times.step = 100 * time.Millisecond
			c.nodes.funcs = map[string]nodeFunc{"ask": steppedNode(c.times.step)}
			c.compileGraphs(chainSpec("g", channelsLog, "ask"))
			c.startEngine(c.store)
			run := c.waitEnd(c.beginRun("r"))
			require.Equal(t, checkpoint.RunSucceeded, run.State)
			require.JSONEq(t, `{"log":["r","no"],"n":1}`, string(run.Output))
			list, err := c.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "t"})
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, checkpoint.InterruptExpired, list[0].State)
			require.Equal(t, approval.Urgent, list[0].Priority)
			s := &stepsCase{c, list[0]}
			require.Equal(t, []string{"asked", "reminded", "escalated", `expired "no"`}, s.trail())
		})
	}
}

// Those to whom a question was escalated may answer it, and the answer is used.
func TestAnEscalatedQuestionIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStepsCase(t)
		sleepVirtual(2*time.Minute + time.Second)
		require.NoError(t, c.answer("eva", "board"))
		sleepVirtual(time.Second)
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
		require.Equal(t, []string{"asked", "reminded", "escalated", `voted eva "yes"`, `answered eva "yes"`, "used"}, c.trail())
		sleepVirtual(10 * time.Minute)
		require.Len(t, c.trail(), 6, "nothing happens to a question that is answered")
	})
}

// Steps that no server has taken are taken late, in order, in one change.
func TestLateStepsAreTakenInOneChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStepsCase(t)
		before := c.read().Revision
		c.engine.Close()
		sleepVirtual(time.Hour)
		c.startEngine(c.store)
		sleepVirtual(time.Minute)
		require.Equal(t, []string{"asked", "reminded", "escalated", `expired "no"`}, c.trail())
		require.Equal(t, before+1, c.read().Revision)
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
	})
}

// The questions of a failed run, which may be continued, are escalated and expire as others do.
func TestStepsOfAFailedRun(t *testing.T) {
	for action, want := range map[checkpoint.ExpiryAction]struct {
		trail string
		state checkpoint.RunState
	}{
		checkpoint.ExpiryResumeDefault: {`expired "no"`, checkpoint.RunSucceeded},
		checkpoint.ExpiryFailNode:      {"expired", checkpoint.RunFailed},
		checkpoint.ExpiryCancelRun:     {"expired", checkpoint.RunFailed},
	} {
		t.Run(string(action), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, fails := newFailedRun(t, action)
				sleepVirtual(61 * time.Second)
				require.Equal(t, []string{"asked", "reminded"}, c.trail())
				sleepVirtual(2 * time.Minute)
				require.Equal(t, []string{"asked", "reminded", "escalated", want.trail}, c.trail())
				require.Equal(t, checkpoint.RunFailed, c.readRun("t", "").State, "an expiry continues no failed run")
				sleepVirtual(time.Hour)
				*fails = false
				s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g"})
				require.NoError(t, err)
				r, err := c.engine.WaitRun(t.Context(), "t", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, want.state, r.State, "%+v", r.Failure)
			})
		})
	}
}

// The time of the next step is kept while a failed run is continued.
func TestStepsOfAContinuedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fails := newFailedRun(t, checkpoint.ExpiryResumeDefault)
		sleepVirtual(61 * time.Second)
		*fails = false
		s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g"})
		require.NoError(t, err)
		r, err := c.engine.WaitRun(t.Context(), "t", s.Run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, r.State)
		sleepVirtual(2 * time.Minute)
		require.Equal(t, []string{"asked", "reminded", "escalated", `expired "no"`}, c.trail())
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
	})
}

// An update that closes the questions closes those of a failed run as well.
func TestAnUpdateClosesTheQuestionsOfAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFailedRun(t, checkpoint.ExpiryCancelRun)
		_, err := c.engine.UpdateState(t.Context(), runtime.UpdateStateRequest{
			Thread: "t", Values: `{"log":["y"]}`, AsNode: "join", SupersedeInterrupts: true, By: ana,
		})
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptSuperseded, c.read().State)
		sleepVirtual(time.Hour)
		require.Equal(t, []string{"asked", "superseded"}, c.trail())
		require.Equal(t, checkpoint.RunFailed, c.readRun("t", "").State)
	})
}

// newFailedRun makes a thread whose run has failed beside a question. The node that fails
// does so while fails is set.
func newFailedRun(t *testing.T, action checkpoint.ExpiryAction) (_ *stepsCase, fails *bool) {
	t.Helper()
	c := newBubbleCluster(t)
	c.opts.KnowsCallers = true
	c.store = guardTrails(t, c.store)
	fails = new(bool)
	*fails = true
	c.nodes.funcs = map[string]nodeFunc{
		"ask": func(ctx context.Context, n *nodeCall) pregel.Result {
			if list := n.Journal.Answers; len(list) > 0 && list[0].Expired && action != checkpoint.ExpiryResumeDefault {
				return failedResult("nobody answered")
			}
			result := steppedNode(time.Minute)(ctx, n)
			for i := range result.Asks {
				result.Asks[i].Expiry = action
			}
			return result
		},
		"fail": func(context.Context, *nodeCall) pregel.Result {
			if *fails {
				sleepVirtual(time.Second)
				return failedResult("broken")
			}
			return logUpdate(`"done"`)
		},
		"join": func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"joined"`) },
	}
	c.compileGraphs(parallelSpec("g", "ask", "fail"))
	c.startEngine(c.store)
	s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	r, err := c.engine.WaitRun(t.Context(), "t", s.Run.ID)
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunFailed, r.State)
	open := c.listOpen("t")
	require.Len(t, open, 1)
	return &stepsCase{c, open[0]}, fails
}

// An expiry that is put off moves no step, and one that comes before a step cancels it.
func TestStepsAndAChangedExpiry(t *testing.T) {
	for name, tc := range map[string]struct {
		expires time.Duration
		want    []string
	}{
		"later":  {time.Hour, []string{"asked", "changed eva", "reminded", "escalated"}},
		"never":  {0, []string{"asked", "changed eva", "reminded", "escalated"}},
		"sooner": {90 * time.Second, []string{"asked", "changed eva", "reminded", `expired "no"`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newStepsCase(t)
				var until time.Time
				if tc.expires > 0 {
					until = c.question.Created.Add(tc.expires)
				}
				_, err := c.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{
					Question: runtime.Question{Thread: "t", Interrupt: c.question.ID}, Expires: &until, By: actor("eva"),
				})
				require.NoError(t, err)
				sleepVirtual(10 * time.Minute)
				require.Equal(t, tc.want, c.trail())
			})
		})
	}
}

// Steps that can't be taken fail the task that asks.
func TestStepsThatCantBeTaken(t *testing.T) {
	v := newFixture(t, map[string]nodeFunc{"ask": func(context.Context, *nodeCall) pregel.Result {
		q := steppedAsk(time.Minute)
		q.Policy = nil
		return pregel.Result{Asks: []pregel.Ask{q}}
	}}, chainSpec("g", channelsLog, "ask"))
	run := v.runToStop("t", "g", `{}`)
	require.Equal(t, checkpoint.RunFailed, run.State)
	require.Contains(t, run.Failure.Message, "can't be taken: steps[1] escalates to people")
}
