package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// StatisticsQuery asks what became of the questions of a tenant in the last 24 hours.
type StatisticsQuery struct {
	Tenant string
	// Interval is the length of the parts into which the time is divided: a multiple of
	// StatisticsResolution that divides a day.
	Interval time.Duration
	// ShowsGraph reports whether questions of a graph count; nil = all do. The name is as
	// clients know it.
	ShowsGraph func(graph string) bool
}

// StatisticsResolution is the shortest interval of statistics, and StatisticsSpan the time
// that they have.
const (
	StatisticsResolution = 5 * time.Minute
	StatisticsSpan       = 24 * time.Hour
)

// QuestionCounts is what became of questions in some time. A question counts as asked when
// it is, and as one of the others when it ends.
type QuestionCounts struct {
	Asked     int64
	Answered  int64 // by people
	Late      int64 // of Answered: after the first step or the expiry was due
	Defaulted int64 // the default counts
	Expired   int64 // no answer came, and there was no default
	Withdrawn int64 // the run was cancelled, or the question became void
}

// QuestionSeries is what became of some questions, over time.
type QuestionSeries struct {
	Total     QuestionCounts
	Waits     WaitTimes
	Intervals []QuestionCounts // oldest first, all of them
}

// WaitTimes are times until people have answered, as exact as the buckets in which they are
// counted; zero without an answer.
type WaitTimes struct {
	Median, P95 time.Duration
}

// GroupSeries is what became of the questions of one group.
type GroupSeries struct {
	Group string // "" = questions of no group
	QuestionSeries
}

// QuestionStatistics is what became of questions, as far as this server did it.
type QuestionStatistics struct {
	CountsSince time.Time // when this server began to count
	Begin       time.Time // of the oldest interval
	Interval    time.Duration
	All         QuestionSeries
	Groups      []GroupSeries   // by name
	Others      *QuestionSeries // groups beyond the limit, nil = none
	// IsPartial reports that not all questions are in All and Groups: there are too many
	// graphs or tenants.
	IsPartial bool
}

// AnswerStatistics is how the questions of one node were answered, as far as this server
// did it.
type AnswerStatistics struct {
	CountsSince time.Time
	Answered    int64 // by people, the dismissed ones among them
	Dismissed   int64
	Defaulted   int64
	Expired     int64
	Decisions   []DecisionCount // the most frequent first
	Waits       WaitTimes
}

// DecisionCount is how often a decision was made.
type DecisionCount struct {
	Decision payload.JSON
	Count    int64
}
