package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// cronCalls are the calls of one caller that concern crons.
type cronCalls struct {
	graphdv1.CronServiceClient
	ctx context.Context //nolint:containedctx // that of the caller
}

// callCrons returns the calls of a caller of an accessServer.
func (s *accessServer) callCrons(t *testing.T, caller string) *cronCalls {
	t.Helper()
	return &cronCalls{graphdv1.NewCronServiceClient(s.conn), s.as(t.Context(), caller)}
}

// create makes a daily cron whose run is changed by a function.
func (c *cronCalls) create(id, graph string, change func(run *graphdv1.RunSpec)) error {
	wanted := newDailyCron(graph)
	wanted.CronId = id
	change(wanted.Cron.Run)
	return errOf(c.CreateCron(c.ctx, wanted))
}

// update changes the fields of a cron that paths name.
func (c *cronCalls) update(cron *graphdv1.Cron, paths ...string) error {
	return errOf(c.UpdateCron(c.ctx, &graphdv1.UpdateCronRequest{Cron: cron, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}))
}

func asItIs(*graphdv1.RunSpec) {}

// A caller gets and changes the crons of its graphs. Those of another graph do not exist for it.
func TestCronsOfOtherGraphsDoNotExist(t *testing.T) {
	s := startAccessServer(t)
	root := s.callCrons(t, "root")
	require.NoError(t, root.create("seen", "open", asItIs))
	require.NoError(t, root.create("unseen", "hidden", asItIs))
	for _, id := range []string{"unseen", "none"} {
		unknown := func(err error) {
			t.Helper()
			require.Equal(t, "CRON_NOT_FOUND", reasonOfRefusal(err))
			require.ErrorContains(t, err, `there is no cron "`+id+`"`)
			require.Equal(t, map[string]string{"cronId": id}, metadataOf(err))
		}
		for _, caller := range []string{"viewer", "starter", "operator"} {
			c := s.callCrons(t, caller)
			unknown(errOf(c.GetCron(c.ctx, &graphdv1.GetCronRequest{CronId: id})))
			list, err := c.ListCrons(c.ctx, &graphdv1.ListCronsRequest{PageSize: 1})
			require.NoError(t, err)
			require.Len(t, list.GetCrons(), 1)
			require.Equal(t, "seen", list.GetCrons()[0].GetCronId())
			require.Empty(t, list.GetNextPageToken())
			if caller == "viewer" {
				require.Equal(t, "ACCESS_DENIED", reasonOfRefusal(c.update(&graphdv1.Cron{CronId: "seen"}, "paused")))
				continue
			}
			unknown(c.update(&graphdv1.Cron{CronId: id}, "paused"))
			unknown(c.update(&graphdv1.Cron{CronId: id, Etag: "77"}, "paused"))
			unknown(errOf(c.DeleteCron(c.ctx, &graphdv1.DeleteCronRequest{CronId: id, Etag: "77"})))
			require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(c.create("new", "hidden", asItIs)))
			require.Equal(t, "THREAD_NOT_FOUND", reasonOfRefusal(c.create("new", "", func(run *graphdv1.RunSpec) { run.ThreadId = "hidden" })))
			require.NoError(t, c.update(&graphdv1.Cron{CronId: "seen"}, "paused"))
		}
	}
}

// A caller makes and changes crons whose runs it may start.
func TestARunOfACronNeedsTheRightsOfARun(t *testing.T) {
	s := startAccessServer(t)
	starter, operator := s.callCrons(t, "starter"), s.callCrons(t, "operator")
	for right, change := range map[string]func(run *graphdv1.RunSpec){
		"right: discard-questions": func(run *graphdv1.RunSpec) {
			run.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD
		},
		"right: steer-run": func(run *graphdv1.RunSpec) { run.InterruptBefore = []string{"n"} },
	} {
		err := starter.create("mine", "open", change)
		require.Equal(t, right, metadataOf(err)["rule"])
		require.NoError(t, starter.create("mine", "open", asItIs))
		run := &graphdv1.RunSpec{Graph: "open"}
		change(run)
		require.Equal(t, right, metadataOf(starter.update(&graphdv1.Cron{CronId: "mine", Run: run}, "run"))["rule"])

		require.NoError(t, operator.update(&graphdv1.Cron{CronId: "mine", Run: run}, "run"))
		kept, err := starter.GetCron(starter.ctx, &graphdv1.GetCronRequest{CronId: "mine"})
		require.NoError(t, err)
		require.Equal(t, []string{"starter", "operator"}, []string{kept.GetCreatedBy(), kept.GetStartedBy()})
		require.Equal(t, right, metadataOf(starter.update(&graphdv1.Cron{CronId: "mine", Schedule: "* * * * *"}))["rule"],
			"it would start a run more often that it may not start")
		require.NoError(t, starter.update(&graphdv1.Cron{CronId: "mine", Run: &graphdv1.RunSpec{Graph: "open"}}, "run"),
			"a run that it may start takes the place of the other one")
		_, err = starter.DeleteCron(starter.ctx, &graphdv1.DeleteCronRequest{CronId: "mine"})
		require.NoError(t, err)
	}
}
