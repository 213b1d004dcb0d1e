package statistics

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// keptSlots is the number of slots of runtime.StatisticsResolution that a series has at most.
const keptSlots = int64(runtime.StatisticsSpan / runtime.StatisticsResolution)

// slotNumber returns the number of the slot of a time.
func slotNumber(at time.Time) int64 {
	return at.Unix() / int64(runtime.StatisticsResolution/time.Second)
}

// occurrence is what happened to a question.
type occurrence struct {
	slot     int64              // when
	outcome  checkpoint.Outcome // "" = it was asked
	isLate   bool
	bucket   int  // of the wait for an answer
	isUndone bool // an answer is taken back
}

func (o *occurrence) isAnswer() bool {
	return o.outcome == checkpoint.OutcomeAnswered || o.outcome == checkpoint.OutcomeDismissed
}

// slot is what happened in one slot of time.
type slot struct {
	number int64

	asked, answered, late, defaulted, expired, withdrawn uint32
	waits                                                waits
}

// countOccurrence adds what happened, or takes an answer from the count.
func (s *slot) countOccurrence(o *occurrence) {
	if o.isUndone {
		s.takeAnswer(o)
		return
	}
	switch o.outcome {
	case "":
		s.asked++
	case checkpoint.OutcomeAnswered, checkpoint.OutcomeDismissed:
		s.answered++
		s.waits[o.bucket]++
		if o.isLate {
			s.late++
		}
	case checkpoint.OutcomeDefault:
		s.defaulted++
	case checkpoint.OutcomeExpired:
		s.expired++
	case checkpoint.OutcomeWithdrawn:
		s.withdrawn++
	}
}

func (s *slot) takeAnswer(o *occurrence) {
	if s.waits[o.bucket] == 0 {
		return // another server counted it
	}
	s.answered--
	s.waits[o.bucket]--
	if o.isLate && s.late > 0 {
		s.late--
	}
}

func (s *slot) addTo(c *runtime.QuestionCounts) {
	c.Asked += int64(s.asked)
	c.Answered += int64(s.answered)
	c.Late += int64(s.late)
	c.Defaulted += int64(s.defaulted)
	c.Expired += int64(s.expired)
	c.Withdrawn += int64(s.withdrawn)
}

// series has the slots of the last 24 hours in which something happened, oldest first.
type series struct {
	slots []slot
}

// countOccurrence counts what happened in its slot. A slot that is missing is new, unless the
// clock went back.
func (s *series) countOccurrence(o *occurrence) {
	if o.isUndone {
		for i := len(s.slots) - 1; i >= 0; i-- {
			if s.slots[i].number == o.slot {
				s.slots[i].countOccurrence(o)
			}
		}
		return
	}
	last := len(s.slots) - 1
	if last < 0 || s.slots[last].number < o.slot {
		s.dropOldSlots(o.slot)
		s.slots = append(s.slots, slot{number: o.slot})
		last = len(s.slots) - 1
	}
	s.slots[last].countOccurrence(o)
}

// dropOldSlots drops the slots that are a day older than the present one. It moves the others
// to the front, so that the memory is used again.
func (s *series) dropOldSlots(now int64) {
	old := 0
	for old < len(s.slots) && s.slots[old].number <= now-keptSlots {
		old++
	}
	s.slots = s.slots[:copy(s.slots, s.slots[old:])]
}

// isIdle reports whether nothing has happened for a day.
func (s *series) isIdle(now int64) bool {
	return len(s.slots) == 0 || s.slots[len(s.slots)-1].number <= now-keptSlots
}

// sums adds series up by interval.
type sums struct {
	first     int64 // slot with which the oldest interval begins
	slots     int64 // of an interval
	intervals []runtime.QuestionCounts
	waits     waits
}

// newSums makes sums of intervals of which the last one has the present slot.
func newSums(now int64, interval time.Duration) *sums {
	n := int64(interval / runtime.StatisticsResolution)
	count := keptSlots / n
	return &sums{first: now - now%n - (count-1)*n, slots: n, intervals: make([]runtime.QuestionCounts, count)}
}

// newEmpty makes sums of the same intervals.
func (s *sums) newEmpty() *sums {
	return &sums{first: s.first, slots: s.slots, intervals: make([]runtime.QuestionCounts, len(s.intervals))}
}

func (s *sums) begin() time.Time {
	return time.Unix(s.first*int64(runtime.StatisticsResolution/time.Second), 0).UTC()
}

func (s *sums) addSeries(of *series) {
	for i := range of.slots {
		at := of.slots[i].number - s.first
		if at < 0 || at/s.slots >= int64(len(s.intervals)) {
			continue
		}
		of.slots[i].addTo(&s.intervals[at/s.slots])
		s.waits.addWaits(&of.slots[i].waits)
	}
}

func (s *sums) toSeries() runtime.QuestionSeries {
	out := runtime.QuestionSeries{Waits: s.waits.summarize(), Intervals: s.intervals}
	for _, c := range s.intervals {
		out.Total.Asked += c.Asked
		out.Total.Answered += c.Answered
		out.Total.Late += c.Late
		out.Total.Defaulted += c.Defaulted
		out.Total.Expired += c.Expired
		out.Total.Withdrawn += c.Withdrawn
	}
	return out
}
