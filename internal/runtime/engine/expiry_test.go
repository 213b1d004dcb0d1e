package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// expiringAskNode returns a node whose interrupt expires after a minute.
func expiringAskNode(action checkpoint.ExpiryAction) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		if list := c.Journal.Answers; len(list) > 0 {
			if list[0].Expired {
				return failedResult("nobody answered")
			}
			return logUpdate(string(list[0].Value))
		}
		return pregel.Result{Asks: []pregel.Ask{{
			Value: payload.Quote(c.Node.Name + "?"), TTL: time.Minute, Expiry: action, Default: `"default"`,
		}}}
	}
}

func (c *cluster) readRun(thread, id string) checkpoint.Run {
	c.t.Helper()
	r, err := c.engine.Run(context.Background(), nil, thread, id)
	require.NoError(c.t, err)
	return r
}

func TestExpiry(t *testing.T) {
	for _, tc := range []struct {
		action checkpoint.ExpiryAction
		state  checkpoint.RunState
		log    string
	}{
		{checkpoint.ExpiryResumeDefault, checkpoint.RunSucceeded, `["x","default"]`},
		{checkpoint.ExpiryFailNode, checkpoint.RunFailed, `["x"]`},
		{checkpoint.ExpiryCancelRun, checkpoint.RunCancelled, `["x"]`},
	} {
		t.Run(string(tc.action), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				c.nodes.funcs = map[string]nodeFunc{"ask": expiringAskNode(tc.action)}
				c.compileGraphs(chainSpec("g", channelsLog, "ask"))
				c.startEngine(c.store)
				q := c.runToInterrupt("t")
				sleepVirtual(59 * time.Second)
				require.Equal(t, checkpoint.RunInterrupted, c.readRun("t", "").State)
				sleepVirtual(3 * time.Second)
				require.Equal(t, tc.state, c.readRun("t", "").State)
				s, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
				require.NoError(t, err)
				log, _ := payload.Lookup(s.Values, "log")
				require.Equal(t, tc.log, string(log))
				require.Equal(t, runtime.ReasonInterruptExpired, errorReason(c.answerInterrupt("t", q.ID, `1`, runtime.CoverPartial)))
				q, err = c.engine.Interrupt(t.Context(), "t", q.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.InterruptExpired, q.State)
				h, err := c.engine.Thread(t.Context(), "t")
				require.NoError(t, err)
				require.Zero(t, h.Open)
				require.True(t, h.Due.IsZero(), "a server would look for nothing")
			})
		})
	}
}

func TestExpiryOfOneOfTwoQuestions(t *testing.T) {
	for name, busy := range map[string]time.Duration{"while waiting": 0, "while a sibling runs": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				c.nodes.funcs = crashNodes(c.nodes.ledger)
				c.nodes.funcs["timed"] = expiringAskNode(checkpoint.ExpiryResumeDefault)
				c.nodes.funcs["slow"] = func(ctx context.Context, c *nodeCall) pregel.Result {
					if workFor(ctx, busy) != nil {
						return failedResult("cut off")
					}
					return logUpdate(`"slow"`)
				}
				c.compileGraphs(parallelSpec("g", "ask", "timed", "slow"))
				c.startEngine(c.store)
				run := c.beginRun("r")
				sleepVirtual(time.Second)
				var plain checkpoint.Interrupt
				for _, q := range c.listOpen("t") {
					if q.Node == "ask" {
						plain = q
					}
				}
				// The answer takes up the thread, and must not make it forget
				// that the other interrupt expires.
				require.NoError(t, c.answerInterrupt("t", plain.ID, `"answer"`, runtime.CoverPartial))
				sleepVirtual(2 * time.Second)
				require.Len(t, c.listOpen("t"), 1)
				sleepVirtual(time.Minute)
				require.Empty(t, c.listOpen("t"), "expires on time even though the run is busy")
				r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				require.Equal(t, `{"log":["r","answer","slow","default","join"],"n":4}`, string(r.Output)) //nolint:testifylint // the text counts
			})
		})
	}
}

func TestExpiryCancelsALiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.nodes.funcs["timed"] = expiringAskNode(checkpoint.ExpiryCancelRun)
		c.nodes.funcs["slow"] = times.newNode(time.Hour)
		c.compileGraphs(parallelSpec("g", "timed", "slow"))
		c.startEngine(c.store)
		run := c.beginRun("r")
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Contains(t, r.Failure.Message, "expired")
		require.True(t, times.spans[0].isCut)
		require.Less(t, times.spans[0].to.Sub(times.spans[0].from), 65*time.Second)
	})
}

func TestExpiryThatIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = map[string]nodeFunc{"ask": expiringAskNode(checkpoint.ExpiryResumeDefault)}
		c.compileGraphs(chainSpec("g", channelsLog, "ask"))
		c.startEngine(c.store)
		q := c.runToInterrupt("t")
		later := time.Now().Add(time.Hour)
		_, err := c.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{Question: runtime.Question{Thread: "t", Interrupt: q.ID}, Expires: &later})
		require.NoError(t, err)
		sleepVirtual(30 * time.Minute)
		require.Equal(t, checkpoint.RunInterrupted, c.readRun("t", "").State)
		sooner := time.Now().Add(time.Minute)
		_, err = c.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{Question: runtime.Question{Thread: "t", Interrupt: q.ID}, Expires: &sooner})
		require.NoError(t, err)
		sleepVirtual(62 * time.Second)
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
	})
}

func TestThreadsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(3 * time.Hour)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		e := c.startEngine(c.store)
		_, err := e.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "idle", Graph: "g", Expiration: runtime.Expiration{TTL: time.Hour}})
		require.NoError(t, err)
		_, err = e.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g", Expiration: runtime.Expiration{TTL: time.Hour}})
		require.NoError(t, err)
		f := e.Follow(runtime.FollowRequest{Thread: "idle"})
		defer f.Close()
		run := c.beginRun("r")
		sleepVirtual(61 * time.Minute)
		_, err = e.Thread(t.Context(), "idle")
		require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, runtime.EventDeleted, events[0].Kind)
		_, err = f.Next(t.Context())
		require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))

		r, err := e.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err, "a busy thread does not expire")
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		sleepVirtual(59 * time.Minute)
		_, err = e.Thread(t.Context(), "t")
		require.NoError(t, err, "the time counts from the last change")
		sleepVirtual(2 * time.Minute)
		_, err = e.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
	})
}

func TestCancelLive(t *testing.T) {
	for _, tc := range []struct {
		name     string
		req      runtime.CancelRequest
		took     time.Duration
		log      string
		finishes bool
	}{
		{"at once", runtime.CancelRequest{}, 0, `["x","quick"]`, false},
		{"rolled back", runtime.CancelRequest{Rollback: true}, 0, `[]`, false},
		{"the grace is long enough", runtime.CancelRequest{Grace: time.Minute}, 29 * time.Second, `["x","quick","work"]`, true},
		{"the grace is too short", runtime.CancelRequest{Grace: 10 * time.Second}, 10 * time.Second, `["x","quick"]`, false},
		{"grace and roll-back", runtime.CancelRequest{Grace: time.Minute, Rollback: true}, 29 * time.Second, `[]`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				var times nodeTimeline
				c.nodes.funcs = crashNodes(c.nodes.ledger)
				c.nodes.funcs["work"] = times.newNode(30 * time.Second)
				c.compileGraphs(chainSpec("g", channelsLog, "quick", "work", "last"))
				c.startEngine(c.store)
				s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
				require.NoError(t, err)
				sleepVirtual(time.Second)
				at := time.Now()
				req := tc.req
				req.Thread, req.Reason = "t", "because"
				r, err := c.engine.Cancel(t.Context(), req)
				require.NoError(t, err)
				require.Contains(t, []checkpoint.RunState{checkpoint.RunCancelling, checkpoint.RunCancelled}, r.State)
				r, err = c.engine.WaitRun(t.Context(), "t", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunCancelled, r.State)
				require.Equal(t, runtime.FailedCancelledByClient, r.Failure.Reason)
				require.Contains(t, r.Failure.Message, "because")
				require.Equal(t, tc.took, time.Since(at))
				require.Equal(t, !tc.finishes, times.spans[0].isCut)
				snap, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
				require.NoError(t, err)
				log, _ := payload.Lookup(snap.Values, "log")
				require.Equal(t, tc.log, string(log))
				again, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: s.Run.ID})
				require.NoError(t, err, "cancelling what is over changes nothing")
				require.Equal(t, r, again)
			})
		})
	}
}

// TestCancelWinsOverTheInterrupt cancels a run with a grace in which it asks.
func TestCancelWinsOverTheInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.nodes.funcs["late"] = func(ctx context.Context, c *nodeCall) pregel.Result {
			if workFor(ctx, 5*time.Second) != nil {
				return failedResult("cut off")
			}
			return logUpdate(c.askNext(`"late?"`))
		}
		c.compileGraphs(chainSpec("g", channelsLog, "late"))
		c.startEngine(c.store)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		_, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Grace: time.Minute, By: eve})
		require.NoError(t, err)
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State, "an accepted cancel is not forgotten")
		require.Empty(t, c.listOpen("t"))
		require.Equal(t, []string{
			"run running by starter of r", "run cancelling by eve", "run cancelled CANCELLED_BY_CLIENT by eve",
		}, c.summarizeThread("t").States)
	})
}

func TestCancelOfARunWhoseOwnerDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Hour)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.faulty)
		run := c.beginRun("r")
		c.faulty.killProcess()
		c.startEngine(c.store)
		_, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Rollback: true, By: eve})
		require.NoError(t, err)
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Equal(t, []string{
			"run running by starter of r", "run cancelling by eve", "run cancelled CANCELLED_BY_CLIENT by eve",
		}, c.summarizeThread("t").States)
		require.Equal(t, `{"log":[]}`, c.summarizeThread("t").Values) //nolint:testifylint // the text counts
	})
}

func TestCancelQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Minute)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		first := c.beginRun("r")
		var ids []string
		for _, id := range []string{"a", "b", "c"} {
			s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Run: id, Concurrency: runtime.EnqueueBusy, Request: newInput(id)})
			require.NoError(t, err)
			ids = append(ids, s.Run.ID)
		}
		r, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: ids[1]})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		for _, id := range []string{first.ID, ids[0], ids[2]} {
			r, err := c.engine.WaitRun(t.Context(), "t", id)
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State)
		}
		require.Equal(t, `{"log":["r","work","a","work","c","work"],"n":3}`, c.summarizeThread("t").Values) //nolint:testifylint // the text counts
	})
}

// A question that a pause leaves open expires on time, and the run goes on.
func TestExpiryAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.nodes.funcs["timed"] = expiringAskNode(checkpoint.ExpiryResumeDefault)
		c.nodes.funcs["ask"] = func(ctx context.Context, call *nodeCall) pregel.Result {
			answer := call.askNext(`"?"`)
			if workFor(ctx, 20*time.Second) != nil {
				return failedResult("cut off")
			}
			return logUpdate(answer)
		}
		c.compileGraphs(parallelSpec("g", "ask", "timed"))
		c.startEngine(c.store)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		for _, q := range c.listOpen("t") {
			if q.Node == "ask" {
				require.NoError(t, c.answerInterrupt("t", q.ID, `"answer"`, runtime.CoverPartial))
			}
		}
		sleepVirtual(time.Second)
		_, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Run: run.ID, Grace: checkpoint.PauseGrace})
		require.NoError(t, err)
		sleepVirtual(30 * time.Second)
		require.Equal(t, checkpoint.RunInterrupted, c.readRun("t", run.ID).State)
		require.Len(t, c.listOpen("t"), 1)
		sleepVirtual(time.Minute)
		require.Empty(t, c.listOpen("t"))
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", run.ID).State)
	})
}

// An answer and the default meet at the moment of the expiry; one of them is used, and the
// record and the trail say which.
func TestAnAnswerAtTheMomentOfTheExpiry(t *testing.T) {
	outcomes := map[string]int{}
	for delay := -2 * time.Millisecond; delay <= 2*time.Millisecond; delay += 20 * time.Microsecond {
		synctest.Test(t, func(t *testing.T) {
			c := newBubbleCluster(t)
			c.store = guardTrails(t, c.store)
			c.opts.PollInterval = time.Millisecond
			c.nodes.funcs = map[string]nodeFunc{"ask": expiringAskNode(checkpoint.ExpiryResumeDefault)}
			c.compileGraphs(chainSpec("g", channelsLog, "ask"))
			c.startEngine(c.store)
			other := c.startEngine(c.store)
			q := c.runToInterrupt("t")
			sleepVirtual(time.Until(q.Expires) + delay)
			_, err := other.Resume(t.Context(), runtime.ResumeRequest{
				Thread: "t", By: ben, Responses: []runtime.Response{{Interrupt: q.ID, Value: `"answer"`}},
			})
			sleepVirtual(time.Minute)
			outcomes[errorReason(err)]++
			used, readErr := c.engine.Interrupt(t.Context(), "t", q.ID)
			require.NoError(t, readErr)
			entries, readErr := c.engine.ListTrail(t.Context(), runtime.Question{Thread: "t", Interrupt: q.ID})
			require.NoError(t, readErr)
			output := string(c.readRun("t", "").Output)
			switch errorReason(err) {
			case "":
				require.Equal(t, checkpoint.InterruptConsumed, used.State)
				require.Contains(t, output, `"answer"`)
				require.Equal(t, []string{"asked", `answered ben "answer"`, "used"}, describeTrail(entries))
			case runtime.ReasonInterruptExpired:
				require.Equal(t, checkpoint.InterruptExpired, used.State)
				require.Contains(t, output, `"default"`)
				require.Equal(t, []string{"asked", `expired "default"`}, describeTrail(entries))
			default:
				require.NoError(t, err)
			}
		})
	}
	require.Len(t, outcomes, 2, "%v", outcomes)
}
