package sqlite

import (
	"sync"
	"sync/atomic"
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
)

// States of a job.
const (
	jobWaits int32 = iota
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
	state  atomic.Int32
	next   *job // of the thread
	done   chan error
}

// leave says that the caller waits no more. It reports false when the change
// has begun.
func (j *job) leave() bool { return j.state.CompareAndSwap(jobWaits, jobGone) }

// queue is the jobs that wait. Threads take turns, whatever one of them hands
// in. Large jobs go alone, and what is small goes between two of them: it never
// waits for more than one.
type queue struct {
	mu     sync.Mutex
	small  line
	large  line
	closed bool
	turn   bool          // of a large one
	ready  chan struct{} // something waits, or the queue is closed
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put hands a job in. It reports false when the queue is closed.
func (q *queue) put(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if j.cost > largeCost {
		q.large.push(j)
	} else {
		q.small.push(j)
	}
	q.signal()
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

// waiting is how many jobs wait.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.small.n + q.large.n
}

// take appends to batch what has its turn now. It reports false when the queue
// is closed and empty.
func (q *queue) take(batch []*job) ([]*job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turn = !q.turn && q.large.n > 0 || q.small.n == 0; q.turn {
		if j := q.large.pop(); j != nil {
			return append(batch, j), true
		}
	}
	for cost := 0; len(batch) < maxBatch && cost < batchCost; {
		j := q.small.pop()
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
	firsts []*job
	last   map[string]*job // by thread
	n      int
}

func (l *line) push(j *job) {
	if l.last == nil {
		l.last = map[string]*job{}
	}
	l.n++
	if last := l.last[j.thread]; last != nil {
		last.next = j
	} else {
		l.firsts = append(l.firsts, j)
	}
	l.last[j.thread] = j
}

// pop takes the job whose turn it is, nil when none waits.
func (l *line) pop() *job {
	for len(l.firsts) > 0 {
		j := l.firsts[0]
		l.firsts[0] = nil
		l.firsts = l.firsts[1:]
		l.n--
		if j.next != nil {
			l.firsts = append(l.firsts, j.next)
			j.next = nil
		} else {
			delete(l.last, j.thread)
		}
		if j.state.CompareAndSwap(jobWaits, jobBegun) {
			return j
		}
	}
	return nil
}
