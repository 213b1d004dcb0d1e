package sqlite

import (
	"fmt"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

const (
	// maxBatch bounds how many changes share a transaction, so that the first
	// one does not wait for ever on the last.
	maxBatch = 256
	// batchCost bounds what they cost together, and largeCost is above what a
	// change has a transaction of its own.
	batchCost, largeCost = 4 << 20, 1 << 20
	// rowCost is what a row costs beside its bytes.
	rowCost = 256
	// maxJobs and maxCost bound what waits, so that a disk that stalls does not
	// fill the memory with changes. A job that left counts among maxJobs until its
	// turn would have been.
	maxJobs, maxCost = 1 << 16, 128 << 20
)

// States of a job.
const (
	jobWaits = iota
	jobBegun
	jobGone // its caller does not wait any more, and nothing was done
)

// job is one change that waits for its turn. It checks first and writes then:
// an error of the contract means that it has written nothing.
type job struct {
	run    func(w *writer) error
	thread string // "" = of none
	cost   int
	frees  bool // it needs room only to make more of it
	state  int  // guarded by queue.mu
	next   *job // of the thread
	turn   *job // whose turn comes after that of this one
	done   chan error
}

// queue is the jobs that wait. Threads take turns, whatever one of them hands
// in. Large jobs go alone, and what is small goes between two of them: it never
// waits for more than one.
type queue struct {
	mu     sync.Mutex
	small  line
	large  line
	live   int // jobs whose callers wait
	cost   int // of those
	closed bool
	turn   bool          // of a large one
	ready  chan struct{} // something waits, or the queue is closed
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put hands a job in. It answers ErrStoreBusy when too much waits already; a
// job that is alone may cost more.
func (q *queue) put(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := q.small.n + q.large.n; {
	case q.closed:
		return fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	case n >= maxJobs, q.live > 0 && q.cost+j.cost > maxCost:
		return fmt.Errorf("%w: %d changes wait that cost %d bytes", checkpoint.ErrStoreBusy, q.live, q.cost)
	}
	q.live++
	q.cost += j.cost
	if j.cost > largeCost {
		q.large.push(j)
	} else {
		q.small.push(j)
	}
	q.signal()
	return nil
}

// leave says that the caller of a job waits no more: what the job holds is let
// go. It reports false when the change has begun.
func (q *queue) leave(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.state != jobWaits {
		return false
	}
	j.state, j.run = jobGone, nil
	q.live--
	q.cost -= j.cost
	return true
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// close lets no more jobs in; those that wait still have their turn.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// waiting is how many jobs are in line, those that left included.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.small.n + q.large.n
}

// begin takes the next job of a line, nil when none waits.
func (q *queue) begin(l *line) *job {
	j := l.pop()
	if j != nil {
		j.state = jobBegun
		q.live--
		q.cost -= j.cost
	}
	return j
}

// take appends to batch what has its turn now. It reports false when the queue
// is closed and empty.
func (q *queue) take(batch []*job) ([]*job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn = !q.turn && q.large.n > 0 || q.small.n == 0; q.turn {
		if j := q.begin(&q.large); j != nil {
			return append(batch, j), true
		}
	}
	for cost := 0; len(batch) < maxBatch && cost < batchCost; {
		j := q.begin(&q.small)
		if j == nil {
			break
		}
		cost += j.cost
		batch = append(batch, j)
	}
	return batch, !q.closed || len(batch) > 0 || q.small.n+q.large.n > 0
}

// line is jobs of several threads. It has the first one of each thread, in the
// order of their turn; the others hang behind it.
type line struct {
	first, end *job
	last       map[string]*job // by thread
	n          int
}

func (l *line) push(j *job) {
	if l.last == nil {
		l.last = map[string]*job{}
	}
	l.n++
	if last := l.last[j.thread]; last != nil {
		last.next = j
	} else {
		l.append(j)
	}
	l.last[j.thread] = j
}

// append gives a thread its turn after those of all others.
func (l *line) append(j *job) {
	if l.end == nil {
		l.first = j
	} else {
		l.end.turn = j
	}
	l.end = j
}

// pop takes the job whose turn it is and whose caller waits, nil when there is
// none.
func (l *line) pop() *job {
	for l.first != nil {
		j := l.first
		if l.first = j.turn; l.first == nil {
			l.end = nil
		}
		j.turn = nil
		l.n--
		if j.next != nil {
			l.append(j.next)
			j.next = nil
		} else {
			delete(l.last, j.thread)
		}
		if j.state == jobWaits {
			return j
		}
	}
	return nil
}
