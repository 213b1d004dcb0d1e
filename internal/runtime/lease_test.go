package runtime_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// alone makes a cluster over a store in memory, for a bubble with a time of
// its own.
func alone(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, memory.New(memory.Options{}), 0, refused)
	t.Cleanup(c.close)
	return c
}

// span is when a node ran, and how it ended.
type span struct {
	from, to time.Time
	cut      bool
}

// timeline notes when a node runs.
type timeline struct {
	mu    sync.Mutex
	spans []span
}

func (l *timeline) node(d time.Duration) node {
	return func(ctx context.Context, c *call) pregel.Result {
		s := span{from: time.Now()}
		err := doing(ctx, d)
		s.to, s.cut = time.Now(), err != nil
		l.mu.Lock()
		defer l.mu.Unlock()
		l.spans = append(l.spans, s)
		if err != nil {
			return fail("cut off")
		}
		return wrote(`"` + c.Node.Name + `"`)
	}
}

func TestTakeoverWaitsForTheEndOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(4 * time.Second)}
		c.compile(chain("g", channelsLog, "work"))
		c.boot(c.first)
		run := c.begin("r")
		rest(time.Second)
		died := time.Now()
		c.first.kill()
		c.boot(c.store)
		r, err := c.engine.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		c.close()
		require.Len(t, times.spans, 2)
		again := times.spans[1].from.Sub(died)
		require.Greater(t, again, 13*time.Second, "the lease was not respected")
		require.Less(t, again, 17*time.Second, "the lease was over long ago")
	})
}

// lag is a way to the store on which calls get stuck, and arrive late.
type lag struct {
	checkpoint.Store

	mu    sync.Mutex
	stuck chan struct{} // nil = calls pass
}

func (l *lag) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck = make(chan struct{})
}

func (l *lag) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.stuck)
	l.stuck = nil
}

func (l *lag) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	l.mu.Lock()
	stuck := l.stuck
	l.mu.Unlock()
	if stuck != nil {
		<-stuck // whatever ctx says: the call is on its way
		ctx = context.WithoutCancel(ctx)
	}
	return l.Store.Apply(ctx, c)
}

func TestLateCommitOfAPausedOwnerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(2 * time.Second), "last": times.node(time.Second)}
		c.compile(chain("g", channelsLog, "work", "last"))
		slow := &lag{Store: c.store}
		paused := c.boot(slow)
		run := c.begin("r")
		rest(time.Second)
		slow.freeze() // the commit of "work" is stuck now, and so is every renewal
		fresh := c.boot(c.store)
		r, err := fresh.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		want := c.story("t")
		slow.thaw()
		rest(time.Minute)
		paused.Close()
		require.Equal(t, want, c.story("t"), "the late commit changed something")
		require.Len(t, want.Chains[""], 4)
	})
}

func TestLeaseIsRenewedWhileANodeIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(10 * time.Minute)}
		c.compile(chain("g", channelsLog, "work"))
		owner := c.boot(c.store)
		run := c.begin("r")
		c.boot(c.store) // would take over
		r, err := owner.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Len(t, times.spans, 1)
	})
}

func TestLostLeaseCancelsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(time.Hour)}
		c.compile(chain("g", channelsLog, "work"))
		c.boot(c.store)
		run := c.begin("r")
		rest(time.Second)
		head, err := c.store.Head(t.Context(), run.Thread)
		require.NoError(t, err)
		stolen := head
		stolen.Owner, stolen.Fence = "somebody else", head.Fence+1
		_, err = c.store.Apply(t.Context(), &checkpoint.Change{
			Thread: head.Thread, Expect: head.Revision, Op: "steal", Head: stolen, Lease: time.Hour,
		})
		require.NoError(t, err)
		at := time.Now()
		rest(10 * time.Second)
		require.Len(t, times.spans, 1)
		require.True(t, times.spans[0].cut)
		require.LessOrEqual(t, times.spans[0].to.Sub(at), 5*time.Second, "noticed at the renewal")
		head, err = c.store.Head(t.Context(), run.Thread)
		require.NoError(t, err)
		require.Equal(t, "somebody else", head.Owner)
	})
}

func TestWrongClockDoesNoHarm(t *testing.T) {
	for name, off := range map[string]time.Duration{"hours ahead": 5 * time.Hour, "hours behind": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				var times timeline
				c.nodes.code = map[string]node{"work": times.node(2 * time.Minute), "ask": func(_ context.Context, c *call) pregel.Result {
					if len(c.Journal.Answers) > 0 {
						return wrote(`"late"`)
					}
					return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, TTL: time.Minute, Expiry: checkpoint.ExpiryResumeDefault}}}
				}}
				c.compile(chain("g", channelsLog, "work"), chain("asks", channelsLog, "ask"))
				c.opts.Now = func() time.Time { return time.Now().Add(off) }
				wrong := c.boot(c.store)
				run := c.begin("r")
				rest(time.Second)
				c.boot(c.store) // as wrong, and tempted to take over
				queued := c.start("r2", runtime.StartRequest{
					Thread: "t", Graph: "g", Concurrency: runtime.Enqueue,
					Request: checkpoint.RunRequest{Input: `{}`, Timeout: 10 * time.Minute},
				})
				for _, want := range []checkpoint.Run{run, queued} {
					r, err := wrong.WaitRun(t.Context(), "t", want.ID)
					require.NoError(t, err)
					require.Equal(t, checkpoint.RunSucceeded, r.State)
				}
				require.Len(t, times.spans, 2, "nobody took over")
				require.Less(t, times.spans[1].from.Sub(times.spans[0].to), 2*time.Second, "the queue waits for a wrong clock")

				asked := time.Now()
				s, err := wrong.Start(t.Context(), runtime.StartRequest{
					Thread: "u", CreateThread: true, Graph: "asks",
					Request: checkpoint.RunRequest{Input: `{}`},
				})
				require.NoError(t, err)
				r, err := wrong.WaitRun(t.Context(), "u", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunInterrupted, r.State)
				rest(50 * time.Second)
				r, err = wrong.Run(t.Context(), "u", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunInterrupted, r.State, "expired after %s", time.Since(asked))
				rest(15 * time.Second)
				r, err = wrong.Run(t.Context(), "u", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State, "not expired after %s", time.Since(asked))
			})
		})
	}
}

// outage is a store that is away for a while.
type outage struct {
	*gate

	away atomic.Bool
}

func (o *outage) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if o.away.Load() {
		return checkpoint.Receipt{}, errGate
	}
	return o.gate.Apply(ctx, c)
}

func (o *outage) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if o.away.Load() {
		return checkpoint.Head{}, errGate
	}
	return o.gate.Head(ctx, thread)
}

func (o *outage) Glance(ctx context.Context, thread, request string) (checkpoint.Glance, error) {
	if o.away.Load() {
		return checkpoint.Glance{}, errGate
	}
	return o.gate.Glance(ctx, thread, request)
}

func (o *outage) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if o.away.Load() {
		return nil, time.Time{}, errGate
	}
	return o.gate.Due(ctx, limit)
}

func TestStoreOutage(t *testing.T) {
	for _, tc := range []struct {
		name string
		away time.Duration
		runs int // of the node whose commit fell into the outage
	}{
		{"shorter than the lease", 8 * time.Second, 1},
		{"longer than the lease", 2 * time.Minute, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				var times, last timeline
				c.nodes.code = map[string]node{"work": times.node(5 * time.Second), "last": last.node(time.Second)}
				c.compile(chain("g", channelsLog, "work", "last"))
				o := &outage{gate: c.first}
				e := c.boot(o)
				run := c.begin("r")
				f := e.Follow(runtime.FollowRequest{Thread: "t"})
				defer f.Close()
				rest(time.Second)
				o.away.Store(true)
				shown := 0
				for range int(tc.away / time.Second) {
					rest(time.Second)
					events, err := f.Ready(t.Context())
					require.NoError(t, err)
					shown += len(events)
				}
				stored, err := c.store.Events(t.Context(), "t", 0, 0)
				require.NoError(t, err)
				require.LessOrEqual(t, shown, len(stored), "shown and not stored")
				_, err = e.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{}`}})
				require.Equal(t, runtime.ReasonStoreUnavailable, reason(err))
				back := time.Now()
				o.away.Store(false)
				r, err := e.WaitRun(t.Context(), "t", run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				require.Less(t, time.Since(back), 10*time.Second, "nobody waits for a lease that is ours")
				require.Len(t, times.spans, tc.runs)
				require.Len(t, last.spans, 1)
			})
		})
	}
}

// dumb is a store that does not answer at all for a while.
type dumb struct {
	checkpoint.Store

	quiet atomic.Bool
}

func (d *dumb) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if d.quiet.Load() {
		<-ctx.Done()
		return checkpoint.Head{}, checkpoint.ErrUnavailable
	}
	return d.Store.Head(ctx, thread)
}

func TestCallsOnASilentStoreEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		c.nodes.code = script(c.nodes.ledger)
		c.compile(chain("g", channelsLog, "quick"))
		d := &dumb{Store: c.store}
		e := c.boot(d)
		d.quiet.Store(true)
		begun := time.Now()
		_, err := e.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g",
			Request: checkpoint.RunRequest{Input: `{}`},
		})
		require.Equal(t, runtime.ReasonStoreUnavailable, reason(err))
		require.LessOrEqual(t, time.Since(begun), 6*time.Second)
		_, err = e.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonStoreUnavailable, reason(err))
	})
}

// TestDoubtIsSettledAtOnce loses the answer to a commit and lets somebody else
// change the thread: nobody can tell whether the commit was made, but the
// lease is still ours.
func TestDoubtIsSettledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times, last timeline
		c.nodes.code = map[string]node{"work": times.node(time.Second), "last": last.node(time.Second)}
		c.compile(chain("g", channelsLog, "work", "last"))
		c.first.mode = doubtful
		e := c.boot(c.first)
		run := c.begin("r")
		c.first.at.Store(c.first.n.Load() + 1) // the commit of "work"
		began := time.Now()
		rest(1500 * time.Millisecond)
		require.Greater(t, c.first.n.Load(), c.first.at.Load(), "no commit yet")
		r, err := e.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Less(t, time.Since(began), 6*time.Second, "waited for a lease of its own")
		require.Len(t, times.spans, 1)
		require.Len(t, last.spans, 1)
		c.chain("t", "")
	})
}
