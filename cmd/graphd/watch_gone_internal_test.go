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
