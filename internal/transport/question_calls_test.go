package transport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

func TestInterruptCalls(t *testing.T) {
	e := newFakeEngine()
	created := time.Unix(50, 0).UTC()
	e.interrupts = []checkpoint.Interrupt{{
		ID: "i1", Thread: "t1", Run: "run-1", Graph: "g", Namespace: "sub:t", Checkpoint: "c1", Node: "n", Task: "k",
		Scope: "s", Key: "key", Index: 2, Reason: "approval", Message: "m", Value: bigNumberText, Schema: "true",
		State: checkpoint.InterruptOpen, Created: created, Updated: created, Expires: created.Add(time.Hour),
		Expiry: checkpoint.ExpiryResumeDefault, Default: "null", Assignees: []string{"ann"}, Revision: 3,
	}, {ID: "i2", Node: "n", Reason: "approval", State: checkpoint.InterruptOpen, Created: created}}
	c := startServer(t, e)
	ctx := t.Context()

	got, err := c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: "t1", InterruptId: "i1"})
	require.NoError(t, err)
	require.Equal(t, bigNumberText, got.GetValue().GetJson())
	require.Equal(t, "null", got.GetDefaultResponse().GetJson())
	require.Nil(t, got.GetResponse())
	require.Equal(t, graphdv1.ExpiryAction_EXPIRY_ACTION_RESUME_DEFAULT, got.GetExpiryAction())
	require.Equal(t, []any{"i1", "t1", "run-1", "g", "n", "k", "s", "key", uint32(2), "approval", "m", "3"}, []any{
		got.GetInterruptId(), got.GetThreadId(), got.GetRunId(), got.GetGraph(), got.GetNode(), got.GetTaskId(),
		got.GetScope(), got.GetKey(), got.GetIndex(), got.GetReason(), got.GetMessage(), got.GetEtag(),
	})

	page, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{
		PageSize: 1, Filter: `assignee = "ann" AND node = n AND reason = approval AND run_id = run-1 AND graph = g AND thread_id = t1`,
	})
	require.NoError(t, err)
	require.Equal(t, "i1", page.GetInterrupts()[0].GetInterruptId())
	require.NotEmpty(t, page.GetNextPageToken())
	require.Equal(t, checkpoint.InterruptQuery{
		Tenant: tenant.Default, Thread: "t1", Run: "run-1", Tags: []string{checkpoint.UserTag("ann"), checkpoint.GraphTag("g")}, Limit: 2,
		States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	}, e.lastRequest(t))

	_, err = c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `state = "*"`})
	require.NoError(t, err)
	require.Equal(t, checkpoint.InterruptQuery{Tenant: tenant.Default, Limit: 51}, e.lastRequest(t))

	_, err = c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
		Interrupt:  &graphdv1.Interrupt{ThreadId: "t1", InterruptId: "i1", Etag: "3", Assignees: []string{"bob"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"assignees", "expire_time"}},
	})
	require.NoError(t, err)
	require.Equal(t, runtime.UpdateInterruptRequest{
		Question: runtime.Question{Thread: "t1", Interrupt: "i1"}, Etag: 3, Assignees: &[]string{"bob"}, Expires: &time.Time{},
	}, e.lastRequest(t))
}

// Which claims hold in a list is told by the clock of the store, as it ends them.
func TestListsOfClaimsFollowTheClockOfTheStore(t *testing.T) {
	e := newFakeEngine()
	e.ahead = 5 * time.Hour
	for id, left := range map[string]time.Duration{"ended": time.Hour, "holds": 6 * time.Hour} {
		e.interrupts = append(e.interrupts, checkpoint.Interrupt{
			ID: id, Thread: "t", Graph: "g", State: checkpoint.InterruptOpen, ClaimedBy: "ana", ClaimExpires: time.Now().Add(left),
		})
	}
	page, err := startServer(t, e).ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{Filter: `claimed_by = "ana"`})
	require.NoError(t, err)
	require.Len(t, page.GetInterrupts(), 1)
	require.Equal(t, "holds", page.GetInterrupts()[0].GetInterruptId())
}

func TestQuestionCalls(t *testing.T) {
	e := newFakeEngine()
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	e.interrupts = []checkpoint.Interrupt{{
		ID: "i1", Thread: "t1", ClaimedBy: "ana", ClaimExpires: at, Policy: &approval.Policy{Exclusive: true},
		Votes: []approval.Vote{{Voter: "ana", Entry: 3}}, Trail: trail.Log{Records: []string{"1", "2", "3"}},
	}}
	c := startServer(t, e)
	ctx := t.Context()
	name := runtime.Question{Thread: "t1", Interrupt: "i1"}

	claimed, err := c.ClaimInterrupt(ctx, &graphdv1.ClaimInterruptRequest{ThreadId: "t1", InterruptId: "i1"})
	require.NoError(t, err)
	require.Equal(t, runtime.ClaimRequest{Question: name, Duration: runtime.DefaultClaim}, e.lastRequest(t))
	require.Equal(t, "ana", claimed.GetClaimedBy())
	require.True(t, at.Equal(claimed.GetClaimExpireTime().AsTime()))
	require.True(t, claimed.GetPeople().GetExclusive())
	require.EqualValues(t, 3, claimed.GetTrailSize())
	require.EqualValues(t, 3, claimed.GetVotes()[0].GetTrail())
	_, err = c.ClaimInterrupt(ctx, &graphdv1.ClaimInterruptRequest{ThreadId: "t1", InterruptId: "i1", Duration: durationpb.New(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, runtime.ClaimRequest{Question: name, Duration: time.Hour}, e.lastRequest(t))
	for _, wrong := range []time.Duration{0, -time.Second, 25 * time.Hour} {
		_, err = c.ClaimInterrupt(ctx, &graphdv1.ClaimInterruptRequest{ThreadId: "t1", InterruptId: "i1", Duration: durationpb.New(wrong)})
		require.ErrorContains(t, err, "duration", "%v", wrong)
	}

	_, err = c.ReleaseInterrupt(ctx, &graphdv1.ReleaseInterruptRequest{ThreadId: "t1", InterruptId: "i1", Note: "not mine"})
	require.NoError(t, err)
	require.Equal(t, runtime.ReleaseRequest{Question: name, Note: "not mine"}, e.lastRequest(t))

	checked, err := c.CheckResponses(ctx, &graphdv1.CheckResponsesRequest{ThreadId: "t1", Responses: []*graphdv1.InterruptResponse{
		{InterruptId: "i1", Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload("1")}},
	}})
	require.NoError(t, err)
	require.Equal(t, runtime.ResumeRequest{Thread: "t1", Responses: []runtime.Response{{Interrupt: "i1", Value: "1"}}}, e.lastRequest(t))
	require.EqualValues(t, 2, checked.GetOutcomes()[0].GetMissingVotes())
	require.Equal(t, time.Minute, checked.GetOutcomes()[0].GetUndo().AsDuration())
	for _, list := range [][]*graphdv1.InterruptResponse{nil, {{InterruptId: "i1"}}, {{Outcome: &graphdv1.InterruptResponse_Value{Value: newJSONPayload("1")}}}} {
		_, err = c.CheckResponses(ctx, &graphdv1.CheckResponsesRequest{ThreadId: "t1", Responses: list})
		require.ErrorContains(t, err, "responses")
	}

	_, err = c.DelegateInterrupt(ctx, &graphdv1.DelegateInterruptRequest{ThreadId: "t1", InterruptId: "i1", To: "ben", Note: "on leave"})
	require.NoError(t, err)
	require.Equal(t, runtime.DelegateRequest{Question: name, To: "ben", Note: "on leave"}, e.lastRequest(t))
	_, err = c.DelegateInterrupt(ctx, &graphdv1.DelegateInterruptRequest{ThreadId: "t1", InterruptId: "i1"})
	require.ErrorContains(t, err, "to")

	revealed, err := c.RevealInterrupt(ctx, &graphdv1.RevealInterruptRequest{ThreadId: "t1", InterruptId: "i1", Pointers: []string{"/card"}, Note: "to check"})
	require.NoError(t, err)
	require.Equal(t, runtime.RevealRequest{Question: name, Pointers: []string{"/card"}, Note: "to check"}, e.lastRequest(t))
	require.JSONEq(t, `"4111"`, revealed.GetValue().GetJson())
	require.Nil(t, revealed.GetResponse())
	for _, wrong := range [][]string{strings.Split(strings.Repeat("/x,", 17), ","), {strings.Repeat("x", 5000)}} {
		_, err = c.RevealInterrupt(ctx, &graphdv1.RevealInterruptRequest{ThreadId: "t1", InterruptId: "i1", Pointers: wrong})
		require.ErrorContains(t, err, "pointers")
	}

	_, err = c.RetractResponse(ctx, &graphdv1.RetractResponseRequest{ThreadId: "t1", InterruptId: "i1", Note: "a slip"})
	require.NoError(t, err)
	require.Equal(t, runtime.RetractRequest{Question: name, Note: "a slip"}, e.lastRequest(t))

	comment, err := c.CommentInterrupt(ctx, &graphdv1.CommentInterruptRequest{ThreadId: "t1", InterruptId: "i1", Text: "why?", RequestId: "r1"})
	require.NoError(t, err)
	require.Equal(t, runtime.CommentRequest{Question: name, Text: "why?", RequestID: "r1"}, e.lastRequest(t))
	require.Equal(t, graphdv1.TrailKind_TRAIL_KIND_COMMENTED, comment.GetKind())
	require.Equal(t, "why?", comment.GetNote())
	for _, wrong := range []string{"", strings.Repeat("x", 5000)} {
		_, err = c.CommentInterrupt(ctx, &graphdv1.CommentInterruptRequest{ThreadId: "t1", InterruptId: "i1", Text: wrong})
		require.ErrorContains(t, err, "text", "%d bytes", len(wrong))
	}
}

// Every kind of entry has a name of its own.
func TestListTrail(t *testing.T) {
	e := newFakeEngine()
	kinds := []trail.Kind{
		trail.Asked, trail.Voted, trail.Answered, trail.Used, trail.Expired, trail.Cancelled, trail.Superseded, trail.Claimed,
		trail.Released, trail.Commented, trail.Changed, trail.Copied, trail.Reminded, trail.Escalated, trail.Retracted, trail.Delegated,
	}
	for n, kind := range kinds {
		e.trail = append(e.trail, trail.Entry{Number: n + 1, Kind: kind, Record: string(kind), From: "t0"})
	}
	c := startServer(t, e)
	var names []string
	for token := ""; ; {
		page, err := c.ListTrail(t.Context(), &graphdv1.ListTrailRequest{ThreadId: "t1", InterruptId: "i1", PageSize: 5, PageToken: token})
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.GetEntries()), 5)
		for _, entry := range page.GetEntries() {
			require.EqualValues(t, len(names)+1, entry.GetNumber())
			require.Equal(t, "TRAIL_KIND_"+strings.ToUpper(entry.GetRecord()), entry.GetKind().String())
			require.Equal(t, "t0", entry.GetFromThreadId())
			names = append(names, entry.GetRecord())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Len(t, names, len(kinds))
	require.Equal(t, runtime.Question{Thread: "t1", Interrupt: "i1"}, e.lastRequest(t))
}
