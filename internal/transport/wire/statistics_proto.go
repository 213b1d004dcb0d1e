package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Intervals of statistics: one that a client leaves out, and what all are a multiple of.
const (
	defaultInterval = time.Hour
	intervalUnit    = 15 * time.Minute
)

// StatisticsIntervalFromProto converts the length of the intervals of statistics.
func StatisticsIntervalFromProto(v *Validator, field string, d *durationpb.Duration) time.Duration {
	interval := v.ConvertDuration(field, d)
	switch {
	case d == nil:
		return defaultInterval
	case interval <= 0 || interval%intervalUnit != 0 || runtime.StatisticsSpan%interval != 0:
		v.AddViolation(field, "must be a multiple of 15 minutes that divides 24 hours, like 900s, 3600s or 86400s")
	}
	return interval
}

// QuestionStatisticsToProto converts what became of questions.
func QuestionStatisticsToProto(s *runtime.QuestionStatistics) *graphdv1.InterruptStatistics {
	out := &graphdv1.InterruptStatistics{
		CountsSince: TimeToProto(s.CountsSince), BeginTime: TimeToProto(s.Begin), Interval: DurationToProto(s.Interval),
		All: seriesToProto(&s.All), Partial: s.IsPartial,
	}
	for i := range s.Groups {
		out.Groups = append(out.Groups, &graphdv1.InterruptStatistics_Group{
			Group: s.Groups[i].Group, Series: seriesToProto(&s.Groups[i].QuestionSeries),
		})
	}
	if s.Others != nil {
		out.Others = seriesToProto(s.Others)
	}
	return out
}

func seriesToProto(s *runtime.QuestionSeries) *graphdv1.InterruptStatistics_Series {
	out := &graphdv1.InterruptStatistics_Series{
		Total: countsToProto(s.Total), MedianWait: DurationToProto(s.Waits.Median), P95Wait: DurationToProto(s.Waits.P95),
		Intervals: make([]*graphdv1.InterruptStatistics_Counts, 0, len(s.Intervals)),
	}
	for _, c := range s.Intervals {
		out.Intervals = append(out.Intervals, countsToProto(c))
	}
	return out
}

func countsToProto(c runtime.QuestionCounts) *graphdv1.InterruptStatistics_Counts {
	return &graphdv1.InterruptStatistics_Counts{
		Asked: c.Asked, Answered: c.Answered, AnsweredLate: c.Late, Defaulted: c.Defaulted, Expired: c.Expired, Withdrawn: c.Withdrawn,
	}
}

// AnswerStatisticsToProto converts how the questions of a node were answered.
func AnswerStatisticsToProto(s *runtime.AnswerStatistics) *graphdv1.AnswerStatistics {
	out := &graphdv1.AnswerStatistics{
		CountsSince: TimeToProto(s.CountsSince), Answered: s.Answered, Dismissed: s.Dismissed, Defaulted: s.Defaulted, Expired: s.Expired,
		MedianWait: DurationToProto(s.Waits.Median), P95Wait: DurationToProto(s.Waits.P95),
	}
	for _, d := range s.Decisions {
		out.Decisions = append(out.Decisions, &graphdv1.AnswerStatistics_Decision{Value: JSONToProto(d.Decision), Count: d.Count})
	}
	return out
}
