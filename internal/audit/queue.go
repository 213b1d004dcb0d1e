package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Sink writes records to one place. One goroutine calls it.
type Sink interface {
	// WriteRecords writes records in their order, and returns how many it has written.
	// The rest is written again after an error, unless the error wraps ErrRejected.
	WriteRecords(ctx context.Context, list []Record) (written int, err error)
}

// ErrRejected is the error of a sink that would never take the records.
var ErrRejected = errors.New("the records were rejected")

// Metrics count what becomes of records. name is that of the sink.
type Metrics interface {
	CountAuditRecord(name string, outcome Outcome)
	CountLostAuditRecords(name string, n int)
}

// Limits of what a sink gets at once.
const (
	maxBatchRecords = 256
	maxBatchBytes   = 512 << 10
)

// Times of a queue.
const (
	gapInterval   = time.Second      // between two records of gaps
	writeTimeout  = 10 * time.Second // of one call of a sink
	reportPause   = time.Minute      // between two log lines of a sink that fails
	firstRetry    = 100 * time.Millisecond
	longestRetry  = 10 * time.Second
	closingRetry  = 100 * time.Millisecond // while the server ends
	retryDoubling = 2
)

// queue holds the records that one sink has not written.
type queue struct {
	name    string
	sink    Sink
	log     *zap.Logger
	metrics Metrics
	now     func() time.Time // of the store
	most    int64            // bytes

	wake chan struct{} // has room for one
	done chan struct{} // closed when all is written or given up
	stop context.CancelFunc

	failures int       // of the sink in a row; used by the writer, as is reported
	reported time.Time // when a failure was logged last

	mu       sync.Mutex
	waiting  []Record
	bytes    int64 // of the waiting records, and of those that are being written
	lost     loss
	isClosed bool
}

// loss counts records since the last record of a gap.
type loss struct {
	records, unauthenticated uint64
	since                    time.Time
}

func newQueue(name string, sink Sink, o Options) *queue {
	return &queue{
		name: name, sink: sink, log: o.Logger.With(zap.String("sink", name)), metrics: o.Metrics, now: o.Now, most: o.QueueBytes,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// startWriting begins to write. closeQueue ends it, and ctx only gives its values.
func (q *queue) startWriting(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = cancel
	go contain.Func(func() {
		defer close(q.done)
		q.writeAll(ctx)
	}, contain.LogPanic(q.log, "writing the audit panicked"))()
}

// addRecord queues a record. Without room the record is lost.
func (q *queue) addRecord(r *Record) {
	size := r.heldBytes()
	q.mu.Lock()
	isLost := q.isClosed || q.bytes+size > q.most
	if isLost {
		q.countLost(1, 0)
	} else {
		q.waiting = append(q.waiting, *r)
		q.bytes += size
	}
	q.mu.Unlock()
	if !isLost {
		q.wakeWriter()
	}
}

// dropUnauthenticated counts a record that is not kept, since there are too many like it.
func (q *queue) dropUnauthenticated() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countLost(1, 1)
}

// countLost is called with mu locked.
func (q *queue) countLost(n, unauthenticated uint64) {
	if q.lost.records == 0 {
		q.lost.since = q.now()
	}
	q.lost.records += n
	q.lost.unauthenticated += unauthenticated
	q.metrics.CountLostAuditRecords(q.name, int(n))
}

func (q *queue) wakeWriter() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// closeQueue takes no more records, and waits until all are written, or until ctx ends: then
// the rest is lost.
func (q *queue) closeQueue(ctx context.Context) {
	q.mu.Lock()
	q.isClosed = true
	q.mu.Unlock()
	q.wakeWriter()
	select {
	case <-q.done:
	case <-ctx.Done():
		q.stop()
		<-q.done
	}
	q.stop()
}

// writeAll writes records until the queue is closed and empty, or ctx ends.
func (q *queue) writeAll(ctx context.Context) {
	tick := time.NewTicker(gapInterval)
	defer tick.Stop()
	var lastGap time.Time
	for {
		select {
		case <-q.wake:
		case <-tick.C:
		}
		list, isClosed := q.takeRecords(&lastGap)
		q.writeRecords(ctx, list)
		if isClosed && len(list) == 0 || ctx.Err() != nil {
			return
		}
		if isClosed {
			q.wakeWriter()
		}
	}
}

// takeRecords returns what waits, and the record of a gap after it when records are lost.
func (q *queue) takeRecords(lastGap *time.Time) (list []Record, isClosed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, q.waiting = q.waiting, nil
	if at := time.Now(); q.lost.records > 0 && (q.isClosed || at.Sub(*lastGap) >= gapInterval) {
		*lastGap = at
		lost := q.lost
		gap := Record{Kind: KindGap, Time: q.now(), Lost: lost.records, LostSince: &lost.since, Unauthenticated: lost.unauthenticated}
		q.lost = loss{}
		q.bytes += gap.heldBytes()
		list = append(list, gap)
	}
	return list, q.isClosed
}

// writeRecords writes a list. It tries again until the sink has taken it, or ctx ends.
func (q *queue) writeRecords(ctx context.Context, list []Record) {
	for len(list) > 0 {
		size := countBatch(list)
		n, err := q.writeBatch(ctx, list[:size])
		q.settleRecords(list[:n], true)
		list = list[n:]
		switch {
		case err == nil:
			if q.failures > 0 {
				q.log.Info("the audit is written again", zap.Int("failures", q.failures))
			}
			q.failures = 0
			continue
		case errors.Is(err, ErrRejected):
			q.log.Error("the sink refused records of the audit", zap.Error(err), zap.Int("lost", size-n))
			q.settleRecords(list[:size-n], false)
			list = list[size-n:]
			continue
		}
		q.failures++
		if at := time.Now(); at.Sub(q.reported) >= reportPause {
			q.reported = at
			q.log.Error("the audit can't be written; calls go on, and records wait while there is room", zap.Error(err), zap.Int("failures", q.failures))
		}
		if backoff.Sleep(ctx, q.retryDelay()) != nil {
			q.log.Error("records of the audit are lost: they could not be written before the server ended", zap.Int("lost", len(list)))
			q.settleRecords(list, false)
			return
		}
	}
}

func (q *queue) retryDelay() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed {
		return closingRetry
	}
	return backoff.Policy{First: firstRetry, Max: longestRetry, Factor: retryDoubling}.Delay(q.failures)
}

// writeBatch calls the sink. A panic of the sink is an error that rejects the records.
func (q *queue) writeBatch(ctx context.Context, list []Record) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if p := contain.Call(func() { n, err = q.sink.WriteRecords(ctx, list) }); p != nil {
		q.log.Error("writing the audit panicked", p.Fields()...)
		return 0, errors.Join(ErrRejected, p)
	}
	return min(n, len(list)), err
}

// settleRecords ends the waiting of records that are written or lost.
func (q *queue) settleRecords(list []Record, isWritten bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range list {
		q.bytes -= list[i].heldBytes()
		switch {
		case isWritten && list[i].Kind == KindCall:
			q.metrics.CountAuditRecord(q.name, list[i].Outcome)
		case !isWritten && list[i].Kind == KindGap: // it stays a gap
			q.countLost(list[i].Lost, list[i].Unauthenticated)
		case !isWritten:
			q.countLost(1, 0)
		}
	}
}

// countBatch returns the number of records that a sink gets at once.
func countBatch(list []Record) int {
	bytes := int64(0)
	for i := range list {
		bytes += list[i].heldBytes()
		if i > 0 && (i >= maxBatchRecords || bytes > maxBatchBytes) {
			return i
		}
	}
	return len(list)
}
