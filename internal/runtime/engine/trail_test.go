package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/trail"
)

// trail lists the entries of the only question, like "voted ana true".
func (c *voteCase) trail() []string {
	c.t.Helper()
	entries, err := c.engine.ListTrail(c.t.Context(), c.name())
	require.NoError(c.t, err)
	return describeTrail(entries)
}

func describeTrail(entries []trail.Entry) []string {
	var all []string
	for i := range entries {
		e := &entries[i]
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Principal, " ", e.Value, " ", e.Note)), " "))
	}
	return all
}

func (c *voteCase) name() runtime.Question {
	return runtime.Question{Thread: "t", Interrupt: c.question().ID}
}

func actor(name string) runtime.Actor {
	return runtime.Actor{Name: name, Groups: []string{"finance"}, How: "jwt", Method: "InterruptService/ClaimInterrupt"}
}

func (c *voteCase) claim(who string, d time.Duration) error {
	_, err := c.engine.ClaimInterrupt(c.t.Context(), runtime.ClaimRequest{Question: c.name(), Duration: d, By: actor(who)})
	return err
}

func (c *voteCase) release(who string) error {
	_, err := c.engine.ReleaseInterrupt(c.t.Context(), runtime.ReleaseRequest{Question: c.name(), Note: "not mine", By: actor(who)})
	return err
}

func (c *voteCase) comment(who, text, request string) (trail.Entry, error) {
	return c.engine.CommentInterrupt(c.t.Context(), runtime.CommentRequest{Question: c.name(), Text: text, RequestID: request, By: actor(who)})
}

func (c *voteCase) mustSay(text string) {
	c.t.Helper()
	s, err := c.say(c.engine, text)
	require.NoError(c.t, err)
	c.waitRun(s)
}

func TestTrailOfAnApproval(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2, Groups: []string{"finance"}})
	require.NoError(t, v.claim("ana", time.Hour))
	_, err := v.comment("ben", "why so much?", "")
	require.NoError(t, err)
	require.NoError(t, v.release("ana"))
	v.mustSay("ana/finance: 900")
	v.mustSay("ana/finance: 900")
	v.mustSay("ana/finance: 1240")
	_, err = v.say(v.engine, "eva: 5")
	require.Error(t, err)
	v.mustSay("ben/finance: 1240")
	require.Equal(t, []string{
		"asked", "claimed ana", "commented ben why so much?", "released ana not mine", "voted ana 900", "voted ana 1240", "voted ben 1240",
		"answered ben 1240", "used",
	}, v.trail())
	q := v.question()
	entries, err := q.Trail.Entries()
	require.NoError(t, err)
	require.Equal(t, q.ShownDigest, entries[0].Seen)
	require.Equal(t, "2 of members of finance", entries[0].Policy)
	require.Equal(t, "jwt", entries[4].How)
	for i := range entries[1:] {
		require.False(t, entries[i+1].Time.Before(entries[i].Time), "entry %d", i+2)
	}
	events, err := v.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	for _, event := range events {
		for _, shown := range event.Interrupts {
			require.Empty(t, shown.Trail.Records, "it is in the record")
		}
	}
}

// damageTrail changes one byte of an entry in the store.
func (c *voteCase) damageTrail(number int) {
	c.t.Helper()
	guard, ok := c.store.(guardedMemory)
	require.True(c.t, ok)
	head, err := guard.Head(c.t.Context(), "t")
	require.NoError(c.t, err)
	q := c.question()
	q.Trail.Records = slices.Clone(q.Trail.Records)
	before, kind, ok := strings.Cut(q.Trail.Records[number-1], `"kind":"`)
	require.True(c.t, ok)
	q.Trail.Records[number-1] = before + `"kind":"X` + kind[1:]
	_, err = guard.Store.Apply(c.t.Context(), &checkpoint.Change{Thread: "t", Expect: head.Revision, Head: head, Interrupts: []checkpoint.Interrupt{q}})
	require.NoError(c.t, err)
}

// A trail that was changed in the store is not shown, and the error names the entry.
func TestADamagedTrailIsRefused(t *testing.T) {
	for number := range 3 {
		v := newVoteCase(t, &approval.Policy{Approvals: 2})
		require.NoError(t, v.claim("ana", time.Hour))
		_, err := v.comment("ben", "why?", "r1")
		require.NoError(t, err)
		require.Len(t, v.trail(), 3)
		v.damageTrail(number + 1)
		_, err = v.engine.ListTrail(t.Context(), v.name())
		require.Equal(t, runtime.ReasonCheckpointCorrupt, errorReason(err))
		require.ErrorContains(t, err, fmt.Sprintf("question %q: entry %d of the trail was changed", v.question().ID, number+1))
		_, err = v.comment("ben", "why?", "r1")
		require.Equal(t, runtime.ReasonCheckpointCorrupt, errorReason(err), "what it has said can't be known")
	}
}

func TestTrailOfAQuestionForEverybody(t *testing.T) {
	v := newVoteCase(t, nil)
	require.Equal(t, []string{"asked"}, v.trail())
	require.Empty(t, v.question().Trail.Records, "the record says it")
	v.mustSay("ana: true")
	require.Equal(t, []string{"asked", "answered ana true", "used"}, v.trail())
	require.Empty(t, v.question().Trail.Records)
}

func TestACommentStartsATrail(t *testing.T) {
	v := newVoteCase(t, nil)
	first, err := v.comment("ana", "please wait", "r1")
	require.NoError(t, err)
	require.Equal(t, 2, first.Number)
	again, err := v.comment("ana", "please wait", "r1")
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = v.comment("ana", "something else", "r1")
	require.Equal(t, runtime.ReasonRequestIDConflict, errorReason(err), "%v", err)
	v.mustSay("ben: true")
	require.Equal(t, []string{"asked", "commented ana please wait", "answered ben true", "used"}, v.trail())
	_, err = v.comment("ana", "too late", "")
	require.Equal(t, runtime.ReasonInterruptAlreadyResolved, errorReason(err), "%v", err)
}

// A trail that is full takes no comments and no changed votes. It keeps no caller from claiming
// the question, or from answering it.
func TestTrailIsBounded(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2, Exclusive: true})
	long := strings.Repeat("x", 4000)
	var err error
	for n := 0; err == nil && n < 100; n++ {
		_, err = v.comment("ana", long, "")
	}
	require.Equal(t, runtime.ReasonTrailFull, errorReason(err), "%v", err)
	for range 100 {
		require.NoError(t, v.claim("eva", time.Hour))
		require.NoError(t, v.release("eva"))
	}
	q := v.question()
	require.Less(t, q.Trail.Size(), trail.MaxBytes+1)

	err = nil
	votes := 0
	for ; err == nil && votes < 100; votes++ {
		require.NoError(t, v.claim("ana", time.Hour))
		_, err = v.say(v.engine, "ana: "+fmt.Sprint(votes))
	}
	require.Equal(t, runtime.ReasonTrailFull, errorReason(err), "%v", err)
	require.Equal(t, 21, votes)
	value := v.question().Votes[0].Value
	require.NoError(t, v.release("ana"))
	require.NoError(t, v.claim("ben", time.Hour))
	v.mustSay("ben: " + string(value))
	require.Equal(t, "used", v.trail()[len(v.trail())-1], "a first vote is never refused for it")
}

func TestClaims(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) { checkClaims(t, open()) })
	}
}

func checkClaims(t *testing.T, store checkpoint.Store) {
	t.Helper()
	v := newStoredVoteCase(t, store, &approval.Policy{Groups: []string{"finance"}})
	require.NoError(t, v.release("ben"), "nobody holds a claim")
	require.NoError(t, v.claim("ana", time.Hour))
	require.NoError(t, v.claim("ana", 2*time.Hour), "the holder extends it")
	err := v.claim("ben", time.Hour)
	require.Equal(t, runtime.ReasonInterruptClaimed, errorReason(err), "%v", err)
	require.Equal(t, "ana", errorMeta(err, "claimedBy"))
	require.NotEmpty(t, errorMeta(err, "claimExpireTime"))
	require.Equal(t, runtime.ReasonInterruptClaimed, errorReason(v.release("ben")))

	_, err = v.engine.ClaimInterrupt(t.Context(), runtime.ClaimRequest{Question: v.name(), Duration: time.Hour, By: runtime.Actor{Name: "eva"}})
	require.Equal(t, approval.RuleGroup, errorMeta(err, "rule"), "%v", err)
	_, err = v.engine.ClaimInterrupt(t.Context(), runtime.ClaimRequest{Question: v.name(), Duration: time.Hour})
	require.Equal(t, approval.RuleCallers, errorMeta(err, "rule"), "%v", err)

	require.NoError(t, v.release("ana"))
	require.Empty(t, v.question().ClaimedBy)
	require.NoError(t, v.claim("ben", time.Millisecond))
	require.Eventually(t, func() bool { return v.claim("ana", time.Hour) == nil }, time.Minute, time.Millisecond, "a claim ends by itself")
	v.mustSay("ben/finance: true")
	require.Equal(t, []string{"asked", "claimed ana", "released ana not mine", "claimed ben", "claimed ana", "voted ben true", "answered ben true", "used"}, v.trail(),
		"a claim refuses no answer")
}

func TestExclusiveQuestions(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) { checkExclusiveQuestions(t, open()) })
	}
}

func checkExclusiveQuestions(t *testing.T, store checkpoint.Store) {
	t.Helper()
	v := newStoredVoteCase(t, store, &approval.Policy{Exclusive: true, Approvals: 2})
	_, err := v.say(v.engine, "ana: true")
	require.Equal(t, approval.RuleExclusive, errorMeta(err, "rule"), "%v", err)
	require.NoError(t, v.claim("ana", time.Hour))
	_, err = v.say(v.engine, "ben: true")
	require.Equal(t, runtime.ReasonInterruptClaimed, errorReason(err), "%v", err)
	v.mustSay("ana: true")
	require.Empty(t, v.question().ClaimedBy, "her vote has ended it")
	v.mustSay("ana: true")
	require.NoError(t, v.claim("ben", time.Hour))
	v.mustSay("ben: true")
	require.Equal(t, []string{"asked", "claimed ana", "voted ana true", "claimed ben", "voted ben true", "answered ben true", "used"}, v.trail())
}

func TestAChangeIsInTheTrail(t *testing.T) {
	v := newVoteCase(t, nil)
	until := time.Now().Add(time.Hour)
	_, err := v.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{
		Question: v.name(), Assignees: &[]string{"ana", "ben"}, Expires: &until, By: actor("eva"),
	})
	require.NoError(t, err)
	q := v.question()
	entries, err := q.Trail.Entries()
	require.NoError(t, err)
	require.Equal(t, []string{"ana", "ben"}, entries[1].Assignees)
	require.WithinDuration(t, until, entries[1].Until, 0)
	require.Equal(t, "eva", entries[1].Principal)
	require.Equal(t, []string{"assignees", "expire_time"}, entries[1].Fields)
}

func TestAnOperatorEndsAClaim(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Exclusive: true})
	require.NoError(t, v.claim("ana", 24*time.Hour))
	_, err := v.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{Question: v.name(), EndsClaim: true, By: actor("eva")})
	require.NoError(t, err)
	require.NoError(t, v.claim("ben", time.Hour))
	require.Equal(t, []string{"asked", "claimed ana", "changed eva", "claimed ben"}, v.trail())
}

// A question whose time is over takes neither claims nor comments, though it is not processed
// yet; and a breakpoint asks nothing.
func TestWhatCantBeAnsweredIsNotClaimed(t *testing.T) {
	v := newVoteCase(t, nil)
	v.engine.Close()
	past := time.Now().Add(-time.Second)
	q := v.question()
	q.Expires = past
	head, err := v.store.Head(t.Context(), "t")
	require.NoError(t, err)
	head.Due = time.Time{}
	_, err = v.store.Apply(t.Context(), &checkpoint.Change{Thread: "t", Expect: head.Revision, Head: head, Interrupts: []checkpoint.Interrupt{q}})
	require.NoError(t, err)
	v.startEngine()
	require.Equal(t, runtime.ReasonInterruptExpired, errorReason(v.claim("ana", time.Hour)))
	_, err = v.comment("ana", "late", "")
	require.Equal(t, runtime.ReasonInterruptExpired, errorReason(err))
}

func TestTheEndOfARunIsInTheTrail(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2})
	v.mustSay("ana: true")
	_, err := v.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t", By: actor("eva")})
	require.NoError(t, err)
	require.Equal(t, []string{"asked", "voted ana true", "cancelled"}, v.trail())

	// The thread goes on, and asks the same question once more.
	s, err := v.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", By: actor("eva")})
	require.NoError(t, err)
	v.waitRun(s)
	require.Equal(t, []string{"asked", "voted ana true", "cancelled", "asked"}, v.trail())
	require.Empty(t, v.question().Votes)
	v.mustSay("ana: true")
	v.mustSay("ben: true")
	require.Equal(t, "used", v.trail()[len(v.trail())-1])
}

// A question without people keeps a trail once it is asked again: its entries would get the
// numbers of others.
func TestAQuestionThatIsAskedAgainKeepsItsTrail(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"pay": func(context.Context, *nodeCall) pregel.Result {
		return pregel.Result{Asks: []pregel.Ask{{Value: `"pay?"`}}}
	}}, chainSpec("g", channelsLog, "pay"))
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{}`).State)
	require.Equal(t, checkpoint.RunInterrupted, w.beginAndWait(runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen}).State)
	question := runtime.Question{Thread: "t", Interrupt: w.readState("t").Interrupts[0].ID}
	entries, err := w.engine.ListTrail(t.Context(), question)
	require.NoError(t, err)
	var kinds []trail.Kind
	for i := range entries {
		kinds = append(kinds, entries[i].Kind)
	}
	require.Equal(t, []trail.Kind{trail.Asked, trail.Superseded, trail.Asked}, kinds)
}

func TestACopyTakesTheTrailAlong(t *testing.T) {
	for name, open := range listStores(t) {
		t.Run(name, func(t *testing.T) { checkCopyOfVotes(t, open()) })
	}
}

// checkCopyOfVotes copies a thread with a vote, and decides the copy apart from it.
func checkCopyOfVotes(t *testing.T, store checkpoint.Store) {
	t.Helper()
	v := newStoredVoteCase(t, store, &approval.Policy{Approvals: 2})
	v.mustSay("ana: true")
	_, err := v.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "copy", By: actor("eva")})
	require.NoError(t, err)
	require.Equal(t, []string{"asked", "voted ana true"}, v.trail())
	copied, err := v.engine.ListTrail(t.Context(), runtime.Question{Thread: "copy", Interrupt: v.question().ID})
	require.NoError(t, err)
	require.Len(t, copied, 3)
	require.Equal(t, trail.Copied, copied[2].Kind)
	require.Equal(t, "t", copied[2].From)

	s, err := v.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "copy", By: actor("ben"), Single: &runtime.Response{Value: "true"}})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, v.waitRun(s).State, "the vote of ana counts in the copy")
	require.Equal(t, checkpoint.InterruptOpen, v.question().State)
	require.Equal(t, "ana:true", v.votes())
	v.mustSay("dora: true")
	require.Equal(t, []string{"asked", "voted ana true", "voted dora true", "answered dora true", "used"}, v.trail())
	require.Equal(t, []string{"true", "true"}, *v.payments)
}

// Claims and votes from all sides leave a trail that is whole.
func TestTrailUnderRaces(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 5})
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			who := fmt.Sprint("p", i)
			for range 5 {
				_ = v.claim(who, time.Millisecond)
				_, err := v.comment(who, "hm", "")
				if err != nil && errorReason(err) != runtime.ReasonInterruptAlreadyResolved {
					t.Error(err)
				}
			}
			if _, err := v.say(v.engine, who+": true"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return v.question().State == checkpoint.InterruptConsumed }, time.Minute, time.Millisecond)
	votes := 0
	for _, line := range v.trail() {
		if strings.HasPrefix(line, "voted") {
			votes++
		}
	}
	require.Equal(t, 5, votes)
}

// The answer of a question stays in its trail when the node asks something else.
func TestTrailWhenTheNodeAsksAgain(t *testing.T) {
	for name, policy := range map[string]*approval.Policy{"two": {Approvals: 2}, "everybody": nil} {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int64
			v := newVoteCaseOn(t, func(_ context.Context, c *nodeCall) pregel.Result {
				q := pregel.Ask{Value: payload.JSON(fmt.Sprint(attempts.Add(1))), Policy: policy, Drift: checkpoint.DriftAskAgain}
				q.SetDriftDefaults(c.Graph.Spec)
				return pregel.Result{Asks: []pregel.Ask{q}}
			})
			first := v.name()
			v.mustSay("ana: true")
			want := []string{"asked", "answered ana true", "superseded"}
			if policy != nil {
				v.mustSay("ben: true")
				want = []string{"asked", "voted ana true", "voted ben true", "answered ben true", "superseded"}
			}
			entries, err := v.engine.ListTrail(t.Context(), first)
			require.NoError(t, err)
			require.Equal(t, want, describeTrail(entries))
			next := v.openQuestion()
			require.NotEqual(t, first.Interrupt, next.ID)
			require.Empty(t, next.Votes, "votes stay with what was shown")
		})
	}
}

// A question that is dropped and asked once more keeps what happened before.
func TestTrailWhenQuestionsAreDropped(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2})
	v.mustSay("ana: true")
	s, err := v.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Open: runtime.DiscardOpen, By: actor("eva")})
	require.NoError(t, err)
	v.waitRun(s)
	require.Equal(t, []string{"asked", "voted ana true", "superseded", "asked"}, v.trail())
}

// A checkpoint at which people have voted is copied before it is run again.
func TestTrailWhenACheckpointIsRunAgain(t *testing.T) {
	v := newVoteCase(t, &approval.Policy{Approvals: 2})
	v.mustSay("dora: true")
	_, err := v.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t", Thread: "fork", By: actor("eva")})
	require.NoError(t, err)
	again := func(from string) {
		t.Helper()
		s, err := v.engine.Start(t.Context(), runtime.StartRequest{
			Thread: "fork", Open: runtime.DiscardOpen, By: actor("eva"), Request: checkpoint.RunRequest{From: from},
		})
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunInterrupted, v.waitRun(s).State)
	}
	again("")
	forked, err := v.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "fork"})
	require.NoError(t, err)
	require.Len(t, forked, 1)
	require.Empty(t, forked[0].Votes, "a fork takes no votes along")
	_, err = v.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "fork", By: actor("ana"), Single: &runtime.Response{Value: "true"}})
	require.NoError(t, err)
	head, err := v.store.Head(t.Context(), "fork")
	require.NoError(t, err)
	again(head.Checkpoint)
	all, err := v.engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{Thread: "fork"})
	require.NoError(t, err)
	require.Len(t, all, 2)
	entries, err := v.engine.ListTrail(t.Context(), runtime.Question{Thread: "fork", Interrupt: all[0].ID})
	require.NoError(t, err)
	require.Equal(t, []string{"asked", "voted ana true", "superseded"}, describeTrail(entries))
}

// A breakpoint that is hit again keeps what was done with it.
func TestTrailOfABreakpoint(t *testing.T) {
	w := newFixture(t, map[string]nodeFunc{"a": func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"a"`) }}, chainSpec("g", channelsLog, "a"))
	run := w.beginAndWait(runtime.StartRequest{
		Thread: "t", CreateThread: true, Graph: "g", Request: checkpoint.RunRequest{Input: "{}", InterruptBefore: []string{"a"}},
	})
	require.Equal(t, checkpoint.RunInterrupted, run.State)
	v := &voteCase{fixture: w}
	_, err := w.engine.UpdateInterrupt(t.Context(), runtime.UpdateInterruptRequest{Question: v.name(), Assignees: &[]string{"ana"}, By: actor("eva")})
	require.NoError(t, err)
	require.Equal(t, runtime.ReasonInvalidField, errorReason(v.claim("ana", time.Hour)))
	_, err = v.comment("ana", "hm", "")
	require.Equal(t, runtime.ReasonInvalidField, errorReason(err))
	_, err = w.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: "t"})
	require.NoError(t, err)
	s, err := w.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Request: checkpoint.RunRequest{InterruptBefore: []string{"a"}}})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunInterrupted, w.waitRun(s).State)
	require.Equal(t, []string{"asked", "changed eva", "cancelled", "asked"}, v.trail())
	s, err = w.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t"})
	require.NoError(t, err)
	require.Equal(t, checkpoint.RunSucceeded, w.waitRun(s).State)
	require.Equal(t, []string{"asked", "changed eva", "cancelled", "asked", "used"}, v.trail(), "nobody answers a breakpoint")
}

// An answer of a caller who is not known has one time in the trail.
func TestTrailOfAnAnswerByNobody(t *testing.T) {
	v := newVoteCase(t, nil)
	_, err := v.comment("ana", "hm", "")
	require.NoError(t, err)
	v.mustSay(": true")
	require.Equal(t, []string{"asked", "commented ana hm", "answered true", "used"}, v.trail())
}

// An answer is used once, though its task ends before another of its superstep.
func TestAnAnswerIsUsedOnceBesideASlowTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.store = guardTrails(t, c.store)
		slow := func(ctx context.Context, _ *nodeCall) pregel.Result {
			_ = workFor(ctx, time.Minute)
			return logUpdate(`"slow"`)
		}
		c.nodes.funcs = map[string]nodeFunc{
			"ask": func(_ context.Context, n *nodeCall) pregel.Result {
				return logUpdate(n.askPeople(`"?"`, &approval.Policy{}))
			},
			"slow": slow, "join": updateNode(`{"n":1}`),
		}
		c.compileGraphs(parallelSpec("g", "ask", "slow"))
		c.startEngine(c.store)
		c.beginRun("r")
		sleepVirtual(time.Second)
		q := c.listOpen("t")[0]
		require.NoError(t, c.answerInterrupt("t", q.ID, `1`, runtime.CoverPartial))
		sleepVirtual(2 * time.Minute)
		done, err := c.engine.Interrupt(t.Context(), "t", q.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.InterruptConsumed, done.State)
		require.Equal(t, q.Revision+2, done.Revision, "answered, used")
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", "").State)
	})
}
