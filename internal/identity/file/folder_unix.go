//go:build unix

package file

import (
	"errors"
	"os"
)

// syncFolder makes the renaming of a file durable.
func syncFolder(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the folder of a file that the operator names
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
