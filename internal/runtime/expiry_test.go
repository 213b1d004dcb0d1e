package runtime_test

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

// timed is a node whose question expires after a minute.
func timed(action checkpoint.ExpiryAction) node {
	return func(_ context.Context, c *call) pregel.Result {
		if list := c.Journal.Answers; len(list) > 0 {
			if list[0].Expired {
				return fail("nobody answered")
			}
			return wrote(string(list[0].Value))
		}
		return pregel.Result{Asks: []pregel.Ask{{
			Value: payload.Quote(c.Node.Name + "?"), TTL: time.Minute, Expiry: action, Default: `"default"`,
		}}}
	}
}

func (c *cluster) run(thread, id string) checkpoint.Run {
	c.t.Helper()
	r, err := c.engine.Run(context.Background(), thread, id)
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
				c := alone(t)
				c.nodes.code = map[string]node{"ask": timed(tc.action)}
				c.compile(chain("g", channelsLog, "ask"))
				c.boot(c.store)
				q := c.asking("t")
				rest(59 * time.Second)
				require.Equal(t, checkpoint.RunInterrupted, c.run("t", "").State)
				rest(3 * time.Second)
				require.Equal(t, tc.state, c.run("t", "").State)
				s, err := c.engine.State(t.Context(), runtime.StateRequest{Thread: "t"})
				require.NoError(t, err)
				log, _ := payload.Lookup(s.Values, "log")
				require.Equal(t, tc.log, string(log))
				require.Equal(t, runtime.ReasonInterruptExpired, reason(c.respond("t", q.ID, `1`, runtime.Partial)))
				q, err = c.engine.Interrupt(t.Context(), "t", q.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.InterruptExpired, q.State)
				h, err := c.engine.Thread(t.Context(), "t")
				require.NoError(t, err)
				require.Zero(t, h.Open)
				require.True(t, h.Due.IsZero(), "somebody will look for nothing")
			})
		})
	}
}

func TestExpiryOfOneOfTwoQuestions(t *testing.T) {
	for name, busy := range map[string]time.Duration{"while waiting": 0, "while a sibling runs": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				c.nodes.code = script(c.nodes.ledger)
				c.nodes.code["timed"] = timed(checkpoint.ExpiryResumeDefault)
				c.nodes.code["slow"] = func(ctx context.Context, c *call) pregel.Result {
					if doing(ctx, busy) != nil {
						return fail("cut off")
					}
					return wrote(`"slow"`)
				}
				c.compile(side("g", "ask", "timed", "slow"))
				c.boot(c.store)
				run := c.begin("r")
				rest(time.Second)
				var plain checkpoint.Interrupt
				for _, q := range c.open("t") {
					if q.Node == "ask" {
						plain = q
					}
				}
				// The answer takes up the thread, and must not make it forget
				// that the other question expires.
				require.NoError(t, c.respond("t", plain.ID, `"answer"`, runtime.Partial))
				rest(2 * time.Second)
				require.Len(t, c.open("t"), 1)
				rest(time.Minute)
				require.Empty(t, c.open("t"), "expires on time even though the run is busy")
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
		c := alone(t)
		var times timeline
		c.nodes.code = script(c.nodes.ledger)
		c.nodes.code["timed"] = timed(checkpoint.ExpiryCancelRun)
		c.nodes.code["slow"] = times.node(time.Hour)
		c.compile(side("g", "timed", "slow"))
		c.boot(c.store)
		run := c.begin("r")
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Contains(t, r.Failure.Message, "expired")
		require.True(t, times.spans[0].cut)
		require.Less(t, times.spans[0].to.Sub(times.spans[0].from), 65*time.Second)
	})
}

func TestExpiryThatIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		c.nodes.code = map[string]node{"ask": timed(checkpoint.ExpiryResumeDefault)}
		c.compile(chain("g", channelsLog, "ask"))
		c.boot(c.store)
		q := c.asking("t")
		later := time.Now().Add(time.Hour)
		_, err := c.engine.UpdateInterrupt(t.Context(), runtime.InterruptChange{Thread: "t", Interrupt: q.ID, Expires: &later})
		require.NoError(t, err)
		rest(30 * time.Minute)
		require.Equal(t, checkpoint.RunInterrupted, c.run("t", "").State)
		sooner := time.Now().Add(time.Minute)
		_, err = c.engine.UpdateInterrupt(t.Context(), runtime.InterruptChange{Thread: "t", Interrupt: q.ID, Expires: &sooner})
		require.NoError(t, err)
		rest(62 * time.Second)
		require.Equal(t, checkpoint.RunSucceeded, c.run("t", "").State)
	})
}

func TestThreadsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(3 * time.Hour)}
		c.compile(chain("g", channelsLog, "work"))
		e := c.boot(c.store)
		_, err := e.CreateThread(t.Context(), runtime.NewThread{Thread: "idle", Graph: "g", Expiration: runtime.Expiration{TTL: time.Hour}})
		require.NoError(t, err)
		_, err = e.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "g", Expiration: runtime.Expiration{TTL: time.Hour}})
		require.NoError(t, err)
		f := e.Follow(runtime.FollowRequest{Thread: "idle"})
		defer f.Close()
		run := c.begin("r")
		rest(61 * time.Minute)
		_, err = e.Thread(t.Context(), "idle")
		require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, runtime.EventDeleted, events[0].Kind)
		_, err = f.Next(t.Context())
		require.Equal(t, runtime.ReasonThreadNotFound, reason(err))

		r, err := e.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err, "a busy thread does not expire")
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		rest(59 * time.Minute)
		_, err = e.Thread(t.Context(), "t")
		require.NoError(t, err, "the time counts from the last change")
		rest(2 * time.Minute)
		_, err = e.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
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
				c := alone(t)
				var times timeline
				c.nodes.code = script(c.nodes.ledger)
				c.nodes.code["work"] = times.node(30 * time.Second)
				c.compile(chain("g", channelsLog, "quick", "work", "last"))
				c.boot(c.store)
				s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x")})
				require.NoError(t, err)
				rest(time.Second)
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
				require.Equal(t, !tc.finishes, times.spans[0].cut)
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

// TestCancelBeatsTheQuestion cancels a run with a grace in which it asks.
func TestCancelBeatsTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		c.nodes.code = script(c.nodes.ledger)
		c.nodes.code["late"] = func(ctx context.Context, c *call) pregel.Result {
			if doing(ctx, 5*time.Second) != nil {
				return fail("cut off")
			}
			return wrote(c.ask(`"late?"`))
		}
		c.compile(chain("g", channelsLog, "late"))
		c.boot(c.store)
		run := c.begin("r")
		rest(time.Second)
		_, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Grace: time.Minute})
		require.NoError(t, err)
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State, "an accepted cancel is not forgotten")
		require.Empty(t, c.open("t"))
		require.Equal(t, []string{"run running", "run cancelling", "run cancelled CANCELLED_BY_CLIENT"}, c.story("t").States)
	})
}

func TestCancelOfARunWhoseOwnerDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(time.Hour)}
		c.compile(chain("g", channelsLog, "work"))
		c.boot(c.first)
		run := c.begin("r")
		c.first.kill()
		c.boot(c.store)
		_, err := c.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", Rollback: true})
		require.NoError(t, err)
		r, err := c.engine.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunCancelled, r.State)
		require.Equal(t, []string{"run running", "run cancelling", "run cancelled CANCELLED_BY_CLIENT"}, c.story("t").States)
		require.Equal(t, `{"log":[]}`, c.story("t").Values) //nolint:testifylint // the text counts
	})
}

func TestCancelQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(time.Minute)}
		c.compile(chain("g", channelsLog, "work"))
		c.boot(c.store)
		first := c.begin("r")
		var ids []string
		for _, id := range []string{"a", "b", "c"} {
			s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Run: id, Concurrency: runtime.Enqueue, Request: input(id)})
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
		require.Equal(t, `{"log":["r","work","a","work","c","work"],"n":3}`, c.story("t").Values) //nolint:testifylint // the text counts
	})
}
