package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newBubbleCluster makes a cluster over a store in memory, for a bubble with a time of
// its own.
func newBubbleCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, memory.New(memory.Options{}), 0, faultRefused)
	t.Cleanup(c.closeAll)
	return c
}

// nodeSpan is when a node ran, and how it ended.
type nodeSpan struct {
	from, to time.Time
	isCut    bool
}

// nodeTimeline notes when a node runs.
type nodeTimeline struct {
	mu    sync.Mutex
	spans []nodeSpan
}

func (n *nodeTimeline) newNode(d time.Duration) nodeFunc {
	return func(ctx context.Context, c *nodeCall) pregel.Result {
		s := nodeSpan{from: time.Now()}
		err := workFor(ctx, d)
		s.to, s.isCut = time.Now(), err != nil
		n.mu.Lock()
		defer n.mu.Unlock()
		n.spans = append(n.spans, s)
		if err != nil {
			return failedResult("cut off")
		}
		return logUpdate(`"` + c.Node.Name + `"`)
	}
}

func TestTakeoverWaitsForTheEndOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(4 * time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.faulty)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		died := time.Now()
		c.faulty.killProcess()
		c.startEngine(c.store)
		r, err := c.engine.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		c.closeAll()
		require.Len(t, times.spans, 2)
		again := times.spans[1].from.Sub(died)
		require.Greater(t, again, 13*time.Second, "the lease was not respected")
		require.Less(t, again, 17*time.Second, "the lease was over long ago")
	})
}

// stuckStore is a store on which calls get stuck and arrive late.
type stuckStore struct {
	checkpoint.Store

	mu      sync.Mutex
	blocked chan struct{} // nil = calls pass
}

func (s *stuckStore) blockCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = make(chan struct{})
}

func (s *stuckStore) unblockCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.blocked)
	s.blocked = nil
}

func (s *stuckStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.mu.Lock()
	stuck := s.blocked
	s.mu.Unlock()
	if stuck != nil {
		<-stuck // whatever ctx says: the call is on its way
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.Apply(ctx, c)
}

func TestLateCommitOfAPausedOwnerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(2 * time.Second), "last": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work", "last"))
		slow := &stuckStore{Store: c.store}
		paused := c.startEngine(slow)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		slow.blockCalls() // the commit of "work" is stuck now, and so is every renewal
		fresh := c.startEngine(c.store)
		r, err := fresh.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		want := c.summarizeThread("t")
		slow.unblockCalls()
		sleepVirtual(time.Minute)
		paused.Close()
		require.Equal(t, want, c.summarizeThread("t"), "the late commit changed something")
		require.Len(t, want.Histories[""], 4)
	})
}

func TestLeaseIsRenewedWhileANodeIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(10 * time.Minute)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		owner := c.startEngine(c.store)
		run := c.beginRun("r")
		c.startEngine(c.store) // would take over
		r, err := owner.WaitRun(t.Context(), run.Thread, run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Len(t, times.spans, 1)
	})
}

func TestLostLeaseCancelsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Hour)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.startEngine(c.store)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		head, err := c.store.Head(t.Context(), run.Thread)
		require.NoError(t, err)
		stolen := head
		stolen.Owner, stolen.Fence = "another server", head.Fence+1
		_, err = c.store.Apply(t.Context(), &checkpoint.Change{
			Thread: head.Thread, Expect: head.Revision, Op: "steal", Head: stolen, Lease: time.Hour,
		})
		require.NoError(t, err)
		at := time.Now()
		sleepVirtual(10 * time.Second)
		require.Len(t, times.spans, 1)
		require.True(t, times.spans[0].isCut)
		require.LessOrEqual(t, times.spans[0].to.Sub(at), 5*time.Second, "noticed at the renewal")
		head, err = c.store.Head(t.Context(), run.Thread)
		require.NoError(t, err)
		require.Equal(t, "another server", head.Owner)
	})
}

// wrongClocks returns how far clocks of servers are from that of the store.
func wrongClocks() map[string]time.Duration {
	return map[string]time.Duration{"hours ahead": 5 * time.Hour, "hours behind": -5 * time.Hour}
}

func TestWrongClockDoesNoHarm(t *testing.T) {
	for name, off := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				var times nodeTimeline
				c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(2 * time.Minute), "ask": func(_ context.Context, c *nodeCall) pregel.Result {
					if len(c.Journal.Answers) > 0 {
						return logUpdate(`"late"`)
					}
					return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, TTL: time.Minute, Expiry: checkpoint.ExpiryResumeDefault}}}
				}}
				c.compileGraphs(chainSpec("g", channelsLog, "work"), chainSpec("asks", channelsLog, "ask"))
				c.opts.Now = func() time.Time { return time.Now().Add(off) }
				wrong := c.startEngine(c.store)
				run := c.beginRun("r")
				sleepVirtual(time.Second)
				c.startEngine(c.store) // as wrong, and tempted to take over
				queued := c.startRun("r2", runtime.StartRequest{
					Thread: "t", Graph: "g", Concurrency: runtime.EnqueueBusy,
					Request: checkpoint.RunRequest{Input: `{}`, Timeout: 10 * time.Minute},
				})
				for _, want := range []checkpoint.Run{run, queued} {
					r, err := wrong.WaitRun(t.Context(), "t", want.ID)
					require.NoError(t, err)
					require.Equal(t, checkpoint.RunSucceeded, r.State)
				}
				require.Len(t, times.spans, 2, "no server took over")
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
				sleepVirtual(50 * time.Second)
				r, err = wrong.Run(t.Context(), nil, "u", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunInterrupted, r.State, "expired after %s", time.Since(asked))
				sleepVirtual(15 * time.Second)
				r, err = wrong.Run(t.Context(), nil, "u", s.Run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State, "not expired after %s", time.Since(asked))
			})
		})
	}
}

// A claim lasts as long by the clock of the store, whichever server has given it and whichever
// is asked.
func TestAClaimEndsByTheClockOfTheStore(t *testing.T) {
	for name, off := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				c.nodes.funcs = map[string]nodeFunc{"ask": func(_ context.Context, n *nodeCall) pregel.Result {
					return logUpdate(n.askPeople(`"?"`, &approval.Policy{Exclusive: true}))
				}}
				c.compileGraphs(chainSpec("g", channelsLog, "ask"))
				right := c.startEngine(c.store)
				c.opts.Now = func() time.Time { return time.Now().Add(off) }
				wrong := c.startEngine(c.store)
				run := c.beginRun("r")
				require.Equal(t, checkpoint.RunInterrupted, c.waitRun(run).State)
				c.requireClaimEnds(right, wrong)
				c.requireClaimEnds(wrong, right)
			})
		})
	}
}

// requireClaimEnds claims the only question for an hour at one engine, and checks that another
// person can't have it before the end, at either engine, and has it after the end at the other.
func (c *cluster) requireClaimEnds(first, other *engine.Engine) {
	c.t.Helper()
	question := runtime.Question{Thread: "t", Interrupt: c.listOpen("t")[0].ID}
	claim := func(e *engine.Engine, who string) (checkpoint.Interrupt, error) {
		return e.ClaimInterrupt(c.t.Context(), runtime.ClaimRequest{Question: question, Duration: time.Hour, By: actor(who)})
	}
	claimed, err := claim(first, "ana")
	require.NoError(c.t, err)
	end := time.Now().Add(time.Hour)
	require.WithinDuration(c.t, end, claimed.ClaimExpires, time.Second)
	sleepVirtual(59 * time.Minute)
	for _, e := range []*engine.Engine{other, first} {
		_, err := claim(e, "ben")
		require.Equal(c.t, runtime.ReasonInterruptClaimed, errorReason(err), "%v", err)
		require.Equal(c.t, "ana", errorMeta(err, "claimedBy"))
		require.WithinDuration(c.t, time.Now(), e.CurrentTime(), time.Second, "lists tell which claims hold by it")
		_, err = e.Resume(c.t.Context(), runtime.ResumeRequest{Thread: "t", By: actor("ben"), Single: &runtime.Response{Value: "1"}})
		require.Equal(c.t, runtime.ReasonInterruptClaimed, errorReason(err), "%v", err)
	}
	sleepVirtual(time.Until(end) + time.Second)
	_, err = claim(other, "ben")
	require.NoError(c.t, err)
	_, err = other.ReleaseInterrupt(c.t.Context(), runtime.ReleaseRequest{Question: question, By: actor("ben")})
	require.NoError(c.t, err)
}

// outageStore is a store that is away for a while.
type outageStore struct {
	*faultyStore

	isAway atomic.Bool
}

func (o *outageStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if o.isAway.Load() {
		return checkpoint.Receipt{}, errFault
	}
	return o.faultyStore.Apply(ctx, c)
}

func (o *outageStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if o.isAway.Load() {
		return checkpoint.Head{}, errFault
	}
	return o.faultyStore.Head(ctx, thread)
}

func (o *outageStore) ViewThread(ctx context.Context, thread, request string) (*checkpoint.ThreadView, error) {
	if o.isAway.Load() {
		return nil, errFault
	}
	return o.faultyStore.ViewThread(ctx, thread, request)
}

func (o *outageStore) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	if o.isAway.Load() {
		return nil, time.Time{}, errFault
	}
	return o.faultyStore.Due(ctx, limit)
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
				c := newBubbleCluster(t)
				var times, last nodeTimeline
				c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(5 * time.Second), "last": last.newNode(time.Second)}
				c.compileGraphs(chainSpec("g", channelsLog, "work", "last"))
				o := &outageStore{faultyStore: c.faulty}
				e := c.startEngine(o)
				run := c.beginRun("r")
				f := e.Follow(runtime.FollowRequest{Thread: "t"})
				defer f.Close()
				sleepVirtual(time.Second)
				o.isAway.Store(true)
				shown := 0
				for range int(tc.away / time.Second) {
					sleepVirtual(time.Second)
					events, err := f.ReadAvailable(t.Context())
					require.NoError(t, err)
					shown += len(events)
				}
				stored, err := c.store.Events(t.Context(), "t", 0, 0)
				require.NoError(t, err)
				require.LessOrEqual(t, shown, len(stored), "shown and not stored")
				_, err = e.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{}`}})
				require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
				back := time.Now()
				o.isAway.Store(false)
				r, err := e.WaitRun(t.Context(), "t", run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				require.Less(t, time.Since(back), 10*time.Second, "a server does not wait for its own lease")
				require.Len(t, times.spans, tc.runs)
				require.Len(t, last.spans, 1)
			})
		})
	}
}

// silentStore is a store that does not answer at all for a while.
type silentStore struct {
	checkpoint.Store

	isSilent atomic.Bool
}

func (s *silentStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if s.isSilent.Load() {
		<-ctx.Done()
		return checkpoint.Head{}, checkpoint.ErrUnavailable
	}
	return s.Store.Head(ctx, thread)
}

func TestCallsOnASilentStoreEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(chainSpec("g", channelsLog, "quick"))
		d := &silentStore{Store: c.store}
		e := c.startEngine(d)
		d.isSilent.Store(true)
		begun := time.Now()
		_, err := e.Start(t.Context(), runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g",
			Request: checkpoint.RunRequest{Input: `{}`},
		})
		require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
		require.LessOrEqual(t, time.Since(begun), 6*time.Second)
		_, err = e.Thread(t.Context(), "t")
		require.Equal(t, runtime.ReasonStoreUnavailable, errorReason(err))
	})
}

// TestUnknownOutcomeIsResolvedAtOnce loses the answer to a commit and lets another
// writer change the thread: it is unknown whether the commit was made, but the
// lease is still ours.
func TestUnknownOutcomeIsResolvedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times, last nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second), "last": last.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work", "last"))
		c.faulty.mode = faultUnansweredOvertaken
		e := c.startEngine(c.faulty)
		run := c.beginRun("r")
		c.faulty.failAt.Store(c.faulty.callCount.Load() + 1) // the commit of "work"
		began := time.Now()
		sleepVirtual(1500 * time.Millisecond)
		require.Greater(t, c.faulty.callCount.Load(), c.faulty.failAt.Load(), "no commit yet")
		r, err := e.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Less(t, time.Since(began), 6*time.Second, "waited for a lease of its own")
		require.Len(t, times.spans, 1)
		require.Len(t, last.spans, 1)
		c.describeHistory("t", "")
	})
}
