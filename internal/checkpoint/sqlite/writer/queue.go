package writer

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

const (
	// maxBatch bounds how many changes share a transaction, so that the first
	// change does not wait for ever on the last.
	maxBatch = 256
	// batchCost bounds their total cost. A change that costs more than largeCost
	// has a transaction of its own.
	batchCost, largeCost = 4 << 20, 1 << 20
	// RowCost is the cost of a row beside its bytes.
	RowCost = 256
	// maxJobs and maxCost bound the waiting changes: a disk that stalls must not
	// fill the memory with them. An abandoned job counts among maxJobs until its
	// turn.
	maxJobs, maxCost = 1 << 16, 128 << 20
)

// States of a job.
const (
	jobWaiting = iota
	jobBegun
	jobAbandoned // its caller does not wait any more, and nothing was done
)

// Job is a change that waits in the queue. It checks first and writes then: an
// error of the contract means that it has written nothing.
type Job struct {
	Run        func(ctx context.Context, conn *sql.Conn) error // with the connection's context
	Thread     string                                          // "" = of none
	Cost       int                                             // bytes, with RowCost for each row
	FreesSpace bool                                            // it needs space only to free more
	IsUntimed  bool                                            // its caller waits for it as long as it takes

	state int  // guarded by queue.mu
	next  *Job // of the thread
	turn  *Job // the job that has its turn next
	done  chan error
}

// queue is the jobs that wait. Threads take turns, however many jobs a thread
// hands in. Large jobs go alone. Small jobs go between two large jobs: they never
// wait for more than one large job.
type queue struct {
	mu          sync.Mutex
	small       jobLine
	large       jobLine
	liveCount   int // jobs whose callers wait
	cost        int // of those
	closed      bool
	isLargeTurn bool          // of a large job
	ready       chan struct{} // something waits, or the queue is closed
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// putJob hands a job in. It answers ErrStoreBusy when too much waits already; a
// job that is alone may cost more.
func (q *queue) putJob(j *Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := q.small.count + q.large.count; {
	case q.closed:
		return fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	case n >= maxJobs, q.liveCount > 0 && q.cost+j.Cost > maxCost:
		return fmt.Errorf("%w: %d changes wait that cost %d bytes", checkpoint.ErrStoreBusy, q.liveCount, q.cost)
	}
	q.liveCount++
	q.cost += j.Cost
	if j.Cost > largeCost {
		q.large.pushJob(j)
	} else {
		q.small.pushJob(j)
	}
	q.signalReady()
	return nil
}

// abandonJob frees a job whose caller waits no more. It reports false when the
// change has begun.
func (q *queue) abandonJob(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.state != jobWaiting {
		return false
	}
	j.state, j.Run = jobAbandoned, nil
	q.liveCount--
	q.cost -= j.Cost
	return true
}

func (q *queue) signalReady() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// closeQueue lets no more jobs in; those that wait still have their turn.
func (q *queue) closeQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signalReady()
}

// countJobs returns how many jobs are queued, with abandoned jobs.
func (q *queue) countJobs() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.small.count + q.large.count
}

// beginNext takes the next job of a line, nil when none waits.
func (q *queue) beginNext(l *jobLine) *Job {
	j := l.popJob()
	if j != nil {
		j.state = jobBegun
		q.liveCount--
		q.cost -= j.Cost
	}
	return j
}

// takeBatch appends to batch the jobs that are next. It reports false when the
// queue is closed and empty.
func (q *queue) takeBatch(batch []*Job) ([]*Job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isLargeTurn = !q.isLargeTurn && q.large.count > 0 || q.small.count == 0; q.isLargeTurn {
		if j := q.beginNext(&q.large); j != nil {
			return append(batch, j), true
		}
	}
	for cost := 0; len(batch) < maxBatch && cost < batchCost; {
		j := q.beginNext(&q.small)
		if j == nil {
			break
		}
		cost += j.Cost
		batch = append(batch, j)
	}
	return batch, !q.closed || len(batch) > 0 || q.small.count+q.large.count > 0
}

// jobLine is jobs of several threads. It has the first job of each thread, in the
// order of their turns; each links to the later jobs of its thread.
type jobLine struct {
	first, end *Job
	last       map[string]*Job // by thread
	count      int
}

func (l *jobLine) pushJob(j *Job) {
	if l.last == nil {
		l.last = map[string]*Job{}
	}
	l.count++
	if last := l.last[j.Thread]; last != nil {
		last.next = j
	} else {
		l.appendJob(j)
	}
	l.last[j.Thread] = j
}

// appendJob puts a thread behind all others.
func (l *jobLine) appendJob(j *Job) {
	if l.end == nil {
		l.first = j
	} else {
		l.end.turn = j
	}
	l.end = j
}

// popJob takes the job whose turn it is and whose caller waits, nil when there is
// none.
func (l *jobLine) popJob() *Job {
	for l.first != nil {
		j := l.first
		if l.first = j.turn; l.first == nil {
			l.end = nil
		}
		j.turn = nil
		l.count--
		if j.next != nil {
			l.appendJob(j.next)
			j.next = nil
		} else {
			delete(l.last, j.Thread)
		}
		if j.state == jobWaiting {
			return j
		}
	}
	return nil
}
