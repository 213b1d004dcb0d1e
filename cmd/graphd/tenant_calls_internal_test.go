package main

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// readEverything reads and follows what setUp has made.
func (c *tenantClient) readEverything() {
	t, ctx := c.t, c.ctx
	_, err := c.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	graphs, err := c.ListGraphs(ctx, &graphdv1.ListGraphsRequest{View: graphdv1.GraphView_GRAPH_VIEW_FULL})
	require.NoError(t, err)
	require.Len(t, graphs.GetGraphs(), 6)
	for _, g := range graphs.GetGraphs() {
		require.Equal(t, "of "+c.name, g.GetDescription())
		_, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: g.GetGraph(), View: graphdv1.GraphView_GRAPH_VIEW_FULL})
		require.NoError(t, err)
	}
	threads, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{View: graphdv1.ThreadView_THREAD_VIEW_FULL, PageSize: 2})
	require.NoError(t, err)
	require.Len(t, threads.GetThreads(), 2)
	rest, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{View: graphdv1.ThreadView_THREAD_VIEW_FULL, PageSize: 2, PageToken: threads.GetNextPageToken()})
	require.NoError(t, err)
	require.Len(t, rest.GetThreads(), 1)
	one, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{Filter: `graph = "flow"`})
	require.NoError(t, err)
	require.Len(t, one.GetThreads(), 1)
	for _, thread := range append(threads.GetThreads(), rest.GetThreads()...) {
		c.readThread(thread.GetThreadId(), thread.GetGraph())
	}
	questions, err := c.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: `thread_id = "t-asking" AND graph = "asking"`})
	require.NoError(t, err)
	require.Len(t, questions.GetInterrupts(), 2)
	counted, err := c.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: []string{"", `graph = "asking"`, `graph = "none"`}})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2, 0}, []int64{counted.GetCounts()[0].GetCount(), counted.GetCounts()[1].GetCount(), counted.GetCounts()[2].GetCount()})
	counts, err := c.GetInterruptStatistics(ctx, &graphdv1.GetInterruptStatisticsRequest{})
	require.NoError(t, err)
	require.Positive(t, counts.GetAll().GetTotal().GetAsked())
	_, err = c.GetAnswerStatistics(ctx, &graphdv1.GetAnswerStatisticsRequest{Graph: "asking", Node: questions.GetInterrupts()[0].GetNode()})
	require.NoError(t, err)
	for _, q := range questions.GetInterrupts() {
		_, err = c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
		require.NoError(t, err)
	}
	_, err = healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
}

// readThread reads and follows a thread of a graph.
func (c *tenantClient) readThread(id, graph string) {
	t, ctx := c.t, c.ctx
	_, err := c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: id})
	require.NoError(t, err)
	_, err = c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: id, Subgraphs: true})
	require.NoError(t, err)
	_, err = c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: id, IncludeValues: true})
	require.NoError(t, err)
	runs, err := c.ListRuns(ctx, &graphdv1.ListRunsRequest{ThreadId: id, Filter: fmt.Sprintf("graph = %q", graph)})
	require.NoError(t, err)
	require.Len(t, runs.GetRuns(), 1)
	_, err = c.GetRun(ctx, &graphdv1.GetRunRequest{ThreadId: id, RunId: runs.GetRuns()[0].GetRunId()})
	require.NoError(t, err)
	events, err := readAll(c.Watch(ctx, &graphdv1.WatchRequest{
		ThreadId: id, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}, Filter: allEvents(),
	}))
	require.NoError(t, err)
	require.Greater(t, len(events), 3)
	_, err = readAll(c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: id, SnapshotFirst: true}))
	require.NoError(t, err)
}

func allEvents() *graphdv1.EventFilter {
	return &graphdv1.EventFilter{Channels: []graphdv1.Channel{
		graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_CUSTOM,
		graphdv1.Channel_CHANNEL_DEBUG,
	}}
}

// changeEverything runs, answers and changes threads while it follows the inbox.
func (c *tenantClient) changeEverything() {
	t, ctx := c.t, c.ctx
	following, leave := context.WithCancel(ctx)
	defer leave()
	inbox, err := c.WatchInterrupts(following, &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	nextQuestion := func() *graphdv1.Interrupt {
		for {
			change, err := inbox.Recv()
			require.NoError(t, err)
			if q := change.GetInterrupt(); q != nil {
				return q
			}
		}
	}
	require.Equal(t, "t-asking", nextQuestion().GetThreadId())
	require.Equal(t, "t-asking", nextQuestion().GetThreadId())
	c.makeThreads()
	c.answerQuestions(nextQuestion)
	c.changeThreads()
	c.keepAssistants()
	c.keepCrons()
	c.keepItems()
	c.addWebhook()
}

// makeThreads has the server make threads, with ids of its own.
func (c *tenantClient) makeThreads() {
	t, ctx := c.t, c.ctx
	made, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{RequestId: "make", Thread: &graphdv1.Thread{Graph: "flow"}})
	require.NoError(t, err)
	again, err := c.CreateThread(ctx, &graphdv1.CreateThreadRequest{RequestId: "make", Thread: &graphdv1.Thread{Graph: "flow"}})
	require.NoError(t, err)
	require.Equal(t, made.GetThreadId(), again.GetThreadId())
	for _, graph := range []string{"flow", "parent", "failing"} {
		spec := c.newRun("", graph) // the server makes the thread
		events, err := readAll(c.Stream(ctx, &graphdv1.StreamRequest{Run: spec, Filter: allEvents()}))
		require.NoError(t, err)
		_, err = c.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: events[0].GetThreadId()})
		require.NoError(t, err)
	}
}

// answerQuestions starts a run that asks twice, and answers. nextQuestion waits for the next
// change of a question.
func (c *tenantClient) answerQuestions(nextQuestion func() *graphdv1.Interrupt) {
	t, ctx := c.t, c.ctx
	events, err := readAll(c.Stream(ctx, &graphdv1.StreamRequest{Run: c.newRun("t-new", "asking"), Filter: allEvents(), RequestId: "new"}))
	require.NoError(t, err)
	require.NotEmpty(t, events)
	first, second := nextQuestion(), nextQuestion()
	_, err = c.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
		Interrupt:  &graphdv1.Interrupt{ThreadId: "t-new", InterruptId: first.GetInterruptId(), Assignees: []string{"ana"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"assignees"}},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ana"}, nextQuestion().GetAssignees())
	c.discussQuestion(first.GetInterruptId(), nextQuestion)
	answer := func(q *graphdv1.Interrupt) *graphdv1.ResumeSpec {
		return &graphdv1.ResumeSpec{ThreadId: "t-new", Responses: []*graphdv1.InterruptResponse{{
			InterruptId: q.GetInterruptId(), Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)},
		}}}
	}
	bulk, err := c.AnswerInterrupts(ctx, &graphdv1.AnswerInterruptsRequest{
		Which: &graphdv1.AnswerInterruptsRequest_Targets_{Targets: &graphdv1.AnswerInterruptsRequest_Targets{
			Targets: []*graphdv1.AnswerInterruptsRequest_Target{{ThreadId: "t-new", InterruptId: "none"}},
		}},
		Outcome: &graphdv1.AnswerInterruptsRequest_Value{Value: jsonPayload("1")},
	})
	require.NoError(t, err)
	outcome, err := bulk.Recv()
	require.NoError(t, err)
	require.Equal(t, "INTERRUPT_NOT_FOUND", outcome.GetReason())
	_, err = readAll(c.Resume(ctx, &graphdv1.ResumeRequest{Resume: answer(first), Filter: allEvents()}))
	require.NoError(t, err)
	_, err = c.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: answer(second)})
	require.NoError(t, err)
	_, err = c.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "t-new"})
	require.NoError(t, err)
}

// discussQuestion claims and releases a question, comments it, and reads its trail.
func (c *tenantClient) discussQuestion(id string, nextQuestion func() *graphdv1.Interrupt) {
	t, ctx := c.t, c.ctx
	claimed, err := c.ClaimInterrupt(ctx, &graphdv1.ClaimInterruptRequest{ThreadId: "t-new", InterruptId: id})
	require.NoError(t, err)
	require.Equal(t, claimed.GetClaimedBy(), nextQuestion().GetClaimedBy())
	_, err = c.ReleaseInterrupt(ctx, &graphdv1.ReleaseInterruptRequest{ThreadId: "t-new", InterruptId: id, Note: "not mine"})
	require.NoError(t, err)
	require.Empty(t, nextQuestion().GetClaimedBy())
	_, err = c.CommentInterrupt(ctx, &graphdv1.CommentInterruptRequest{ThreadId: "t-new", InterruptId: id, Text: "why?"})
	require.NoError(t, err)
	require.EqualValues(t, 5, nextQuestion().GetTrailSize())
	_, err = c.DelegateInterrupt(ctx, &graphdv1.DelegateInterruptRequest{ThreadId: "t-new", InterruptId: id, To: "ben"})
	require.NoError(t, err)
	_, err = c.RevealInterrupt(ctx, &graphdv1.RevealInterruptRequest{ThreadId: "t-new", InterruptId: id})
	require.ErrorContains(t, err, "has no secret parts")
	_, err = c.MakeLink(ctx, &graphdv1.MakeLinkRequest{ThreadId: "t-new", InterruptId: id})
	require.ErrorContains(t, err, "makes no links")
	open, err := c.RetractResponse(ctx, &graphdv1.RetractResponseRequest{ThreadId: "t-new", InterruptId: id})
	require.NoError(t, err)
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_OPEN, open.GetState())
	checked, err := c.CheckResponses(ctx, &graphdv1.CheckResponsesRequest{ThreadId: "t-new", Responses: []*graphdv1.InterruptResponse{
		{InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"x"`)}},
	}})
	require.NoError(t, err)
	require.True(t, checked.GetOutcomes()[0].GetDecides())
	trail, err := c.ListTrail(ctx, &graphdv1.ListTrailRequest{ThreadId: "t-new", InterruptId: id})
	require.NoError(t, err)
	require.Len(t, trail.GetEntries(), 6)
}

// addWebhook asks for a webhook, which this server does not call.
func (c *tenantClient) addWebhook() {
	_, err := c.AddRunWebhook(c.ctx, &graphdv1.AddRunWebhookRequest{ThreadId: "t-flow", RunId: "r", WebhookId: "w", Url: "https://example.com/"})
	require.Equal(c.t, "FEATURE_DISABLED", reasonOfRefusal(err))
}

// keepAssistants makes, changes, lists and deletes assistants. Both tenants have one with the id.
func (c *tenantClient) keepAssistants() {
	t, ctx := c.t, c.ctx
	_, err := c.CreateAssistant(ctx, &graphdv1.CreateAssistantRequest{
		AssistantId: "helper", Assistant: &graphdv1.Assistant{Graph: "flow", Name: "of " + c.name, Context: c.value("x")},
	})
	require.NoError(t, err)
	changed, err := c.UpdateAssistant(ctx, &graphdv1.UpdateAssistantRequest{
		Assistant: &graphdv1.Assistant{AssistantId: "helper", Graph: "asking", Metadata: map[string]string{"a": "b"}},
	})
	require.NoError(t, err)
	require.Equal(t, "asking", changed.GetGraph())
	versions, err := c.ListAssistantVersions(ctx, &graphdv1.ListAssistantVersionsRequest{AssistantId: "helper"})
	require.NoError(t, err)
	require.Len(t, versions.GetVersions(), 2)
	_, err = c.ActivateAssistantVersion(ctx, &graphdv1.ActivateAssistantVersionRequest{AssistantId: "helper", Version: 1})
	require.NoError(t, err)
	list, err := c.ListAssistants(ctx, &graphdv1.ListAssistantsRequest{Graph: "flow", View: graphdv1.AssistantView_ASSISTANT_VIEW_FULL})
	require.NoError(t, err)
	require.Len(t, list.GetAssistants(), 1)
	require.Equal(t, "of "+c.name, list.GetAssistants()[0].GetName())
	read, err := c.GetAssistant(ctx, &graphdv1.GetAssistantRequest{AssistantId: "helper"})
	require.NoError(t, err)
	require.Equal(t, c.value("x").GetJson(), read.GetContext().GetJson())
	_, err = c.DeleteAssistant(ctx, &graphdv1.DeleteAssistantRequest{AssistantId: "helper"})
	require.NoError(t, err)
}

// keepCrons makes, changes, lists and deletes crons. Both tenants have one with the id.
func (c *tenantClient) keepCrons() {
	t, ctx := c.t, c.ctx
	wanted := newDailyCron("flow")
	wanted.CronId, wanted.Cron.Run.ThreadId, wanted.Cron.Source = "daily", "t-flow", c.value("x")
	made, err := c.CreateCron(ctx, wanted)
	require.NoError(t, err)
	require.Equal(t, "boss", made.GetCreatedBy())
	changed, err := c.UpdateCron(ctx, &graphdv1.UpdateCronRequest{Cron: &graphdv1.Cron{CronId: "daily", Paused: true, Metadata: map[string]string{"a": "b"}}})
	require.NoError(t, err)
	require.Nil(t, changed.GetNextTime())
	list, err := c.ListCrons(ctx, &graphdv1.ListCronsRequest{Graph: "flow", ThreadId: "t-flow", View: graphdv1.CronView_CRON_VIEW_FULL})
	require.NoError(t, err)
	require.Len(t, list.GetCrons(), 1)
	require.Equal(t, c.value("x").GetJson(), list.GetCrons()[0].GetSource().GetJson())
	read, err := c.GetCron(ctx, &graphdv1.GetCronRequest{CronId: "daily"})
	require.NoError(t, err)
	require.Equal(t, "t-flow", read.GetRun().GetThreadId())
	_, err = c.DeleteCron(ctx, &graphdv1.DeleteCronRequest{CronId: "daily"})
	require.NoError(t, err)
}

// keepItems puts, reads, finds and deletes items. Both tenants have one with the key.
func (c *tenantClient) keepItems() {
	t, ctx := c.t, c.ctx
	namespace := []string{"notes", "ann"}
	_, err := c.PutItem(ctx, &graphdv1.PutItemRequest{Namespace: namespace, Key: "k", Value: c.value("x")})
	require.NoError(t, err)
	read, err := c.GetItem(ctx, &graphdv1.GetItemRequest{Namespace: namespace, Key: "k"})
	require.NoError(t, err)
	require.Equal(t, c.value("x").GetJson(), read.GetValue().GetJson())
	for _, prefix := range [][]string{nil, {"notes"}, namespace} {
		found, err := c.SearchItems(ctx, &graphdv1.SearchItemsRequest{NamespacePrefix: prefix})
		require.NoError(t, err)
		require.Len(t, found.GetItems(), 1)
		require.Equal(t, c.value("x").GetJson(), found.GetItems()[0].GetValue().GetJson())
	}
	list, err := c.ListItemNamespaces(ctx, &graphdv1.ListItemNamespacesRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetNamespaces(), 1)
	_, err = c.DeleteItem(ctx, &graphdv1.DeleteItemRequest{Namespace: namespace, Key: "k"})
	require.NoError(t, err)
}

// changeThreads changes, forks, copies and prunes threads.
func (c *tenantClient) changeThreads() {
	t, ctx := c.t, c.ctx
	_, err := c.UpdateThread(ctx, &graphdv1.UpdateThreadRequest{Thread: &graphdv1.Thread{ThreadId: "t-flow", Metadata: map[string]string{"a": "b"}}})
	require.NoError(t, err)
	_, err = c.UpdateState(ctx, &graphdv1.UpdateStateRequest{ThreadId: "t-flow", Values: jsonPayload(`{"x": "changed"}`)})
	require.NoError(t, err)
	_, err = c.BulkUpdateState(ctx, &graphdv1.BulkUpdateStateRequest{ThreadId: "t-flow", Supersteps: []*graphdv1.StateSuperstep{
		{Updates: []*graphdv1.StateUpdate{{Values: jsonPayload(`{"x": "again"}`)}}},
	}})
	require.NoError(t, err)
	forked, err := c.ForkThread(ctx, &graphdv1.ForkThreadRequest{SourceThreadId: "t-flow"})
	require.NoError(t, err)
	copied, err := c.CopyThread(ctx, &graphdv1.CopyThreadRequest{SourceThreadId: "t-asking", RequestId: "copy"})
	require.NoError(t, err)
	for _, id := range []string{forked.GetThreadId(), copied.GetThreadId()} {
		_, err = c.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: id})
		require.NoError(t, err)
	}
	_, err = c.PruneThread(ctx, &graphdv1.PruneThreadRequest{ThreadId: "t-flow", KeepCheckpoints: 1})
	require.NoError(t, err)
}

// removeEverything stops and deletes what there is.
func (c *tenantClient) removeEverything() {
	t, ctx := c.t, c.ctx
	_, err := c.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: "t-busy", Wait: true})
	require.NoError(t, err)
	for {
		page, err := c.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 3})
		require.NoError(t, err)
		if len(page.GetThreads()) == 0 {
			break
		}
		deleted, err := c.DeleteThreads(ctx, &graphdv1.DeleteThreadsRequest{ThreadIds: []string{page.GetThreads()[0].GetThreadId(), "nothing"}, Force: true})
		require.NoError(t, err)
		require.Len(t, deleted.GetFailures(), 1)
		require.Equal(t, "THREAD_NOT_FOUND", deleted.GetFailures()[0].GetReason())
		for _, thread := range page.GetThreads()[1:] {
			_, err = c.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: thread.GetThreadId(), Force: true})
			require.NoError(t, err)
		}
	}
	flow, err := c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow"})
	require.NoError(t, err)
	_, err = c.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "parent"})
	require.NoError(t, err)
	_, err = c.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: "flow", Version: flow.GetVersion()})
	require.NoError(t, err)
	_, err = c.GetGraph(ctx, &graphdv1.GetGraphRequest{Graph: "flow"})
	require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(err))
}
