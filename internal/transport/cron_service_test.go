package transport_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// fakeCrons keeps what the test has set, and records changes.
type fakeCrons struct {
	list    []runtime.Cron
	created runtime.CreateCronRequest
	updated runtime.UpdateCronRequest
}

func (f *fakeCrons) GetCron(_ context.Context, _, id string) (runtime.Cron, error) {
	for i := range f.list {
		if f.list[i].ID == id {
			return f.list[i], nil
		}
	}
	return runtime.Cron{}, runtime.NewCronNotFoundError(id)
}

func (f *fakeCrons) ListCrons(_ context.Context, q runtime.CronQuery) (list []runtime.Cron, more bool, err error) {
	for _, cron := range slices.Backward(f.list) {
		if q.After.ID == "" || cron.Created.Before(q.After.Created) {
			list = append(list, cron)
		}
	}
	return list[:min(q.Limit, len(list))], len(list) > q.Limit, nil
}

func (f *fakeCrons) CreateCron(_ context.Context, req runtime.CreateCronRequest) (runtime.Cron, error) {
	f.created = req
	return req.Cron, nil
}

func (f *fakeCrons) UpdateCron(_ context.Context, req runtime.UpdateCronRequest) (runtime.Cron, error) {
	f.updated = req
	cron := runtime.Cron{ID: req.ID, Graph: "acme@g"}
	err := req.Admits(&cron)
	return cron, err
}

func (f *fakeCrons) DeleteCron(_ context.Context, _, id string, _ uint64, admits func(*runtime.Cron) error) error {
	return admits(&runtime.Cron{ID: id, Graph: "acme@g"})
}

func startCrons(t *testing.T, kept *fakeCrons) graphdv1.CronServiceClient {
	t.Helper()
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Crons = kept })
	return graphdv1.NewCronServiceClient(c.conn)
}

func newCron(change func(c *graphdv1.Cron)) *graphdv1.CreateCronRequest {
	c := &graphdv1.Cron{Schedule: "* * * * *", Run: &graphdv1.RunSpec{Graph: "g", Start: &graphdv1.RunSpec_Input{Input: newJSONPayload("{}")}}}
	change(c)
	return &graphdv1.CreateCronRequest{CronId: "a", Cron: c}
}

func TestCronsAreChecked(t *testing.T) {
	c := startCrons(t, &fakeCrons{})
	for field, change := range map[string]func(c *graphdv1.Cron){
		"cron.schedule":           func(c *graphdv1.Cron) { c.Schedule = "" },
		"cron.run":                func(c *graphdv1.Cron) { c.Run = nil },
		"cron.run.graph":          func(c *graphdv1.Cron) { c.Run.Graph = "" },
		"cron.run.run_id":         func(c *graphdv1.Cron) { c.Run.RunId = "r" },
		"cron.run.begin_after":    func(c *graphdv1.Cron) { c.Run.BeginAfter = durationpb.New(time.Second) },
		"cron.run.thread_id":      func(c *graphdv1.Cron) { c.Run.ThreadId = "a b" },
		"cron.run.interrupt_":     func(c *graphdv1.Cron) { c.Run.InterruptAfter = []string{""} },
		"cron.run.input":          func(c *graphdv1.Cron) { c.Run.Start = &graphdv1.RunSpec_Input{Input: newJSONPayload("{")} },
		"cron.source":             func(c *graphdv1.Cron) { c.Source = newJSONPayload("{") },
		"cron.cron_id":            func(c *graphdv1.Cron) { c.CronId = "b" },
		"cron.thread_ttl":         func(c *graphdv1.Cron) { c.ThreadTtl = durationpb.New(-time.Second) },
		"thread_ttl of a thread":  func(c *graphdv1.Cron) { c.Run.ThreadId, c.ThreadTtl = "t1", durationpb.New(time.Second) },
		"cron.metadata":           func(c *graphdv1.Cron) { c.Metadata = map[string]string{"\x00cron": "x"} },
		"cron has an output":      func(c *graphdv1.Cron) { c.NextTime = timestamppb.Now() },
		"cron.run.graph differs":  func(c *graphdv1.Cron) { c.Run.ThreadId, c.Run.Graph = "t1", "other" },
		"cron.run.goto_targets[0": func(c *graphdv1.Cron) { c.Run.GotoTargets = []*graphdv1.Goto{{}} },
	} {
		_, err := c.CreateCron(t.Context(), newCron(change))
		require.Contains(t, requireErrorInfo(t, err).GetMetadata()["field"], "cron", field)
	}
	for field, update := range map[string]*graphdv1.UpdateCronRequest{
		"cron.cron_id":   {Cron: &graphdv1.Cron{Schedule: "x"}},
		"update_mask":    {Cron: &graphdv1.Cron{CronId: "a"}},
		"cron.run":       {Cron: &graphdv1.Cron{CronId: "a"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"run"}}},
		"cron.etag":      {Cron: &graphdv1.Cron{CronId: "a", Schedule: "x", Etag: "none"}},
		"created_by":     {Cron: &graphdv1.Cron{CronId: "a"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"created_by"}}},
		"cron.run.input": {Cron: &graphdv1.Cron{CronId: "a", Run: &graphdv1.RunSpec{Start: &graphdv1.RunSpec_Input{Input: newJSONPayload("{")}}}},
	} {
		_, err := c.UpdateCron(t.Context(), update)
		require.Contains(t, err.Error()+requireErrorInfo(t, err).GetMetadata()["field"], field)
	}
	_, err := c.GetCron(t.Context(), &graphdv1.GetCronRequest{CronId: "none"})
	require.ErrorContains(t, err, `there is no cron "none"`)
}

// What a cron starts comes back as it was sent, and makes the request of a firing.
func TestTheRunOfACronIsCarried(t *testing.T) {
	kept := &fakeCrons{}
	c := startCrons(t, kept)
	end := timestamppb.New(time.Unix(2_000_000_000, 0))
	request := newCron(func(c *graphdv1.Cron) {
		c.TimeZone, c.EndTime, c.ThreadTtl, c.Metadata = "Europe/Berlin", end, durationpb.New(time.Hour), map[string]string{"a": "b"}
		c.Run.Start = &graphdv1.RunSpec_Input{Input: newJSONPayload(`{"b": 1.0, "a": 9007199254740993}`)}
		c.Run.Concurrency = graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE
		c.Source = newJSONPayload(`{"z": 1.00}`)
	})
	made, err := c.CreateCron(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, `{"b": 1.0, "a": 9007199254740993}`, made.GetRun().GetInput().GetJson())
	require.Equal(t, `{"z": 1.00}`, made.GetSource().GetJson())
	require.Equal(t, "default", kept.created.Cron.Tenant)
	require.Equal(t, end.AsTime(), kept.created.Cron.End)
	require.Equal(t, time.Hour, kept.created.Cron.ThreadTTL)
	start, err := wire.CronRunParser(payload.Limits{})(&kept.created.Cron)
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`{"b": 1.0, "a": 9007199254740993}`), start.Request.Input)
	require.Equal(t, runtime.EnqueueBusy, start.Concurrency)
	require.Equal(t, "g", start.Graph)
	_, err = wire.CronRunParser(payload.Limits{})(&runtime.Cron{ID: "a", Run: `{"newer": 1}`})
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonCheckpointCorrupt})

	_, err = c.CreateCron(t.Context(), newCron(func(c *graphdv1.Cron) { c.Run.ThreadId, c.Run.Graph = "t1", "" }))
	require.NoError(t, err)
	require.Equal(t, []string{"t1", "g"}, []string{kept.created.Cron.Thread, kept.created.Cron.Graph}, "the graph is that of the thread")

	_, err = c.UpdateCron(t.Context(), &graphdv1.UpdateCronRequest{
		Cron:       &graphdv1.Cron{CronId: "a", Etag: "7", Schedule: "left alone", Metadata: map[string]string{"kept": "1"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"paused", "end_time", "metadata.kept", "metadata.gone"}},
	})
	require.NoError(t, err)
	require.Nil(t, kept.updated.Schedule)
	require.False(t, *kept.updated.IsPaused)
	require.True(t, kept.updated.End.IsZero())
	require.Equal(t, uint64(7), kept.updated.Etag)
	require.Equal(t, map[string]string{"kept": "1"}, kept.updated.Metadata)
	require.Equal(t, []string{"gone"}, kept.updated.DropKeys)
}

func TestPagesOfCrons(t *testing.T) {
	kept := &fakeCrons{}
	for i := range 5 {
		kept.list = append(kept.list, runtime.Cron{ID: fmt.Sprint("a", i), Graph: "g", Created: time.Unix(int64(i), 0)})
	}
	c := startCrons(t, kept)
	var ids []string
	request := &graphdv1.ListCronsRequest{PageSize: 2}
	for {
		page, err := c.ListCrons(t.Context(), request)
		require.NoError(t, err)
		for _, cron := range page.GetCrons() {
			ids = append(ids, cron.GetCronId())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
		_, err = c.ListCrons(t.Context(), &graphdv1.ListCronsRequest{Graph: "other", PageToken: request.GetPageToken()})
		require.Equal(t, "INVALID_PAGE_TOKEN", requireErrorInfo(t, err).GetReason())
	}
	require.Equal(t, []string{"a4", "a3", "a2", "a1", "a0"}, ids)
}

func TestChangesOfCronsAreAuditedWithTheirGraph(t *testing.T) {
	a := &fakeAuditor{}
	c := graphdv1.NewCronServiceClient(startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.Crons, o.Auditor, o.Authenticator = &fakeCrons{}, a, oneCaller{}
	}).conn)
	ctx := withToken(t.Context())
	_, err := c.DeleteCron(ctx, &graphdv1.DeleteCronRequest{CronId: "a"})
	require.NoError(t, err)
	require.Equal(t, "g", a.takeOne(t).Graph)
	_, err = c.UpdateCron(ctx, &graphdv1.UpdateCronRequest{Cron: &graphdv1.Cron{CronId: "a", Paused: true}})
	require.NoError(t, err)
	require.Equal(t, "g", a.takeOne(t).Graph)
}
