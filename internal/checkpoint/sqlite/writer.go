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

// maxKnown bounds how many threads are remembered.
const maxKnown = 4096

// writer is the only one who changes the file.
type writer struct {
	life  context.Context // of the connection; it ends with close
	db    *sql.DB
	conn  *sql.Conn
	store *Store
	now   func() time.Time
	stmt  *statements
	// change is the number of the last change of any question.
	change uint64
	// known is what the last changes left of their threads, as the open
	// transaction sees it. Nobody else writes the file, so it is true.
	known map[string]present

	queue  *queue
	limit  limits
	timers sync.Pool // of callers that wait
	space  space
	end    func() error  // commitAll, unless a test says otherwise
	full   atomic.Bool   // there was no room for a change, and there is none yet
	idle   chan struct{} // closed when the last job is done
}

// limits bound how long a change waits for its turn, and for its end when it
// has begun.
type limits struct{ turn, end time.Duration }

func newWriter(life context.Context, db *sql.DB, s *Store, room space) (*writer, error) {
	conn, err := db.Conn(life)
	if err != nil {
		return nil, failed(err)
	}
	w := &writer{
		life: life, db: db, conn: conn, store: s, now: s.clock,
		known: map[string]present{},
		queue: newQueue(), limit: s.limits, idle: make(chan struct{}),
		space: room,
	}
	if w.stmt, err = prepareStatements(life, conn); err != nil {
		return nil, errors.Join(failed(err), conn.Close())
	}
	w.end = w.commitAll
	if err := w.limitPages(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var change int64
	err = conn.QueryRowContext(life, `SELECT value FROM meta WHERE key = 'last_change'`).Scan(&change)
	if err != nil {
		return nil, errors.Join(failed(err), conn.Close())
	}
	w.change = uint64(change)
	go contain.Func(w.loop, func(*contain.PanicError) {})()
	return w, nil
}

// do hands in a change of no thread.
func (w *writer) do(ctx context.Context, run func(w *writer) error) error {
	return w.doJob(ctx, &job{run: run})
}

// doJob hands in a change and waits until it is durable or refused. It answers
// ErrStoreBusy, and nothing is done, when the change does not have its turn in
// time. When ctx or the time ends after it has begun, nobody knows what became
// of it.
func (w *writer) doJob(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(ctx)
	}
	j.done = make(chan error, 1)
	if err := w.queue.put(j); err != nil {
		return err
	}
	timer, used := w.timers.Get().(*time.Timer)
	if !used {
		timer = time.NewTimer(w.limit.turn)
	} else {
		timer.Reset(w.limit.turn)
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
			if w.queue.leave(j) {
				return gaveUp(ctx)
			}
			return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, ctx.Err()) // it may be made still
		case <-timer.C:
		}
		if w.queue.leave(j) {
			return fmt.Errorf("%w: %d changes wait, and this one had no turn within %s",
				checkpoint.ErrStoreBusy, w.queue.waiting(), w.limit.turn)
		}
		if late {
			return fmt.Errorf("%w: sqlite: a change was not written within %s", checkpoint.ErrOutcomeUnknown, w.limit.end)
		}
		late = true
		timer.Reset(w.limit.end)
	}
}

func gaveUp(ctx context.Context) error {
	return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
}

// close waits for the jobs that were handed in.
func (w *writer) close() error {
	w.queue.close()
	<-w.idle
	return errors.Join(w.stmt.close(), w.conn.Close(), w.db.Close())
}

// loop commits, as one, what came in while the commit before was made.
func (w *writer) loop() {
	defer close(w.idle)
	batch, more := make([]*job, 0, maxBatch), true
	for more {
		if w.queue.waiting() == 0 {
			<-w.queue.ready
		}
		w.gather()
		if batch, more = w.queue.take(batch[:0]); len(batch) > 0 {
			w.commit(batch)
		}
		clear(batch)
	}
}

// contained runs a change. One that panics is not valid: it is undone, and the
// writer lives.
func (j *job) contained(w *writer) (err error) {
	if p := contain.Call(func() { err = j.run(w) }); p != nil {
		return &brokenError{p}
	}
	return err
}

// brokenError is a change over which the store panicked.
type brokenError struct{ cause *contain.PanicError }

// Error says what was panicked with.
func (e *brokenError) Error() string { return "the change could not be written: " + e.cause.Error() }

// Unwrap returns what it is in the contract, and the panic.
func (e *brokenError) Unwrap() []error { return []error{checkpoint.ErrInvalid, e.cause} }

// gather lets those whom the last commit woke hand in what is next, for as
// long as more comes. It never waits: a lone job costs it one turn.
func (w *writer) gather() {
	for seen := -1; seen < w.queue.waiting(); {
		seen = w.queue.waiting()
		runtime.Gosched()
	}
}

// commit runs jobs in one transaction. A job that is refused has changed
// nothing. When one breaks, the transaction is undone and each has its own.
func (w *writer) commit(batch []*job) {
	if batch = w.refuseWhileFull(batch); len(batch) == 0 {
		return
	}
	results, err := w.transact(batch)
	switch {
	case err == nil:
		for i, j := range batch {
			j.done <- results[i]
		}
		if w.full.Load() { // these have made room
			w.fold()
			w.settle()
		}
		w.thrift(batch)
	case errors.Is(err, checkpoint.ErrStoreReplaced):
		for _, j := range batch {
			j.done <- err
		}
	case len(batch) > 1:
		for i := range batch {
			w.commit(batch[i : i+1])
		}
	case w.lacksSpace(err):
		w.outOfSpace(batch[0], err)
	default:
		batch[0].done <- err
	}
}

// transact runs jobs in one transaction. An error means that there was none;
// once it is committed, only the results tell.
func (w *writer) transact(batch []*job) (results []error, err error) {
	if err := w.store.file.check(); err != nil {
		return nil, err
	}
	if err := w.start(); err != nil {
		return nil, failed(err)
	}
	results = make([]error, len(batch))
	for i, j := range batch {
		err := j.contained(w)
		if _, broken := errors.AsType[*brokenError](err); broken {
			return nil, w.undo(err)
		}
		if err != nil && !refusal(err) {
			return nil, w.undo(failed(err))
		}
		results[i] = err
	}
	if err := w.end(); err != nil {
		err = w.undo(failed(err))
		if lacksPages(err) {
			return nil, err
		}
		if w.lacksSpace(err) {
			w.full.Store(true)
		}
		doubt(results, err) // what was written of it may be found by who opens the file next
		return results, nil
	}
	if err := w.store.file.check(); err != nil { // before anything is acknowledged
		doubt(results, err)
	}
	return results, nil
}

// commitAll ends the transaction.
func (w *writer) commitAll() error { return w.exec(w.stmt.commit) }

// doubt says of what may have been committed that the outcome is unknown: the
// changes are in the file that is open, which may not be the one that is found
// later, or the commit failed half-way. Refusals have changed nothing either way.
func doubt(results []error, cause error) {
	for i := range results {
		if results[i] == nil {
			results[i] = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, cause)
		}
	}
}

// start begins a transaction; one that could not be ended before is ended now.
func (w *writer) start() error {
	_, err := w.stmt.begin.ExecContext(w.life)
	if err == nil {
		return nil
	}
	if _, stuck := w.stmt.rollback.ExecContext(w.life); stuck != nil {
		return err
	}
	_, err = w.stmt.begin.ExecContext(w.life)
	return err
}

// undo rolls back. Some errors have made SQLite do so already, and then there
// is no transaction to end.
func (w *writer) undo(cause error) error {
	clear(w.known)
	_, _ = w.stmt.rollback.ExecContext(w.life)
	return cause
}

func refusal(err error) bool {
	return errors.Is(err, checkpoint.ErrConflict) || errors.Is(err, checkpoint.ErrInvalid) ||
		errors.Is(err, checkpoint.ErrGraphExists) || errors.Is(err, checkpoint.ErrGraphNotFound)
}
