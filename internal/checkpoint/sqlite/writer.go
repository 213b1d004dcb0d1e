package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

const (
	// maxBatch bounds how many changes share a transaction, so that the first
	// one does not wait for ever on the last.
	maxBatch = 256
	// maxKnown bounds how many threads are remembered.
	maxKnown = 4096
)

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

	mu     sync.RWMutex // held for reading while a job is handed in
	closed bool
	jobs   chan *job
	idle   chan struct{} // closed when the last job is done
}

// job is one change that waits for its turn. It checks first and writes then:
// an error of the contract means that it has written nothing.
type job struct {
	run  func(w *writer) error
	done chan error
}

func newWriter(life context.Context, db *sql.DB, s *Store) (*writer, error) {
	conn, err := db.Conn(life)
	if err != nil {
		return nil, failed(err)
	}
	w := &writer{
		life: life, db: db, conn: conn, store: s, now: s.clock,
		known: map[string]present{},
		jobs:  make(chan *job, maxBatch), idle: make(chan struct{}),
	}
	if w.stmt, err = prepareStatements(life, conn); err != nil {
		return nil, errors.Join(failed(err), conn.Close())
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

// do hands in a change and waits until it is durable or refused. When ctx ends
// first nobody knows which.
func (w *writer) do(ctx context.Context, run func(w *writer) error) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(ctx)
	}
	j := &job{run: run, done: make(chan error, 1)}
	if err := w.hand(ctx, j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, ctx.Err()) // it may be made still
	}
}

func (w *writer) hand(ctx context.Context, j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return gaveUp(ctx)
	}
}

func gaveUp(ctx context.Context) error {
	return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
}

// close waits for the jobs that were handed in.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.jobs)
	w.mu.Unlock()
	<-w.idle
	return errors.Join(w.conn.Close(), w.db.Close())
}

// loop commits, as one, what came in while the commit before was made.
func (w *writer) loop() {
	defer close(w.idle)
	batch := make([]*job, 0, maxBatch)
	for first := range w.jobs {
		w.gather()
		batch = w.waiting(append(batch[:0], first))
		w.commit(batch)
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
	for seen := -1; seen < len(w.jobs); {
		seen = len(w.jobs)
		runtime.Gosched()
	}
}

func (w *writer) waiting(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return batch
			}
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs jobs in one transaction. A job that is refused has changed
// nothing. When one breaks, the transaction is undone and each has its own.
func (w *writer) commit(batch []*job) {
	results, err := w.transact(batch)
	if err != nil && len(batch) > 1 && !errors.Is(err, checkpoint.ErrStoreReplaced) {
		for i := range batch {
			w.commit(batch[i : i+1])
		}
		return
	}
	for i, j := range batch {
		if err != nil {
			j.done <- err
			continue
		}
		j.done <- results[i]
	}
}

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
	if _, err := w.stmt.commit.ExecContext(w.life); err != nil {
		return nil, w.undo(failed(err))
	}
	return results, w.store.file.check() // before anything is acknowledged
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
