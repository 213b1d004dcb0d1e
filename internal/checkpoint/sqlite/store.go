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
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/graphs"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/index"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/tags"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/threads"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/writer"
)

// SchemaVersion is the number of the layout of tables and records that is written.
const SchemaVersion = setup.SchemaVersion

// Errors of Open and Migrate.
type (
	// SchemaError says that the file is not one this graphd can use.
	SchemaError = setup.SchemaError
	// InUseError says that another process has the file open.
	InUseError = file.InUseError
	// SpaceError says that the disk has too little space to migrate the file.
	SpaceError = setup.SpaceError
	// StrayLogError says that changes of a database are in a log that belongs to
	// another of its names.
	StrayLogError = file.StrayLogError
)

// Errors of OpenReader and Reader.Close.
type (
	// EmptyError says that nothing is stored in the file.
	EmptyError = setup.EmptyError
	// ChangedError says that a server changed the file while it was read.
	ChangedError = file.ChangedError
)

// Migrate brings the file at opts.Path to the present version, see setup.Migrate.
func Migrate(ctx context.Context, opts Options, dry bool, tell func(checkpoint.Migration)) (checkpoint.Migration, error) {
	return setup.Migrate(ctx, opts.Path, dry, tell)
}

// Remove removes the database at a path that no process has open, and all files
// that a store keeps beside it.
func Remove(path string) error { return file.RemoveFiles(path) }

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
	// Warn is told when Close leaves changes in the log, since another process reads the
	// file; nil = it is not asked for.
	Warn func(warning string)
}

// prepareOpen sets the defaults, and returns the absolute path and the box of the keys.
func (o *Options) prepareOpen() (path string, box *seal.Box, err error) {
	if o.Path == "" {
		return "", nil, errNoPath
	}
	if path, err = filepath.Abs(o.Path); err != nil {
		return "", nil, fmt.Errorf("sqlite: %w", err)
	}
	o.setDefaults()
	if box, err = seal.New(o.Seal); err != nil {
		return "", nil, fmt.Errorf("sqlite: %w", err)
	}
	return path, box, nil
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

// Store implements checkpoint.Store and checkpoint.Graphs. It puts the packages below this
// one together.
type Store struct {
	*threads.Reader
	*threads.Writer
	*index.Index
	*graphs.Graphs

	now      func() time.Time
	warnings []string
	file     *file.Database
	changes  *writer.Writer
	readDB   *sql.DB

	closeOnce sync.Once
	closeErr  error
}

var (
	_ checkpoint.Store         = (*Store)(nil)
	_ checkpoint.Graphs        = (*Store)(nil)
	_ checkpoint.BoundedReader = (*Store)(nil)
	_ checkpoint.WriteChecker  = (*Store)(nil)
	_ checkpoint.TimeBounded   = (*Store)(nil)
)

var errNoPath = errors.New("sqlite: no path given, want the name of a file")

// Open opens the file or makes it. It fails with an InUseError when another
// process has it open, with a SchemaError when a newer graphd wrote it, with a
// StrayLogError when its log belongs to another name of it, and with a
// seal.KeyError when its records don't open with the keys given. Leases that
// were held when the file was last used end now: the process that held them is
// gone.
func Open(ctx context.Context, opts Options) (*Store, error) {
	path, box, err := opts.prepareOpen()
	if err != nil {
		return nil, err
	}
	f, err := file.OpenOwned(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{now: opts.Now, file: f, warnings: f.Warnings}
	if err := s.openDatabase(ctx, box, &opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// scarceSpace is how little space on the disk may be too little for the files that
// SQLite makes when it opens a database.
const scarceSpace = 256 << 10

func (s *Store) openDatabase(ctx context.Context, box *seal.Box, opts *Options) error {
	path := s.file.RealPath
	reserve := file.NewReserve(path, opts.Reserve)
	isNearlyFull := file.FreeBytes(path) < scarceSpace
	if isNearlyFull { // the log is made anew, on what was held back
		reserve.RemoveFile()
	}
	if err := s.openWriter(ctx, box, reserve, opts); err != nil {
		return err
	}
	if err := s.openParts(ctx, box, opts); err != nil {
		return err
	}
	if err := s.endLeases(ctx); err != nil {
		return err
	}
	if err := s.saveLastPath(ctx); err != nil {
		return err
	}
	if err := s.changes.HoldReserve(isNearlyFull); err != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("no %d bytes could be held back for deleting threads when the disk is full: %v",
			opts.Reserve, err))
	}
	if err := s.packSealedRecords(ctx, box, opts.Progress); err != nil {
		return err
	}
	if err := s.indexMigrated(ctx, box, opts.Progress); err != nil {
		return err
	}
	return s.file.NoteLog()
}

// indexMigrated indexes the threads and the open interrupts of a file that was migrated. Those
// whose keys are missing, or for which there is no space, are indexed by a later start.
func (s *Store) indexMigrated(ctx context.Context, box *seal.Box, tell func(checkpoint.Migration)) error {
	isNeeded, err := setup.HasUntagged(ctx, s.readDB)
	if err != nil || !isNeeded {
		return err
	}
	n, err := s.indexPieces(ctx, box, tell)
	switch {
	case err != nil && (errors.Is(err, checkpoint.ErrStoreFull) || errors.Is(s.CheckWritable(ctx), checkpoint.ErrStoreFull)):
		s.warnings = append(s.warnings, fmt.Sprintf("threads and open questions of a migrated file are missing in lists with a filter until the next start, "+
			"since there is no space to index them: %v", err))
		return nil
	case err != nil:
		return err
	case n > 0:
		s.warnings = append(s.warnings, fmt.Sprintf("%d threads and open questions can't be read, and are missing in lists with a filter until a start with their keys", n))
		return nil
	}
	return s.runPiece(ctx, setup.RemoveUntaggedMark)
}

// indexPieces indexes piece by piece, and returns how many threads and interrupts can't be read.
func (s *Store) indexPieces(ctx context.Context, box *seal.Box, tell func(checkpoint.Migration)) (unreadable int, err error) {
	m := checkpoint.Migration{From: SchemaVersion, To: SchemaVersion}
	for _, indexNext := range []func(context.Context, *sql.Conn, *seal.Box, checkpoint.InterruptPosition) (tags.Piece, error){s.LabelNext, s.TagNext} {
		for p := (tags.Piece{}); !p.IsEnd; {
			err := s.runPiece(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
				p, err = indexNext(ctx, conn, box, p.Last)
				return err
			})
			if err != nil {
				return unreadable, err
			}
			unreadable += p.Unreadable
			if m.Done += p.Read; tell != nil && !p.IsEnd {
				tell(m)
			}
		}
	}
	return unreadable, nil
}

// packSealedRecords packs what a migration could not open. A full disk ends it, so that the
// server starts and threads can be deleted; the next server goes on.
func (s *Store) packSealedRecords(ctx context.Context, box *seal.Box, tell func(checkpoint.Migration)) error {
	m, err := setup.PackSealedRecords(ctx, s.readDB, box, s.runPiece, tell)
	if n := len(m.Unreadable); n > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("%d threads have records that can't be read and were left as they are: %s",
			n, strings.Join(m.UnreadableRecords, "; ")))
	}
	if err != nil && (errors.Is(err, checkpoint.ErrStoreFull) || errors.Is(s.CheckWritable(ctx), checkpoint.ErrStoreFull)) {
		s.warnings = append(s.warnings, fmt.Sprintf("encrypted records of an earlier format were written anew for %d of %d threads, "+
			"and the next start goes on, since there is no space: %v", m.Done, m.Threads, err))
		return nil
	}
	return err
}

// runPiece runs a piece of a migration as a change, and gives the space of its log back.
func (s *Store) runPiece(ctx context.Context, piece func(ctx context.Context, conn *sql.Conn) error) error {
	err := s.changes.RunJob(ctx, &writer.Job{IsUntimed: true, Run: piece})
	if err == nil {
		s.changes.TruncateLog()
	}
	return err
}

// openWriter prepares the database and makes its writer.
func (s *Store) openWriter(ctx context.Context, box *seal.Box, reserve *file.Reserve, opts *Options) error {
	path := s.file.RealPath
	db, err := file.ConnectWriter(path, "wal_autocheckpoint(8000)")
	if err != nil {
		return err
	}
	if err := setup.PrepareSchema(ctx, db, path); err != nil {
		return errors.Join(err, db.Close())
	}
	warnings, err := setup.PrepareKeys(ctx, db, box)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.warnings = append(s.warnings, warnings...)
	// The connections outlive the call that opens them.
	s.changes, err = writer.New(context.WithoutCancel(ctx), db, writer.Options{
		File: s.file, Path: path, Reserve: reserve, Warn: opts.Warn, TurnTimeout: opts.TurnTimeout, CommitTimeout: opts.CommitTimeout,
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// openParts makes what changes and reads threads and graphs.
func (s *Store) openParts(ctx context.Context, box *seal.Box, opts *Options) (err error) {
	life := context.WithoutCancel(ctx)
	if s.readDB, err = connectReaders(s.file.RealPath); err != nil {
		return err
	}
	limits := threads.Limits{MaxBytes: opts.MaxChangeBytes, MaxRows: opts.MaxChangeRows}
	if s.Writer, err = threads.NewWriter(life, s.changes, box, s.currentTime, limits); err != nil {
		return err
	}
	if s.Reader, err = threads.NewReader(life, s.readDB, box, s.currentTime); err != nil {
		return err
	}
	if s.Index, err = index.New(life, s.readDB, box, s.currentTime); err != nil {
		return err
	}
	s.Graphs, err = graphs.New(life, s.changes, s.readDB, graphs.Options{Box: box, Now: s.currentTime, Tombstones: opts.Tombstones})
	return err
}

// connectReaders opens the connections of reads.
func connectReaders(path string) (*sql.DB, error) {
	db, err := file.ConnectDatabase(path, "query_only(1)", "busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	conns := max(4, runtime.NumCPU())
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// Warnings tells what an operator should know, in sentences; none when all is
// well.
func (s *Store) Warnings() []string { return s.warnings }

// CheckWritable says whether the store takes changes; it implements
// checkpoint.WriteChecker. A store that was full checks for space.
func (s *Store) CheckWritable(ctx context.Context) error { return s.changes.CheckWritable(ctx) }

// TimeBounded says that a change waits in the queue and for its end no longer than
// the options allow; it implements checkpoint.Paced.
func (*Store) TimeBounded() {}

// endLeases makes the threads of a dead owner due at once.
func (s *Store) endLeases(ctx context.Context) error {
	now := layout.ToUnixNanos(s.currentTime())
	// On a full disk a server starts, so that threads can be deleted.
	return s.changes.RunJob(ctx, &writer.Job{FreesSpace: true, Run: func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx,
			`UPDATE threads SET lease_expires = min(lease_expires, ?1), wake = min(wake, ?1) WHERE owner <> ''`, now)
		return err
	}})
}

// saveLastPath writes the name by which the file is open into the database
// itself, where it is found without the log.
func (s *Store) saveLastPath(ctx context.Context) error {
	var changed int64
	err := s.changes.RunJob(ctx, &writer.Job{FreesSpace: true, Run: func(ctx context.Context, conn *sql.Conn) error {
		r, err := conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES (?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`, file.KeyLastPath, s.file.RealPath)
		if err != nil {
			return err
		}
		changed, err = r.RowsAffected()
		return err
	}})
	if err == nil && changed > 0 {
		s.changes.TruncateLog()
	}
	return err
}

// Close waits for the changes that were handed in, then closes the file. All
// is in the database then, and no log is left: beside a reader an empty one, or Options.Warn
// is told.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		var errs []error
		if s.readDB != nil {
			errs = append(errs, s.readDB.Close())
		}
		if s.changes != nil {
			errs = append(errs, s.changes.Close())
		}
		s.closeErr = errors.Join(append(errs, s.file.Close())...)
	})
	return s.closeErr
}

func (s *Store) currentTime() time.Time { return s.now().Round(0).UTC() }
