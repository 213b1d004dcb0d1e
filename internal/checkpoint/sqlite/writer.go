package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// maxKnownThreads bounds how many threads are remembered.
const maxKnownThreads = 4096

// writer makes all changes of the file.
type writer struct {
	life       context.Context // of the connection; it ends with close
	db         *sql.DB
	conn       *sql.Conn
	store      *Store
	now        func() time.Time
	statements *statements
	// lastChange is the number of the last change of any interrupt.
	lastChange uint64
	// threads is what the last changes left of their threads, as the open
	// transaction sees it. No other process writes the file, so it is
	// correct.
	threads map[string]threadState

	queue          *queue
	limits         limits
	timers         sync.Pool // of callers that wait
	space          space
	endTransaction func() error  // commitTransaction, unless a test says otherwise
	isFull         atomic.Bool   // there was no space for a change, and there is none yet
	finished       chan struct{} // closed when the last job is done
}

// limits bound how long a change waits in the queue, and for its end when it has
// begun.
type limits struct{ turn, end time.Duration }

func newWriter(life context.Context, db *sql.DB, s *Store, available space) (*writer, error) {
	conn, err := db.Conn(life)
	if err != nil {
		return nil, toContractError(err)
	}
	w := &writer{
		life: life, db: db, conn: conn, store: s, now: s.currentTime,
		threads: map[string]threadState{},
		queue:   newQueue(), limits: s.limits, finished: make(chan struct{}),
		space: available,
	}
	if w.statements, err = prepareStatements(life, conn); err != nil {
		return nil, errors.Join(toContractError(err), conn.Close())
	}
	w.endTransaction = w.commitTransaction
	if err := w.limitPages(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var change int64
	err = conn.QueryRowContext(life, `SELECT value FROM meta WHERE key = 'last_change'`).Scan(&change)
	if err != nil {
		return nil, errors.Join(toContractError(err), conn.Close())
	}
	w.lastChange = uint64(change)
	go contain.Func(w.keepCommitting, func(*contain.PanicError) {})()
	return w, nil
}

// runChange hands in a change of no thread.
func (w *writer) runChange(ctx context.Context, run func(w *writer) error) error {
	return w.runJob(ctx, &job{run: run})
}

// runJob hands in a change and waits until it is durable or refused. It answers
// ErrStoreBusy, and nothing is done, when the change is not begun in time. When ctx
// or the time ends after it has begun, the outcome is unknown.
func (w *writer) runJob(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return abandonedError(ctx)
	}
	j.done = make(chan error, 1)
	if err := w.queue.putJob(j); err != nil {
		return err
	}
	timer, used := w.timers.Get().(*time.Timer)
	if !used {
		timer = time.NewTimer(w.limits.turn)
	} else {
		timer.Reset(w.limits.turn)
	}
	defer func() {
		timer.Stop()
		w.timers.Put(timer)
	}()
	for late := false; ; {
		select {
		case err := <-j.done:
			return err
		case <-ctx.Done():
			if w.queue.abandonJob(j) {
				return abandonedError(ctx)
			}
			return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, ctx.Err()) // it may be made still
		case <-timer.C:
		}
		if w.queue.abandonJob(j) {
			return fmt.Errorf("%w: %d changes wait, and this one had no turn within %s",
				checkpoint.ErrStoreBusy, w.queue.countJobs(), w.limits.turn)
		}
		if late {
			return fmt.Errorf("%w: sqlite: a change was not written within %s", checkpoint.ErrOutcomeUnknown, w.limits.end)
		}
		late = true
		timer.Reset(w.limits.end)
	}
}

func abandonedError(ctx context.Context) error {
	return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
}

// closeWriter waits for the jobs that were handed in.
func (w *writer) closeWriter() error {
	w.queue.closeQueue()
	<-w.finished
	return errors.Join(w.statements.closeAll(), w.conn.Close(), w.db.Close())
}

// keepCommitting commits, as one, what came in while the commit before was made.
func (w *writer) keepCommitting() {
	defer close(w.finished)
	batch, more := make([]*job, 0, maxBatch), true
	for more {
		if w.queue.countJobs() == 0 {
			<-w.queue.ready
		}
		w.gatherJobs()
		if batch, more = w.queue.takeBatch(batch[:0]); len(batch) > 0 {
			w.commitBatch(batch)
		}
		clear(batch)
	}
}

// runContained runs a change. One that panics is not valid: it is undone, and the
// writer lives.
func (j *job) runContained(w *writer) (err error) {
	if p := contain.Call(func() { err = j.run(w) }); p != nil {
		return &panickedError{p}
	}
	return err
}

// panickedError is a change over which the store panicked.
type panickedError struct{ cause *contain.PanicError }

// Error says what was panicked with.
func (e *panickedError) Error() string { return "the change could not be written: " + e.cause.Error() }

// Unwrap returns what it is in the contract, and the panic.
func (e *panickedError) Unwrap() []error { return []error{checkpoint.ErrInvalid, e.cause} }

// gatherJobs lets callers that the last commit woke hand in their next changes,
// for as long as more arrive. It never waits: a lone job costs it one turn.
func (w *writer) gatherJobs() {
	for seen := -1; seen < w.queue.countJobs(); {
		seen = w.queue.countJobs()
		runtime.Gosched()
	}
}

// commitBatch runs jobs in one transaction. A job that is refused has changed
// nothing. When one breaks, the transaction is undone and each has its own.
func (w *writer) commitBatch(batch []*job) {
	if batch = w.refuseWhileFull(batch); len(batch) == 0 {
		return
	}
	results, err := w.runTransaction(batch)
	switch {
	case err == nil:
		for i, j := range batch {
			j.done <- results[i]
		}
		if w.isFull.Load() { // these have freed space
			w.truncateLog()
			w.restoreReserve()
		}
		w.limitLog(batch)
	case errors.Is(err, checkpoint.ErrStoreReplaced):
		for _, j := range batch {
			j.done <- err
		}
	case len(batch) > 1:
		for i := range batch {
			w.commitBatch(batch[i : i+1])
		}
	case w.lacksSpace(err):
		w.retryWithReserve(batch[0], err)
	default:
		batch[0].done <- err
	}
}

// runTransaction runs jobs in one transaction. An error means that there was none;
// once it is committed, only the results tell.
func (w *writer) runTransaction(batch []*job) (results []error, err error) {
	if err := w.store.file.checkReplaced(); err != nil {
		return nil, err
	}
	if err := w.beginTransaction(); err != nil {
		return nil, toContractError(err)
	}
	results = make([]error, len(batch))
	for i, j := range batch {
		err := j.runContained(w)
		if _, broken := errors.AsType[*panickedError](err); broken {
			return nil, w.rollBackTransaction(err)
		}
		if err != nil && !isRefusal(err) {
			return nil, w.rollBackTransaction(toContractError(err))
		}
		results[i] = err
	}
	if err := w.endTransaction(); err != nil {
		err = w.rollBackTransaction(toContractError(err))
		if lacksPages(err) {
			return nil, err
		}
		if w.lacksSpace(err) {
			w.isFull.Store(true)
		}
		markUnknown(results, err) // what was written of it may be found by who opens the file next
		return results, nil
	}
	if err := w.store.file.checkReplaced(); err != nil { // before anything is acknowledged
		markUnknown(results, err)
	}
	return results, nil
}

// commitTransaction ends the transaction.
func (w *writer) commitTransaction() error { return w.execStatement(w.statements.commit) }

// markUnknown says of what may have been committed that the outcome is unknown: the
// changes are in the file that is open, which may not be the one that is found
// later, or the commit failed half-way. Refusals have changed nothing either way.
func markUnknown(results []error, cause error) {
	for i := range results {
		if results[i] == nil {
			results[i] = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, cause)
		}
	}
}

// beginTransaction begins a transaction; one that could not be ended before is ended now.
func (w *writer) beginTransaction() error {
	_, err := w.statements.begin.ExecContext(w.life)
	if err == nil {
		return nil
	}
	if _, stuck := w.statements.rollback.ExecContext(w.life); stuck != nil {
		return err
	}
	_, err = w.statements.begin.ExecContext(w.life)
	return err
}

// rollBackTransaction rolls back. Some errors have made SQLite do so already, and then there
// is no transaction to end.
func (w *writer) rollBackTransaction(cause error) error {
	clear(w.threads)
	_, _ = w.statements.rollback.ExecContext(w.life)
	return cause
}

func isRefusal(err error) bool {
	return errors.Is(err, checkpoint.ErrConflict) || errors.Is(err, checkpoint.ErrInvalid) ||
		errors.Is(err, checkpoint.ErrGraphExists) || errors.Is(err, checkpoint.ErrGraphNotFound)
}
