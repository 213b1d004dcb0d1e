package transport_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func TestGetInterruptStatistics(t *testing.T) {
	e := newFakeEngine()
	at := time.Date(2026, 3, 17, 9, 0, 0, 0, time.UTC)
	counts := runtime.QuestionCounts{Asked: 6, Answered: 5, Late: 4, Defaulted: 3, Expired: 2, Withdrawn: 1}
	series := runtime.QuestionSeries{
		Total: counts, Waits: runtime.WaitTimes{Median: time.Minute, P95: time.Hour}, Intervals: []runtime.QuestionCounts{{}, counts},
	}
	e.questions = runtime.QuestionStatistics{
		CountsSince: at, Begin: at.Add(-time.Hour), Interval: time.Hour, All: series,
		Groups: []runtime.GroupSeries{{Group: "leads", QuestionSeries: series}}, Others: &series, IsPartial: true,
	}
	c := startServer(t, e)
	got, err := c.GetInterruptStatistics(t.Context(), &graphdv1.GetInterruptStatisticsRequest{})
	require.NoError(t, err)
	require.Equal(t, at, got.GetCountsSince().AsTime())
	require.Equal(t, at.Add(-time.Hour), got.GetBeginTime().AsTime())
	require.True(t, got.GetPartial())
	require.Equal(t, "leads", got.GetGroups()[0].GetGroup())
	want := &graphdv1.InterruptStatistics_Counts{Asked: 6, Answered: 5, AnsweredLate: 4, Defaulted: 3, Expired: 2, Withdrawn: 1}
	for _, s := range []*graphdv1.InterruptStatistics_Series{got.GetAll(), got.GetGroups()[0].GetSeries(), got.GetOthers()} {
		require.Equal(t, want.String(), s.GetTotal().String())
		require.Equal(t, time.Minute, s.GetMedianWait().AsDuration())
		require.Equal(t, time.Hour, s.GetP95Wait().AsDuration())
		require.Len(t, s.GetIntervals(), 2)
		require.Equal(t, want.String(), s.GetIntervals()[1].String())
	}

	for _, interval := range []time.Duration{15 * time.Minute, 24 * time.Hour} {
		_, err := c.GetInterruptStatistics(t.Context(), &graphdv1.GetInterruptStatisticsRequest{Interval: durationpb.New(interval)})
		require.NoError(t, err)
	}
	require.Equal(t, []any{
		runtime.StatisticsQuery{Tenant: "default", Interval: time.Hour},
		runtime.StatisticsQuery{Tenant: "default", Interval: 15 * time.Minute},
		runtime.StatisticsQuery{Tenant: "default", Interval: 24 * time.Hour},
	}, e.requests)
	for _, interval := range []time.Duration{0, -time.Hour, 5 * time.Minute, 7 * time.Hour, 48 * time.Hour} {
		_, err := c.GetInterruptStatistics(t.Context(), &graphdv1.GetInterruptStatisticsRequest{Interval: durationpb.New(interval)})
		require.Equal(t, codes.InvalidArgument, status.Code(err), interval)
		require.ErrorContains(t, err, "interval")
	}
}

func TestGetAnswerStatistics(t *testing.T) {
	e := newFakeEngine()
	e.answers = runtime.AnswerStatistics{
		CountsSince: time.Unix(9, 0), Answered: 5, Dismissed: 4, Defaulted: 3, Expired: 2, Waits: runtime.WaitTimes{Median: time.Minute, P95: time.Hour},
		Decisions: []runtime.DecisionCount{{Decision: `"approve"`, Count: 3}, {Decision: `9007199254740993`, Count: 1}},
	}
	c := startServer(t, e)
	got, err := c.GetAnswerStatistics(t.Context(), &graphdv1.GetAnswerStatisticsRequest{Graph: "g", Node: "n"})
	require.NoError(t, err)
	require.Equal(t, []any{[3]string{"default", "g", "n"}}, e.requests)
	require.Equal(t, time.Unix(9, 0).UTC(), got.GetCountsSince().AsTime())
	require.Equal(t, []int64{5, 4, 3, 2}, []int64{got.GetAnswered(), got.GetDismissed(), got.GetDefaulted(), got.GetExpired()})
	require.Equal(t, []time.Duration{time.Minute, time.Hour}, []time.Duration{got.GetMedianWait().AsDuration(), got.GetP95Wait().AsDuration()})
	require.Equal(t, "9007199254740993", got.GetDecisions()[1].GetValue().GetJson())
	require.Equal(t, int64(3), got.GetDecisions()[0].GetCount())
	for field, req := range map[string]*graphdv1.GetAnswerStatisticsRequest{
		"graph": {Node: "n"}, "node": {Graph: "g"}, `"acme@g"`: {Graph: "acme@g", Node: "n"},
	} {
		_, err := c.GetAnswerStatistics(t.Context(), req)
		require.Equal(t, codes.InvalidArgument, status.Code(err), field)
		require.ErrorContains(t, err, field)
	}
}
