package checkpointtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Format is a stored format: a kind of store and a number.
type Format struct {
	Kind   string // redis or sqlite
	Number int
	// Stores is the folder with a frozen store per kind and number.
	Stores string
	Update bool // take the present listing over, if it may still change
}

// RequireFormat compares a listing of the records of WriteAll with the kept listing of
// the format's number, in testdata/format-N.txt. While no store of that number is
// frozen, Update takes the new listing over.
func RequireFormat(tb testing.TB, f Format, listing []byte) {
	tb.Helper()
	file := filepath.Join("testdata", fmt.Sprintf("format-%d.txt", f.Number))
	_, err := os.Stat(filepath.Join(f.Stores, fmt.Sprintf("%s-%d", f.Kind, f.Number)))
	isFrozen := err == nil
	if f.Update && !isFrozen {
		require.NoError(tb, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(tb, os.WriteFile(file, listing, 0o600))
	}
	kept, err := os.ReadFile(file)
	require.NoError(tb, err, "format %d of %s has no listing: %s", f.Number, f.Kind, f.changeAdvice(isFrozen))
	if !bytes.Equal(kept, listing) {
		tb.Fatalf("what %s writes is no longer its format %d (%s): %s\n%s",
			f.Kind, f.Number, file, f.changeAdvice(isFrozen), firstDifference(kept, listing))
	}
}

func (f Format) changeAdvice(isFrozen bool) string {
	if !isFrozen {
		return "no store of it is frozen yet, so it may still change: run `make format`"
	}
	return fmt.Sprintf("stores of it exist, so give the next number: raise the number of the format of %s, write a migration "+
		"from %d to it, run `make format`, and freeze a store of the new number with `make freeze` when it is done; "+
		"CONTRIBUTING.md tells how under \"A stored format\"", f.Kind, f.Number)
}

// firstDifference shows the first lines that are not the same.
func firstDifference(kept, now []byte) string {
	a, b := bytes.Split(kept, []byte("\n")), bytes.Split(now, []byte("\n"))
	for i := range max(len(a), len(b)) {
		was, is := []byte("(end)"), []byte("(end)")
		if i < len(a) {
			was = a[i]
		}
		if i < len(b) {
			is = b[i]
		}
		if !bytes.Equal(was, is) {
			return fmt.Sprintf("line %d\n kept: %.600s\n now:  %.600s", i+1, was, is)
		}
	}
	return ""
}
