package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

const policiesGraph = `graph: policies
channels: {kind: {}, answer: {}}
nodes:
  free:
    ask: {message: "'ok?'", update: {answer: answer}}
  group:
    ask: {message: "'ok?'", people: {groups: [finance]}, update: {answer: answer}}
  delegable:
    ask: {message: "'ok?'", people: {groups: [finance], approvals: 2, delegable: true}, update: {answer: answer}}
  requester:
    ask: {message: "'ok?'", people: {not_requester: true}, update: {answer: answer}}
  exclusive:
    ask: {message: "'ok?'", people: {exclusive: true}, update: {answer: answer}}
  secret:
    ask: {message: "'ok?'", value: {pin: "'1'"}, secret: [/pin], people: {groups: [finance], reveal: {users: [carl]}}, update: {answer: answer}}
  undo:
    ask: {message: "'ok?'", undo: 1h, people: {groups: [finance]}, update: {answer: answer}}
  first:
    ask: {message: "'ok?'", update: {answer: answer}}
  edited:
    ask: {message: "'ok?'", people: {not_contributor: true}, update: {answer: answer}}
  stop:
    expr: {update: {answer: "1"}}
interrupt_before: [stop]
conditional_edges:
- {from: __start__, expr: state.kind, then: [free, group, delegable, requester, exclusive, secret, undo, first, stop]}
edges:
- {from: first, to: edited}
- {from: free, to: __end__}
- {from: group, to: __end__}
- {from: delegable, to: __end__}
- {from: requester, to: __end__}
- {from: exclusive, to: __end__}
- {from: secret, to: __end__}
- {from: undo, to: __end__}
- {from: edited, to: __end__}
- {from: stop, to: __end__}
`

// allowedCase is a server with questions of many policies, and callers with several roles.
type allowedCase struct {
	*peopleServer

	interrupts graphdv1.InterruptServiceClient
	runs       graphdv1.GraphServiceClient
	asked      int
	tried      int
}

func startAllowedCase(t *testing.T) *allowedCase {
	t.Helper()
	dir := t.TempDir()
	keys, links := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "links")
	require.NoError(t, os.WriteFile(links, []byte("k1: "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))+"\n"), 0o400))
	tokens := map[string]string{}
	for _, key := range []apikey.Key{
		{Name: "eva", Groups: []string{"finance"}, Roles: []string{"admin"}}, // who starts the runs
		{Name: "ana", Groups: []string{"finance"}, Roles: []string{"answerer"}},
		{Name: "ben", Groups: []string{"finance"}, Roles: []string{"operator", "answerer"}},
		{Name: "carl", Roles: []string{"answerer", "starter"}},
		{Name: "vic", Groups: []string{"finance"}, Roles: []string{"viewer"}},
	} {
		_, token, err := apikey.Create(t.Context(), keys, key, time.Now())
		require.NoError(t, err)
		tokens[key.Name] = token
	}
	s := dialPeopleServer(t, startServerWith(t, server.Options{
		Store: "memory", CallerOptions: server.CallerOptions{APIKeys: keys},
		LinkOptions: server.LinkOptions{LinkKeys: links, LinksURL: "https://answer.example/", MaxLinkValid: 4 * 24 * time.Hour},
	}), tokens)
	s.putGraph(t, policiesGraph)
	return &allowedCase{s, graphdv1.NewInterruptServiceClient(s.conn), graphdv1.NewGraphServiceClient(s.conn), 0, 0}
}

// askOne starts a run of eva in a thread of its own, and returns its question.
func (c *allowedCase) askOne(t *testing.T, kind string) *graphdv1.Interrupt {
	t.Helper()
	c.asked++
	thread := fmt.Sprintf("%s-%d", kind, c.asked)
	start := kind
	if kind == "edited" {
		start = "first"
	}
	run, err := c.runs.StartRun(c.as(t, "eva"), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: "policies", Start: &graphdv1.RunSpec_Input{Input: jsonPayload(fmt.Sprintf(`{"kind": %q}`, start))},
	}})
	require.NoError(t, err)
	wait := func() *graphdv1.Interrupt {
		_, err = c.runs.WaitRun(c.as(t, "eva"), &graphdv1.WaitRunRequest{ThreadId: thread, RunId: run.GetRunId()})
		require.NoError(t, err)
		found, err := c.interrupts.ListInterrupts(c.as(t, "eva"), &graphdv1.ListInterruptsRequest{ThreadId: thread})
		require.NoError(t, err)
		require.Len(t, found.GetInterrupts(), 1)
		return found.GetInterrupts()[0]
	}
	q := wait()
	if kind != "edited" {
		return q
	}
	_, err = c.runs.ResumeRun(c.as(t, "ben"), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: thread, Responses: []*graphdv1.InterruptResponse{{InterruptId: q.GetInterruptId(), Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`1`)}}},
		Update: jsonPayload(`{"answer": 2}`),
	}})
	require.NoError(t, err)
	return wait()
}

// read returns a question as a caller sees it.
func (c *allowedCase) read(t *testing.T, caller string, q *graphdv1.Interrupt) *graphdv1.Interrupt {
	t.Helper()
	now, err := c.interrupts.GetInterrupt(c.as(t, caller), &graphdv1.GetInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.NoError(t, err)
	return now
}

// waitUntilSettled waits until a run works with no answer. While an answer can be taken back the run
// waits as well.
func (c *allowedCase) waitUntilSettled(t *testing.T, q *graphdv1.Interrupt) {
	t.Helper()
	if now := c.read(t, "eva", q); now.GetEffectiveTime() == nil && now.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		_, err := c.runs.WaitRun(c.as(t, "eva"), &graphdv1.WaitRunRequest{ThreadId: q.GetThreadId(), RunId: q.GetRunId()})
		require.NoError(t, err)
	}
}

// attempt does something with a question, and returns the error.
func (c *allowedCase) attempt(t *testing.T, caller string, action graphdv1.InterruptAction, q *graphdv1.Interrupt) (err error) {
	t.Helper()
	c.tried++
	ctx, thread, id := c.as(t, caller), q.GetThreadId(), q.GetInterruptId()
	update := func(path string, change *graphdv1.Interrupt) error {
		change.ThreadId, change.InterruptId = thread, id
		_, err := c.interrupts.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{Interrupt: change, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}})
		return err
	}
	switch action {
	case graphdv1.InterruptAction_INTERRUPT_ACTION_ANSWER:
		resume := &graphdv1.ResumeSpec{ThreadId: thread}
		if q.GetReason() != "breakpoint" {
			resume.Responses = []*graphdv1.InterruptResponse{{InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(strconv.Quote("of " + caller + strconv.Itoa(c.tried)))}}}
		}
		_, err = c.runs.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: resume})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_CLAIM:
		_, err = c.interrupts.ClaimInterrupt(ctx, &graphdv1.ClaimInterruptRequest{ThreadId: thread, InterruptId: id})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_RELEASE:
		_, err = c.interrupts.ReleaseInterrupt(ctx, &graphdv1.ReleaseInterruptRequest{ThreadId: thread, InterruptId: id})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_COMMENT:
		_, err = c.interrupts.CommentInterrupt(ctx, &graphdv1.CommentInterruptRequest{ThreadId: thread, InterruptId: id, Text: "hm"})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_DELEGATE:
		to := "delegate of " + caller
		if slices.ContainsFunc(q.GetDelegations(), func(d *graphdv1.Delegation) bool { return d.GetFrom() == caller }) {
			to = caller
		}
		_, err = c.interrupts.DelegateInterrupt(ctx, &graphdv1.DelegateInterruptRequest{ThreadId: thread, InterruptId: id, To: to})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_ASSIGN:
		err = update("assignees", &graphdv1.Interrupt{Assignees: []string{"yan"}})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_EXTEND:
		err = update("expire_time", &graphdv1.Interrupt{ExpireTime: timestamppb.New(time.Now().Add(time.Hour))})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_END_CLAIM:
		err = update("claimed_by", &graphdv1.Interrupt{})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_RETRACT:
		_, err = c.interrupts.RetractResponse(ctx, &graphdv1.RetractResponseRequest{ThreadId: thread, InterruptId: id})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_REVEAL:
		_, err = c.interrupts.RevealInterrupt(ctx, &graphdv1.RevealInterruptRequest{ThreadId: thread, InterruptId: id})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_LINK:
		_, err = c.interrupts.MakeLink(ctx, &graphdv1.MakeLinkRequest{ThreadId: thread, InterruptId: id})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_CANCEL:
		_, err = c.runs.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: thread, RunId: q.GetRunId()})
	case graphdv1.InterruptAction_INTERRUPT_ACTION_UNSPECIFIED:
		t.Fatal("nothing is done")
	default:
		t.Fatalf("the test does not know %s", action)
	}
	return err
}

// changes reports whether something was done with a question: a link and what has no claim or vote
// to end leave it as it is.
func (c *allowedCase) changes(t *testing.T, action graphdv1.InterruptAction, before *graphdv1.Interrupt) bool {
	t.Helper()
	mayKeep := []graphdv1.InterruptAction{
		graphdv1.InterruptAction_INTERRUPT_ACTION_RELEASE, graphdv1.InterruptAction_INTERRUPT_ACTION_RETRACT, graphdv1.InterruptAction_INTERRUPT_ACTION_CANCEL,
	}
	if action == graphdv1.InterruptAction_INTERRUPT_ACTION_END_CLAIM {
		return before.GetClaimedBy() != ""
	}
	return !slices.Contains(mayKeep, action) || c.read(t, "eva", before).GetEtag() != before.GetEtag()
}

// TestAllowedIsWhatIsAccepted tries every action on questions of each policy in several situations, as
// callers of several roles: what is allowed is accepted and changes something, and what is not
// allowed is refused or changes nothing.
func TestAllowedIsWhatIsAccepted(t *testing.T) {
	c := startAllowedCase(t)
	situations := map[string]graphdv1.InterruptAction{
		"open":             graphdv1.InterruptAction_INTERRUPT_ACTION_UNSPECIFIED,
		"claimed by ana":   graphdv1.InterruptAction_INTERRUPT_ACTION_CLAIM,
		"answered by ana":  graphdv1.InterruptAction_INTERRUPT_ACTION_ANSWER,
		"delegated by ana": graphdv1.InterruptAction_INTERRUPT_ACTION_DELEGATE,
	}
	total := 0
	for _, kind := range []string{"free", "group", "delegable", "requester", "exclusive", "secret", "undo", "edited", "stop"} {
		for situation, prepare := range situations {
			t.Run(kind+" "+situation, func(t *testing.T) {
				for _, caller := range []string{"ana", "ben", "carl", "eva", "vic"} {
					var accepted []string
					var allowed []string
					for number := range graphdv1.InterruptAction_name {
						action := graphdv1.InterruptAction(number)
						if action == graphdv1.InterruptAction_INTERRUPT_ACTION_UNSPECIFIED {
							continue
						}
						q := c.askOne(t, kind)
						if prepare != graphdv1.InterruptAction_INTERRUPT_ACTION_UNSPECIFIED && c.attempt(t, "ana", prepare, q) != nil {
							return // what can't be done for this policy
						}
						c.waitUntilSettled(t, q)
						q = c.read(t, caller, q)
						isAllowed := slices.Contains(q.GetAllowed(), action)
						err := c.attempt(t, caller, action, q)
						if err == nil && c.changes(t, action, q) {
							accepted = append(accepted, action.String())
						}
						if isAllowed {
							allowed = append(allowed, action.String())
						}
						require.Equal(t, accepted, allowed, "%s as %s: %v", action, caller, err)
						total++
					}
				}
			})
		}
	}
	require.Greater(t, total, 1000, "so many were tried")
}

// TestAllowedInLists compares what lists, watches and changes say with what a question itself says.
func TestAllowedInLists(t *testing.T) {
	c := startAllowedCase(t)
	kinds := []string{"free", "group", "delegable", "requester", "exclusive", "secret", "undo", "stop"}
	for _, kind := range kinds {
		c.askOne(t, kind)
	}
	for _, caller := range []string{"ana", "carl", "eva", "vic"} {
		for _, withAllowed := range []bool{true, false} {
			listed, err := c.interrupts.ListInterrupts(c.as(t, caller), &graphdv1.ListInterruptsRequest{WithAllowed: withAllowed})
			require.NoError(t, err)
			require.Len(t, listed.GetInterrupts(), len(kinds))
			watch, err := c.interrupts.WatchInterrupts(c.as(t, caller), &graphdv1.WatchInterruptsRequest{WithAllowed: withAllowed, MaxChanges: 100})
			require.NoError(t, err)
			message, err := watch.Recv()
			require.NoError(t, err)
			require.Len(t, message.GetChanges(), len(kinds))
			for i, q := range listed.GetInterrupts() {
				var want []graphdv1.InterruptAction
				if withAllowed {
					want = c.read(t, caller, q).GetAllowed()
				}
				require.Equal(t, want, q.GetAllowed(), "%s as %s", q.GetNode(), caller)
				at := slices.IndexFunc(message.GetChanges(), func(m *graphdv1.InterruptChange) bool { return m.GetInterrupt().GetInterruptId() == q.GetInterruptId() })
				require.Equal(t, want, message.GetChanges()[at].GetInterrupt().GetAllowed(), "%d: %s as %s", i, q.GetNode(), caller)
			}
			if !withAllowed || caller != "ana" {
				continue
			}
			claimed, err := c.interrupts.ClaimInterrupt(c.as(t, "ana"), &graphdv1.ClaimInterruptRequest{
				ThreadId: listed.GetInterrupts()[0].GetThreadId(), InterruptId: listed.GetInterrupts()[0].GetInterruptId(),
			})
			require.NoError(t, err)
			require.Contains(t, claimed.GetAllowed(), graphdv1.InterruptAction_INTERRUPT_ACTION_RELEASE)
			for {
				message, err = watch.Recv()
				require.NoError(t, err)
				if len(message.GetChanges()) > 0 {
					break
				}
			}
			require.Equal(t, claimed.GetAllowed(), message.GetChanges()[0].GetInterrupt().GetAllowed())
		}
	}
}
