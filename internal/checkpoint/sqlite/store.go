// Package sqlite keeps threads in one SQLite file, for a server that needs
// nothing else installed.
//
// The process owns the file alone, by a lock beside it. All changes go through
// one goroutine that takes whatever waits and commits it in one transaction,
// so that many threads share the cost of one fsync while a lone change waits
// for nobody. Reads use connections of their own and see what is durable.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Options configure a Store.
type Options struct {
	// Path names the database file; it is made when it is missing. Path-wal,
	// Path-shm and Path.lock lie beside it.
	Path string
	// Now is the clock that leases are compared with; nil = time.Now.
	Now func() time.Time
	// Seal says whether records are compressed and encrypted.
	Seal seal.Options
	// Reserve is how many bytes of the disk Path-reserve holds back, so that
	// threads can be deleted when the disk is full; default 4 MiB, negative = none.
	Reserve int64
	// MaxChangeBytes and MaxChangeRows bound one change; defaults 256 MiB and
	// 1,000,000.
	MaxChangeBytes, MaxChangeRows int
	// Tombstones is how many deleted versions of graphs are remembered; default
	// checkpoint.DefaultTombstones.
	Tombstones int
	// Turn bounds how long a change waits for its turn, default 5 s, and End how
	// long for its end when it has begun, default 30 s.
	Turn, End time.Duration
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Reserve = cmp.Or(o.Reserve, 4<<20)
	o.MaxChangeBytes, o.MaxChangeRows = cmp.Or(o.MaxChangeBytes, 256<<20), cmp.Or(o.MaxChangeRows, 1_000_000)
	o.Tombstones = cmp.Or(o.Tombstones, checkpoint.DefaultTombstones)
	o.Turn, o.End = cmp.Or(o.Turn, 5*time.Second), cmp.Or(o.End, 30*time.Second)
}

// Store implements checkpoint.Store and checkpoint.Graphs.
type Store struct {
	now    func() time.Time
	box    *seal.Box
	warned []string
	file   *file
	write  *writer
	reads  *sql.DB
	query  *queries

	reserve           int64
	maxBytes, maxRows int
	tombstones        int
	limits            limits

	graphChanges atomic.Uint64

	closing  sync.Once
	closeErr error
}

var (
	_ checkpoint.Store     = (*Store)(nil)
	_ checkpoint.Graphs    = (*Store)(nil)
	_ checkpoint.Condition = (*Store)(nil)
	_ checkpoint.Paced     = (*Store)(nil)
)

// Open opens the file or makes it. It fails with an InUseError when another
// process has it open, with a SchemaError when a newer graphd wrote it, with a
// StrayLogError when its log belongs to another name of it, and with a
// seal.KeyError when its records don't open with the keys given.
// Leases that were held when the file was last used end now: whoever held
// them is gone.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Path == "" {
		return nil, errors.New("sqlite: no path given, want the name of a file")
	}
	path, err := filepath.Abs(opts.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	opts.setDefaults()
	box, err := seal.New(opts.Seal)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	f, err := own(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		now: opts.Now, box: box, file: f, warned: f.wider, reserve: opts.Reserve,
		maxBytes: opts.MaxChangeBytes, maxRows: opts.MaxChangeRows, tombstones: opts.Tombstones, limits: limits{opts.Turn, opts.End},
	}
	if err := s.open(ctx, f.real); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	// The connections outlive the call that opened them.
	life := context.WithoutCancel(ctx)
	reserve := space{path: path + "-reserve", size: s.reserve}
	nearlyFull := diskFree(path) < scarceToOpen
	if nearlyFull { // the log is made anew, on what was held back
		reserve.release()
	}
	db, err := sql.Open("sqlite", dsn(path, "journal_mode(wal)", "synchronous(full)", "busy_timeout(5000)", "wal_autocheckpoint(8000)"))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db, path); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.unlock(ctx, db); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.write, err = newWriter(life, db, s, reserve); err != nil {
		return errors.Join(err, db.Close())
	}
	s.reads, err = sql.Open("sqlite", dsn(path, "query_only(1)", "busy_timeout(5000)"))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	conns := max(4, runtime.NumCPU())
	s.reads.SetMaxOpenConns(conns)
	s.reads.SetMaxIdleConns(conns)
	if s.query, err = prepareQueries(life, s.reads); err != nil {
		return err
	}
	if err := s.endLeases(ctx); err != nil {
		return err
	}
	if err := s.notePath(ctx); err != nil {
		return err
	}
	if err := s.write.space.reserve(); err != nil {
		s.write.full.Store(nearlyFull) // what is left is for deleting
		s.warned = append(s.warned, fmt.Sprintf("no %d bytes could be held back for deleting threads when the disk is full: %v",
			s.reserve, err))
	}
	return s.file.noteLog()
}

// Paced says that a change waits for its turn and for its end no longer than
// the options allow; it implements checkpoint.Paced.
func (*Store) Paced() {}

// endLeases makes the threads of a dead owner due at once.
func (s *Store) endLeases(ctx context.Context) error {
	now := nanos(s.clock())
	// On a full disk a server starts, so that threads can be deleted.
	return s.write.doJob(ctx, &job{frees: true, run: func(w *writer) error {
		_, err := w.conn.ExecContext(w.life,
			`UPDATE threads SET lease_expires = min(lease_expires, ?1), wake = min(wake, ?1) WHERE owner <> ''`, now)
		return err
	}})
}

// Close waits for the changes that were handed in, then lets go of the file. All
// is in the database then, and no log is left.
func (s *Store) Close() error {
	s.closing.Do(func() {
		var errs []error
		if s.reads != nil {
			errs = append(errs, s.reads.Close())
		}
		if s.write != nil {
			errs = append(errs, s.write.close())
		}
		s.closeErr = errors.Join(append(errs, s.file.release())...)
	})
	return s.closeErr
}

func (s *Store) clock() time.Time { return s.now().Round(0).UTC() }

func dsn(path string, pragmas ...string) string { return uri(path, url.Values{"_pragma": pragmas}) }

func uri(path string, q url.Values) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: slashed, RawQuery: q.Encode()}).String()
}

// failed turns an error of the driver into one of the contract; what the
// contract knows already passes.
func failed(err error) error {
	var se *sqlite.Error
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrUnavailable), errors.Is(err, checkpoint.ErrCorrupt),
		errors.Is(err, checkpoint.ErrConflict), errors.Is(err, checkpoint.ErrInvalid),
		errors.Is(err, checkpoint.ErrGraphExists), errors.Is(err, checkpoint.ErrGraphNotFound), errors.Is(err, checkpoint.ErrTrimmed),
		errors.Is(err, checkpoint.ErrThreadNotFound), errors.Is(err, checkpoint.ErrCheckpointNotFound):
		return err
	case errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CORRUPT || se.Code()&0xff == sqlite3.SQLITE_NOTADB):
		return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrUnavailable, err)
}

// nanos is how times stand in columns: nanoseconds since 1970. No time is the
// least number; a time that does not fit is as far away as one can be.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return math.MinInt64
	case t.Year() < 1678:
		return math.MinInt64 + 1
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func fromNanos(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.Unix(0, n.Int64).UTC()
}
