package notify

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/trail"
)

// commitTime bounds the time between the moment that an entry tells and the moment at which the
// store has it. Changes wait for a store for seconds.
const commitTime = 10 * time.Minute

// maxNumbers bounds the questions whose last sent entry a server remembers. Beyond it entries of
// the last commitTime may be sent again.
const maxNumbers = 32 << 10

// progress knows which entries of questions are sent, or on their way. A number for each
// question would grow without end. So it keeps those of the questions that have changed lately, and
// knows of the others that what is older than the last moment at which all was sent is sent.
type progress struct {
	whole    time.Time // see Place.Whole
	now, old map[questionID]int
}

type questionID struct{ thread, id string }

func newProgress(whole time.Time) *progress {
	return &progress{whole: whole, now: map[questionID]int{}}
}

// takeUnsent returns the entries of a question that are not sent yet, and notes them as sent. The
// last entry of a question that is not remembered is always among them: the change that brought
// the question here may have brought the entry.
func (p *progress) takeUnsent(q *checkpoint.Interrupt) ([]trail.Entry, error) {
	log := q.FullTrail()
	entries, err := log.Entries()
	key := questionID{q.Thread, q.ID}
	from := p.find(key)
	if from == 0 || from > len(entries) {
		from = p.countOld(entries)
	}
	p.note(key, len(entries))
	return entries[from:], err
}

// countOld returns the number of the first entries that are sent already for their age.
func (p *progress) countOld(entries []trail.Entry) int {
	sent := 0
	for i := range max(0, len(entries)-1) {
		if p.whole.IsZero() || !entries[i].Time.Before(p.whole.Add(-commitTime)) {
			break
		}
		sent = i + 1
	}
	return sent
}

func (p *progress) find(key questionID) int {
	if n, ok := p.now[key]; ok {
		return n
	}
	return p.old[key]
}

func (p *progress) note(key questionID, number int) {
	if len(p.now) >= maxNumbers/2 {
		p.old, p.now = p.now, make(map[questionID]int, maxNumbers/2)
	}
	p.now[key] = number
}
