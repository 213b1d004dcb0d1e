package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// TestWatchesTellWhatLeavesThem watches questions of ben, and open ones, while they are assigned to
// others and answered.
func TestWatchesTellWhatLeavesThem(t *testing.T) {
	s := startPeopleServer(t)
	interrupts := graphdv1.NewInterruptServiceClient(s.conn)
	q := s.ask(t, "t")
	assign := func(names ...string) {
		t.Helper()
		_, err := interrupts.UpdateInterrupt(s.as(t, "eva"), &graphdv1.UpdateInterruptRequest{
			Interrupt:  &graphdv1.Interrupt{ThreadId: "t", InterruptId: q.GetInterruptId(), Assignees: names},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"assignees"}},
		})
		require.NoError(t, err)
	}
	watch := func(filter string) func() *graphdv1.InterruptChange {
		stream, err := interrupts.WatchInterrupts(s.as(t, "carl"), &graphdv1.WatchInterruptsRequest{Filter: filter, StartNow: true})
		require.NoError(t, err)
		next := func() *graphdv1.InterruptChange {
			t.Helper()
			for {
				c, err := stream.Recv()
				require.NoError(t, err)
				if !c.GetBookmark() {
					return c
				}
			}
		}
		mark, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, mark.GetBookmark())
		return next
	}
	ofBen, open, ofDora := watch(`assignee = "ben"`), watch(`state = "OPEN"`), watch(`assignee = "dora"`)
	assign("ben")
	require.False(t, ofBen().GetGone())
	require.False(t, open().GetGone())
	assign("dora")
	gone := ofBen()
	require.True(t, gone.GetGone())
	require.Equal(t, []string{"dora"}, gone.GetInterrupt().GetAssignees())
	require.NotEmpty(t, gone.GetResumeToken())
	require.False(t, ofDora().GetGone())
	require.False(t, open().GetGone(), "it is open still")
	require.NoError(t, s.answer(t, "ResumeRun", "ana", "t", `"yes"`))
	require.False(t, open().GetGone(), "a vote")
	require.NoError(t, s.answer(t, "ResumeRun", "ben", "t", `"yes"`))
	require.True(t, open().GetGone(), "answered")
	require.False(t, ofDora().GetGone(), "a watch without a state is told of every state")
}

const escalatedGraph = `graph: escalated
channels: {decision: {}}
nodes:
  ask:
    ask:
      message: "'ok?'"
      people: {groups: [finance]}
      priority: low
      steps: [{after: 300ms, escalate: {groups: [staff], priority: urgent}}]
      update: {decision: answer}
edges:
- {from: __start__, to: ask}
- {from: ask, to: __end__}
`

// An escalation shows a question to those to whom it goes: in their watch, their list and
// their count, with its priority; and it leaves the watch of its former priority.
func TestAnEscalationShowsAQuestion(t *testing.T) {
	s := startPeopleServer(t)
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(s.as(t, "eva"), putRequest(escalatedGraph))
	require.NoError(t, err)
	interrupts := graphdv1.NewInterruptServiceClient(s.conn)
	count := func() int64 {
		counts, err := interrupts.CountInterrupts(s.as(t, "carl"), &graphdv1.CountInterruptsRequest{Filters: []string{`group = "staff"`}})
		require.NoError(t, err)
		require.Equal(t, graphdv1.CountInterruptsResponse_PRECISION_EXACT, counts.GetCounts()[0].GetPrecision())
		return counts.GetCounts()[0].GetCount()
	}
	require.Zero(t, count())
	next := func(filter string) func() *graphdv1.InterruptChange {
		stream, err := interrupts.WatchInterrupts(s.as(t, "carl"), &graphdv1.WatchInterruptsRequest{Filter: filter, StartNow: true})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		return func() *graphdv1.InterruptChange {
			for {
				c, err := stream.Recv()
				require.NoError(t, err)
				if !c.GetBookmark() {
					return c
				}
			}
		}
	}
	staff, low := next(`group = "staff" AND state = "OPEN"`), next(`priority = LOW AND state = "OPEN"`)
	s.start(t, "escalated", "t", `{}`)
	shown := staff()
	require.False(t, shown.GetGone())
	require.Equal(t, graphdv1.Priority_PRIORITY_URGENT, shown.GetInterrupt().GetPriority())
	require.Equal(t, []string{"finance", "staff"}, shown.GetInterrupt().GetPeople().GetGroups())
	for change := low(); !change.GetGone(); change = low() {
		require.Equal(t, graphdv1.Priority_PRIORITY_LOW, change.GetInterrupt().GetPriority())
	}
	require.EqualValues(t, 1, count())
	list, err := interrupts.ListInterrupts(s.as(t, "ben"), &graphdv1.ListInterruptsRequest{Filter: `mine = "true" AND priority = URGENT`})
	require.NoError(t, err)
	require.Len(t, list.GetInterrupts(), 1)
}
