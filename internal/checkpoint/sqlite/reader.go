package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/index"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/threads"
)

// A Reader reads a file and changes nothing of it.
type Reader struct {
	*threads.Reader
	*index.Index

	found *file.ReadOnly
	db    *sql.DB

	closeOnce sync.Once
	closeErr  error
}

var _ checkpoint.Reader = (*Reader)(nil)

// OpenReader opens a file that is there for reading. The reader changes no record and
// takes no lock of graphd, so a server may use the file meanwhile. SQLite may make the
// index of the log. The errors are those of Open, but for a file that is in use; an
// EmptyError when the file has no tables; and a SchemaError, which IsOlder, for a file of
// an earlier format. Close returns a ChangedError when a server has begun to write into the
// file and the records that were read may be wrong.
func OpenReader(ctx context.Context, opts Options) (*Reader, error) {
	path, box, err := opts.prepareOpen()
	if err != nil {
		return nil, err
	}
	found, err := file.FindReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	r := &Reader{found: found}
	if err := r.openParts(ctx, box, opts.Now); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) openParts(ctx context.Context, box *seal.Box, clock func() time.Time) (err error) {
	if r.db, err = r.found.Connect(); err != nil {
		return err
	}
	if err := setup.CheckReadable(ctx, r.db, r.found.RealPath, box); err != nil {
		return err
	}
	life, now := context.WithoutCancel(ctx), func() time.Time { return clock().Round(0).UTC() }
	if r.Reader, err = threads.NewReader(life, r.db, box, now); err != nil {
		return err
	}
	r.Index, err = index.New(life, r.db, box, now)
	return err
}

// Close closes the file. It fails with a ChangedError when what was read may be wrong.
func (r *Reader) Close() error {
	r.closeOnce.Do(func() {
		if r.db != nil {
			r.closeErr = r.db.Close()
		}
		r.closeErr = errors.Join(r.closeErr, r.found.CheckUnchanged())
	})
	return r.closeErr
}
