package quota

import "fmt"

// Limit is the name of a limit, as files, errors and metrics have it.
type Limit uint8

// The limits. The first three are rates, the others are counts. The engine counts what those
// after Workers bound. They are limits of tenants alone, but for LiveRuns.
const (
	Calls   Limit = iota // calls of any kind
	Starts               // calls that start a run
	Answers              // calls that answer questions

	Streams // open streams, and calls that wait for a run
	Workers // connected workers

	LiveRuns      // runs that the server drives
	QueuedRuns    // runs that wait behind others
	OpenQuestions // questions that wait for an answer
	Threads
	StateBytes // bytes of a state
	Graphs     // names of graphs

	limitCount = iota
	rateCount  = int(Answers) + 1
	heldCount  = int(Workers) + 1 // limits whose things a Limiter counts, and rates
)

// Limits lists all limits.
func Limits() []Limit {
	all := make([]Limit, limitCount)
	for i := range all {
		all[i] = Limit(i)
	}
	return all
}

// String returns the name.
func (l Limit) String() string {
	switch l {
	case Calls:
		return "calls"
	case Starts:
		return "starts"
	case Answers:
		return "answers"
	case Streams:
		return "streams"
	case Workers:
		return "workers"
	case LiveRuns:
		return "live_runs"
	case QueuedRuns:
		return "queued_runs"
	case OpenQuestions:
		return "open_questions"
	case Threads:
		return "threads"
	case StateBytes:
		return "state_bytes"
	case Graphs:
		return "graphs"
	}
	return fmt.Sprintf("Limit(%d)", uint8(l))
}

// IsRate reports whether the limit bounds events per second, and not a number of
// things at a time.
func (l Limit) IsRate() bool { return int(l) < rateCount }

// IsOfTenants reports whether callers have no such limit, but only tenants.
func (l Limit) IsOfTenants() bool { return int(l) >= heldCount && l != LiveRuns }

// IsOfRuns reports whether callers have the limit for the runs that they have started. A run
// knows the name of its caller, and not the groups.
func (l Limit) IsOfRuns() bool { return l == LiveRuns }

// Unlimited is the value that takes a limit away.
const Unlimited = -1

// Rate bounds events: PerSecond on average, and Burst at once.
type Rate struct {
	// PerSecond is Unlimited, or more than 0.
	PerSecond float64 `yaml:"per_second"`
	// Burst is 1 or more; 0 = PerSecond, rounded up.
	Burst int `yaml:"burst"`
}

// LimitSet has a value for each limit of a tenant or of a caller.
type LimitSet struct {
	rates  [rateCount]Rate
	counts [limitCount]int64 // those of rates are not used
}

// newLimitSet returns a set without limits.
func newLimitSet() LimitSet {
	var s LimitSet
	for i := range s.rates {
		s.rates[i].PerSecond = Unlimited
	}
	for i := range s.counts {
		s.counts[i] = Unlimited
	}
	return s
}

// Rate returns the value of a rate. It must be one.
func (s *LimitSet) Rate(l Limit) Rate { return s.rates[l] }

// Count returns the value of a count, or Unlimited. It must be no rate.
func (s *LimitSet) Count(l Limit) int64 { return s.counts[l] }
