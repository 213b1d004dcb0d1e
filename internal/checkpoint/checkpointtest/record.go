package checkpointtest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/trail"
)

func recordCases() []testCase {
	return []testCase{
		{"what is missing is not found", recordMissing},
		{"a run is read as it was put, its revision grows", recordRun},
		{"runs are listed newest first, in pages", recordRuns},
		{"a question is read as it was put, its numbers grow", recordQuestion},
		{"a request is remembered", recordRequest},
		{"threads do not share ids", recordApart},
	}
}

// newInterrupt returns an open interrupt of a thread.
func newInterrupt(thread, id, at string) checkpoint.Interrupt {
	return checkpoint.Interrupt{
		ID: id, Thread: thread, Run: "r", Graph: "g", Checkpoint: at, Node: "ask", Task: "t", Reason: "approval",
		Value: `{"amount": 9007199254740993}`, State: checkpoint.InterruptOpen, Created: testDay(1), Updated: testDay(1),
	}
}

func recordMissing(e *env) {
	e.newThread("t").applyEdits()
	for _, thread := range []string{"t", "nobody"} {
		_, err := e.store.Run(e.ctx, thread, "x")
		require.ErrorIs(e, err, checkpoint.ErrRunNotFound)
		_, err = e.store.Interrupt(e.ctx, thread, "x")
		require.ErrorIs(e, err, checkpoint.ErrInterruptNotFound)
		_, err = e.store.Request(e.ctx, thread, "x")
		require.ErrorIs(e, err, checkpoint.ErrRequestNotFound)
		runs, err := e.store.Runs(e.ctx, thread, 0, 0)
		require.NoError(e, err)
		require.Empty(e, runs)
	}
}

func recordRun(e *env) {
	th := e.newThread("t")
	run := checkpoint.Run{
		ID: "r", Thread: "t", Graph: "g", Version: "v", State: checkpoint.RunFailed,
		Failure:  &checkpoint.Failure{Reason: "X", Details: map[string]string{"a": "b"}},
		Metadata: map[string]string{"k": "v"}, StartedBy: "ana", Created: testDay(1), Updated: testDay(2), Order: 3, Deadline: testDay(4), Begins: testDay(3),
		Request: checkpoint.RunRequest{
			Input: `{"n": 1.0}`, From: "c", FromNamespace: "a:1", Update: "null",
			Goto: []checkpoint.Send{{Node: "n", Input: "1"}, {Node: "m"}}, Context: "{}",
			InterruptBefore: []string{"*"}, InterruptAfter: []string{"a", "b"}, StepLimit: 25, Timeout: time.Minute,
			Delay: 48 * time.Hour, Expected: "c", DiscardOpen: true, OnDisconnect: "cancel",
		},
		Base: "c", MaxStep: 9, Output: `{"x": null}`, FirstEvent: 1, LastEvent: 7, Revision: 99,
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{run} })
	got, err := e.store.Run(e.ctx, "t", "r")
	require.NoError(e, err)
	run.Revision = 1
	require.Equal(e, run, got, "the store counts revisions, whatever is given")

	run.State, run.Output = checkpoint.RunSucceeded, ""
	th.applyEdits(func(c *checkpoint.Change) { c.Runs = []checkpoint.Run{run} })
	th.applyEdits()
	got, err = e.store.Run(e.ctx, "t", "r")
	require.NoError(e, err)
	run.Revision = 2
	require.Equal(e, run, got)
}

func recordRuns(e *env) {
	th := e.newThread("t")
	put := func(ids ...string) {
		th.applyEdits(func(c *checkpoint.Change) {
			for _, id := range ids {
				c.Runs = append(c.Runs, checkpoint.Run{ID: id, Thread: "t", Order: uint64(id[0] - 'a' + 1)})
			}
		})
	}
	put("c", "a")
	put("b", "e")
	put("d", "c")
	for _, c := range []struct {
		before uint64
		limit  int
		want   string
	}{{0, 0, "edcba"}, {0, 2, "ed"}, {4, 2, "cb"}, {2, 2, "a"}, {1, 0, ""}, {99, 0, "edcba"}} {
		runs, err := e.store.Runs(e.ctx, "t", c.before, c.limit)
		require.NoError(e, err)
		var got strings.Builder
		for i := range runs {
			got.WriteString(runs[i].ID)
		}
		require.Equal(e, c.want, got.String(), "%+v", c)
	}
}

func recordQuestion(e *env) {
	th := e.newThread("t")
	q := checkpoint.Interrupt{
		ID: "q", Thread: "t", Run: "r", Graph: "g", Namespace: "a:1", Checkpoint: "c", Node: "n", Task: "x",
		Scope: "s", Key: "k", Index: 2, Reason: "approval", Message: "Ünïcode?\n", Value: `{"b": 1.0}`,
		Schema: `{"type": "object"}`, State: checkpoint.InterruptOpen, Created: testDay(1), Updated: testDay(2), Expires: testDay(3),
		Expiry: checkpoint.ExpiryResumeDefault, Default: "null", Assignees: []string{"a", "b"}, Change: 99, Revision: 99,
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{q} })
	first, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.EqualValues(e, 1, first.Revision)
	require.NotZero(e, first.Change)
	q.Change, q.Revision = first.Change, first.Revision
	require.Equal(e, q, first)

	q.State, q.Response, q.Note, q.Responder, q.Request = checkpoint.InterruptAnswered, "null", "why", "me", "req"
	q.ResponderHow, q.ResponseMethod, q.ResponseTime = "api key", "GraphService/Resume", testDay(2)
	q.Policy = &approval.Policy{
		Users: []string{"ana"}, Groups: []string{"finance", "ops"}, Approvals: 2, Vetoes: 3, Agree: "answer != 'no'", NotRequester: true, Requester: "eva", Exclusive: true,
		NotContributor: true, Delegable: true, RevealUsers: []string{"dora"}, RevealGroups: []string{"audit"},
	}
	q.Votes = []approval.Vote{
		{Voter: "ana", How: "jwt", Method: "GraphService/Resume", Time: testDay(2), Agrees: true, Value: `{"b": 1.0}`, Note: "ünïcode", Request: "req", Entry: 2},
		{Voter: "ben", Time: testDay(3)},
	}
	q.Secret = []string{"/b", "/c~1d"}
	q.Hidden = checkpoint.Hidden{Value: newSecretParts("9007199254740993"), Default: newSecretParts(`" \u00e9"`), Response: newSecretParts("1.0", "1E+2")}
	q.Votes[0].Hidden = newSecretParts("null")
	q.ClaimedBy, q.ClaimExpires = "ana", testDay(4)
	q.Undo, q.Effective, q.NeedsAllAnswers = time.Minute, testDay(5), true
	q.Changes = &checkpoint.PropertyChanges{
		AddedUsers: []string{"eva"}, AddedGroups: []string{"board"}, Delegations: []approval.Delegation{{From: "ana", To: "dora"}},
		Former: []string{checkpoint.PriorityTag(approval.Urgent), checkpoint.UserTag("ünï")},
	}
	q.Priority, q.NextStep = approval.Low, 1
	q.Steps = []approval.Step{
		{After: time.Hour, Groups: []string{"finance"}}, {After: 2 * time.Hour, Escalates: true, Users: []string{"eva"}, Priority: approval.Urgent},
	}
	q.AppendTrail(trail.Entry{Time: testDay(3), Kind: trail.Commented, Principal: "ben", Note: "ünïcode"})
	th.applyEdits(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{q, newInterrupt("t", "q2", "c")} })
	second, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.EqualValues(e, 2, second.Revision)
	require.Greater(e, second.Change, first.Change)
	other, err := e.store.Interrupt(e.ctx, "t", "q2")
	require.NoError(e, err)
	require.Greater(e, other.Change, second.Change, "every question of a change has its own number")
	q.Change, q.Revision = second.Change, second.Revision
	require.Equal(e, q, second)

	q.Response, q.Dismissed = "", true
	th.applyEdits(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{q} })
	third, err := e.store.Interrupt(e.ctx, "t", "q")
	require.NoError(e, err)
	require.Empty(e, third.Response, "no answer differs from null")
	require.True(e, third.Dismissed)
	require.Greater(e, third.Change, other.Change)
}

// newSecretParts returns parts with some values at one pointer.
func newSecretParts(values ...payload.JSON) redact.Parts {
	var b redact.Builder
	for _, value := range values {
		b.Add("/b", value)
	}
	return b.Parts()
}

func recordRequest(e *env) {
	th := e.newThread("t")
	want := checkpoint.Request{ID: "id", Digest: "d", Run: "r", Event: 7, Created: testDay(1)}
	th.applyEdits(func(c *checkpoint.Change) { c.Request = &want })
	th.applyEdits()
	got, err := e.store.Request(e.ctx, "t", "id")
	require.NoError(e, err)
	require.Equal(e, want, got)
	second := checkpoint.Request{ID: "id", Digest: "d2", Created: testDay(2)}
	th.applyEdits(func(c *checkpoint.Change) { c.Request = &second })
	got, err = e.store.Request(e.ctx, "t", "id")
	require.NoError(e, err)
	require.Equal(e, second, got)
}

func recordApart(e *env) {
	names := []string{"t", "T", "t ", "t/", "t%"}
	for i, id := range names {
		e.newThread(id).applyEdits(fullChange("r"), func(c *checkpoint.Change) { c.Runs[0].MaxStep = i })
	}
	for i, id := range names {
		run, err := e.store.Run(e.ctx, id, "run")
		require.NoError(e, err)
		require.Equal(e, i, run.MaxStep)
		in, err := e.store.Interrupt(e.ctx, id, "q")
		require.NoError(e, err)
		require.Equal(e, id, in.Thread)
		p, err := e.store.Pending(e.ctx, id, checkpointID(1))
		require.NoError(e, err)
		require.Len(e, p.Tasks, 1)
		require.Len(e, p.Interrupts, 1)
	}
}
