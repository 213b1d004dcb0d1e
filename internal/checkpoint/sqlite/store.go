// Package sqlite keeps threads in one SQLite file, for a server that needs
// nothing else installed.
//
// The process owns the file alone, by a lock beside it. All changes go through
// one goroutine that takes whatever waits and commits it in one transaction, so
// that many threads share the cost of one fsync while a lone change does not
// wait. Reads use connections of their own and see what is durable.
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
	// TurnTimeout bounds how long a change waits in the queue, default 5 s, and
	// CommitTimeout how long for its end when it has begun, default 30 s.
	TurnTimeout, CommitTimeout time.Duration
	// Progress is told now and then how far Open is with records that Migrate could not
	// open; nil = it is not asked for.
	Progress func(checkpoint.Migration)
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Reserve = cmp.Or(o.Reserve, 4<<20)
	o.MaxChangeBytes, o.MaxChangeRows = cmp.Or(o.MaxChangeBytes, 256<<20), cmp.Or(o.MaxChangeRows, 1_000_000)
	o.Tombstones = cmp.Or(o.Tombstones, checkpoint.DefaultTombstones)
	o.TurnTimeout, o.CommitTimeout = cmp.Or(o.TurnTimeout, 5*time.Second), cmp.Or(o.CommitTimeout, 30*time.Second)
}

// Store implements checkpoint.Store and checkpoint.Graphs.
type Store struct {
	now      func() time.Time
	box      *seal.Box
	warnings []string
	file     *ownedFile
	writer   *writer
	readDB   *sql.DB
	queries  *queries

	reserve           int64
	maxBytes, maxRows int
	tombstones        int
	limits            limits

	graphChanges atomic.Uint64

	closeOnce sync.Once
	closeErr  error
}

var (
	_ checkpoint.Store        = (*Store)(nil)
	_ checkpoint.Graphs       = (*Store)(nil)
	_ checkpoint.WriteChecker = (*Store)(nil)
	_ checkpoint.TimeBounded  = (*Store)(nil)
)

// Open opens the file or makes it. It fails with an InUseError when another
// process has it open, with a SchemaError when a newer graphd wrote it, with a
// StrayLogError when its log belongs to another name of it, and with a
// seal.KeyError when its records don't open with the keys given. Leases that
// were held when the file was last used end now: the process that held them is
// gone.
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
	f, err := ownFile(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		now: opts.Now, box: box, file: f, warnings: f.warnings, reserve: opts.Reserve,
		maxBytes: opts.MaxChangeBytes, maxRows: opts.MaxChangeRows, tombstones: opts.Tombstones, limits: limits{opts.TurnTimeout, opts.CommitTimeout},
	}
	if err := s.openDatabase(ctx, f.realPath, opts.Progress); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) openDatabase(ctx context.Context, path string, tell func(checkpoint.Migration)) error {
	// The connections outlive the call that opened them.
	life := context.WithoutCancel(ctx)
	reserve := space{reservePath: path + "-reserve", reserveSize: s.reserve}
	nearlyFull := diskFree(path) < scarceSpaceToOpen
	if nearlyFull { // the log is made anew, on what was held back
		reserve.removeReserve()
	}
	db, err := sql.Open("sqlite", buildDSN(path, "journal_mode(wal)", "synchronous(full)", "busy_timeout(5000)", "wal_autocheckpoint(8000)"))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	db.SetMaxOpenConns(1)
	if err := prepareSchema(ctx, db, path); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.checkEncryptionKeys(ctx, db); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.packSealedRecords(ctx, db, tell); err != nil {
		return errors.Join(err, db.Close())
	}
	if s.writer, err = newWriter(life, db, s, reserve); err != nil {
		return errors.Join(err, db.Close())
	}
	s.readDB, err = sql.Open("sqlite", buildDSN(path, "query_only(1)", "busy_timeout(5000)"))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	conns := max(4, runtime.NumCPU())
	s.readDB.SetMaxOpenConns(conns)
	s.readDB.SetMaxIdleConns(conns)
	if s.queries, err = prepareQueries(life, s.readDB); err != nil {
		return err
	}
	if err := s.endLeases(ctx); err != nil {
		return err
	}
	if err := s.saveLastPath(ctx); err != nil {
		return err
	}
	if err := s.writer.space.ensureReserve(); err != nil {
		s.writer.isFull.Store(nearlyFull) // what is left is for deleting
		s.warnings = append(s.warnings, fmt.Sprintf("no %d bytes could be held back for deleting threads when the disk is full: %v",
			s.reserve, err))
	}
	return s.file.noteLog()
}

// TimeBounded says that a change waits in the queue and for its end no longer than
// the options allow; it implements checkpoint.Paced.
func (*Store) TimeBounded() {}

// endLeases makes the threads of a dead owner due at once.
func (s *Store) endLeases(ctx context.Context) error {
	now := toUnixNanos(s.currentTime())
	// On a full disk a server starts, so that threads can be deleted.
	return s.writer.runJob(ctx, &job{freesSpace: true, run: func(w *writer) error {
		_, err := w.conn.ExecContext(w.life,
			`UPDATE threads SET lease_expires = min(lease_expires, ?1), wake = min(wake, ?1) WHERE owner <> ''`, now)
		return err
	}})
}

// Close waits for the changes that were handed in, then closes the file. All
// is in the database then, and no log is left.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		var errs []error
		if s.readDB != nil {
			errs = append(errs, s.readDB.Close())
		}
		if s.writer != nil {
			errs = append(errs, s.writer.closeWriter())
		}
		s.closeErr = errors.Join(append(errs, s.file.releaseLocks())...)
	})
	return s.closeErr
}

func (s *Store) currentTime() time.Time { return s.now().Round(0).UTC() }

func buildDSN(path string, pragmas ...string) string {
	return buildURI(path, url.Values{"_pragma": pragmas})
}

func buildURI(path string, q url.Values) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: slashed, RawQuery: q.Encode()}).String()
}

// toContractError turns an error of the driver into one of the contract; what the
// contract knows already passes.
func toContractError(err error) error {
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

// toUnixNanos is how times stand in columns: nanoseconds since 1970. No time is the
// least number; a time that does not fit is as far away as one can be.
func toUnixNanos(t time.Time) int64 {
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

func fromNullNanos(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.Unix(0, n.Int64).UTC()
}
