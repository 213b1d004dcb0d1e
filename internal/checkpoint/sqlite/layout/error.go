package layout

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// ToContractError converts an error of the driver to an error of the contract. It
// returns errors of the contract as they are.
func ToContractError(err error) error {
	var se *sqlite.Error
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrUnavailable), errors.Is(err, checkpoint.ErrCorrupt),
		errors.Is(err, checkpoint.ErrConflict), errors.Is(err, checkpoint.ErrInvalid),
		errors.Is(err, checkpoint.ErrGraphExists), errors.Is(err, checkpoint.ErrGraphNotFound),
		errors.Is(err, checkpoint.ErrVersionsChanged), errors.Is(err, checkpoint.ErrTrimmed),
		errors.Is(err, checkpoint.ErrThreadNotFound), errors.Is(err, checkpoint.ErrCheckpointNotFound):
		return err
	case errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CORRUPT || se.Code()&0xff == sqlite3.SQLITE_NOTADB):
		return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrUnavailable, err)
}
