// Package writer makes the changes of a database: they wait in a queue, and waiting changes share a
// transaction. It knows the space for them, and nothing of their content.
package writer

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
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Options configure a Writer.
type Options struct {
	// File tells, at each commit, whether the open file is still the file under
	// its path.
	File File
	// Path is that of the database, without symbolic links.
	Path string
	// Reserve holds back disk space for changes that free space.
	Reserve *file.Reserve
	// Warn receives a warning when Close leaves changes in the log; nil = none.
	Warn func(warning string)
	// TurnTimeout bounds how long a change waits in the queue, and CommitTimeout how
	// long for its end when it has begun.
	TurnTimeout, CommitTimeout time.Duration
}

// File is the database as the process owns it.
type File interface {
	// CheckReplaced fails when changes would be written to where nothing finds them.
	CheckReplaced() error
}

// Writer makes all changes of the file.
type Writer struct {
	life       context.Context // of the connection; it ends with Close
	db         *sql.DB
	conn       *sql.Conn
	file       File
	path       string
	warn       func(warning string)
	statements []*sql.Stmt // all that were prepared

	begin, commit, rollback *sql.Stmt

	queue          *queue
	records        recordMemory
	limits         limits
	timers         sync.Pool // of callers that wait
	space          space
	rolledBack     func()        // reads of a transaction that is undone are void
	endTransaction func() error  // commitTransaction, unless a test says otherwise
	isFull         atomic.Bool   // there was no space for a change, and there is none yet
	finished       chan struct{} // closed when the last job is done
}

// limits bound how long a change waits in the queue, and for its end when it has
// begun.
type limits struct{ turn, end time.Duration }

// New makes the writer of a database, which it closes.
func New(life context.Context, db *sql.DB, opts Options) (*Writer, error) {
	conn, err := db.Conn(life)
	if err != nil {
		return nil, layout.ToContractError(err)
	}
	w := &Writer{
		life: life, db: db, conn: conn, file: opts.File, path: opts.Path, warn: opts.Warn,
		queue: newQueue(), records: newRecordMemory(), limits: limits{opts.TurnTimeout, opts.CommitTimeout}, finished: make(chan struct{}),
		space: space{reserve: opts.Reserve}, rolledBack: func() {},
	}
	p := w.NewPreparer()
	w.begin, w.commit, w.rollback = p.PrepareStatement(`BEGIN IMMEDIATE`), p.PrepareStatement(`COMMIT`), p.PrepareStatement(`ROLLBACK`)
	if err := p.Err(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	w.endTransaction = w.commitTransaction
	if err := w.limitPages(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go contain.Func(w.keepCommitting, func(*contain.PanicError) {})()
	return w, nil
}

// NewPreparer prepares statements for changes; Close ends them. It is used before the
// first change is handed in, and by one goroutine.
func (w *Writer) NewPreparer() *layout.Preparer {
	return layout.NewPreparer(func(query string) (*sql.Stmt, error) {
		s, err := w.conn.PrepareContext(w.life, query)
		if err == nil {
			w.statements = append(w.statements, s)
		}
		return s, err
	})
}

// OnRollback sets the function that is called after a transaction was undone, before the next
// begins. It is called before the first change is handed in.
func (w *Writer) OnRollback(rolledBack func()) { w.rolledBack = rolledBack }

// RunChange hands in a change of no thread. Its errors are those of RunJob.
func (w *Writer) RunChange(ctx context.Context, run func(ctx context.Context, conn *sql.Conn) error) error {
	return w.RunJob(ctx, &Job{Run: run})
}

// RunJob hands in a change and waits until it is durable or refused. It returns
// ErrStoreBusy, and nothing is done, when the change is not begun in time, and
// ErrOutcomeUnknown when ctx or the time ends after it has begun. It returns
// ErrStoreFull and ErrStoreReplaced while no change is taken. Other errors are those of
// the job, or wrap ErrUnavailable or ErrCorrupt. For a job that IsUntimed no time ends.
func (w *Writer) RunJob(ctx context.Context, j *Job) error {
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
		if j.IsUntimed {
			timer.Reset(w.limits.end)
			continue
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

// Close waits for the jobs that were handed in, moves the log into the database, and closes
// the database.
func (w *Writer) Close() error {
	w.queue.closeQueue()
	<-w.finished
	w.moveLog()
	var errs []error
	for _, s := range w.statements { // SQLite does not end a connection that has statements
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}

// moveLog moves the log into the database: beside a reader, SQLite does not when the
// connection ends. A log that is not found by its name may be that of another database.
func (w *Writer) moveLog() {
	if w.file.CheckReplaced() != nil {
		return
	}
	if err := file.MoveLog(w.life, w.path, w.conn); err != nil && w.warn != nil {
		w.warn(err.Error())
	}
}

// keepCommitting commits together the changes that came in during the commit
// before.
func (w *Writer) keepCommitting() {
	defer close(w.finished)
	batch, more := make([]*Job, 0, maxBatch), true
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

// runContained runs a change. A change that panics is not valid: it is undone,
// and the writer lives.
func (j *Job) runContained(w *Writer) (err error) {
	if p := contain.Call(func() { err = j.Run(w.life, w.conn) }); p != nil {
		return &panickedError{p}
	}
	return err
}

// panickedError is a change over which the store panicked.
type panickedError struct{ cause *contain.PanicError }

// Error shows the panic.
func (e *panickedError) Error() string { return "the change could not be written: " + e.cause.Error() }

// Unwrap returns ErrInvalid and the panic.
func (e *panickedError) Unwrap() []error { return []error{checkpoint.ErrInvalid, e.cause} }

// gatherJobs lets callers that the last commit woke hand in their next changes,
// for as long as more arrive. It never waits: a lone job costs it one turn.
func (w *Writer) gatherJobs() {
	for seen := -1; seen < w.queue.countJobs(); {
		seen = w.queue.countJobs()
		runtime.Gosched()
	}
}

// commitBatch runs jobs in one transaction. A job that is refused has changed
// nothing. When a job breaks, the transaction is undone and each job has its own.
func (w *Writer) commitBatch(batch []*Job) {
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
			w.TruncateLog()
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
// after its commit, the results have the errors.
func (w *Writer) runTransaction(batch []*Job) (results []error, err error) {
	if err := w.file.CheckReplaced(); err != nil {
		return nil, err
	}
	if err := w.beginTransaction(); err != nil {
		return nil, layout.ToContractError(err)
	}
	results = make([]error, len(batch))
	for i, j := range batch {
		err := j.runContained(w)
		if _, broken := errors.AsType[*panickedError](err); broken {
			return nil, w.rollBackTransaction(err)
		}
		if err != nil && !isRefusal(err) {
			return nil, w.rollBackTransaction(layout.ToContractError(err))
		}
		results[i] = err
	}
	if err := w.endTransaction(); err != nil {
		err = w.rollBackTransaction(layout.ToContractError(err))
		if lacksPages(err) {
			return nil, err
		}
		if w.lacksSpace(err) {
			w.isFull.Store(true)
		}
		markUnknown(results, err) // a later open of the file may find its writes
		return results, nil
	}
	if err := w.file.CheckReplaced(); err != nil { // before anything is acknowledged
		markUnknown(results, err)
	}
	return results, nil
}

// commitTransaction ends the transaction.
func (w *Writer) commitTransaction() error {
	_, err := w.commit.ExecContext(w.life)
	return err
}

// markUnknown gives changes that may have been committed ErrOutcomeUnknown: they
// are in the open file, which may not be the file under its path, or the commit
// failed half-way. Refusals have changed nothing either way.
func markUnknown(results []error, cause error) {
	for i := range results {
		if results[i] == nil {
			results[i] = fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, cause)
		}
	}
}

// beginTransaction begins a transaction. It first ends a transaction that could not be ended
// before.
func (w *Writer) beginTransaction() error {
	_, err := w.begin.ExecContext(w.life)
	if err == nil {
		return nil
	}
	if _, stuck := w.rollback.ExecContext(w.life); stuck != nil {
		return err
	}
	_, err = w.begin.ExecContext(w.life)
	return err
}

// rollBackTransaction rolls back. Some errors have made SQLite do so already, and then there
// is no transaction to end.
func (w *Writer) rollBackTransaction(cause error) error {
	w.rolledBack()
	_, _ = w.rollback.ExecContext(w.life)
	return cause
}

func isRefusal(err error) bool {
	return errors.Is(err, checkpoint.ErrConflict) || errors.Is(err, checkpoint.ErrInvalid) ||
		errors.Is(err, checkpoint.ErrGraphExists) || errors.Is(err, checkpoint.ErrGraphNotFound) ||
		errors.Is(err, checkpoint.ErrVersionsChanged)
}
