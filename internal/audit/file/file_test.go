package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/audit/file"
	"github.com/graphd-dev/graphd/internal/backoff"
)

// write writes a record for each thread.
func write(t *testing.T, to audit.Sink, threads ...string) {
	t.Helper()
	var list []audit.Record
	for _, thread := range threads {
		list = append(list, audit.Record{Kind: audit.KindCall, Thread: thread})
	}
	n, err := to.WriteRecords(t.Context(), list)
	require.NoError(t, err)
	require.Equal(t, len(list), n)
}

// read returns the threads of files and their defects.
func read(t *testing.T, paths ...string) (threads, defects []string) {
	t.Helper()
	r := audit.NewReader(strings.NewReader(""))
	note := func(e audit.Entry) {
		if e.IsValid {
			threads = append(threads, e.Thread)
		}
		defects = append(defects, e.Defects...)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		r.Next(bytes.NewReader(text))
		for {
			e, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			note(e)
		}
		if e, ok := r.Flush(); ok {
			note(e)
		}
	}
	return threads, defects
}

func open(t *testing.T, o file.Options) *file.File {
	t.Helper()
	f, err := file.Open(o)
	require.NoError(t, err)
	return f
}

func TestAFileGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, thread := range []string{"a", "b", "c"} {
		f := open(t, file.Options{Path: path})
		write(t, f, thread)
		require.NoError(t, f.Close())
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	threads, defects := read(t, path)
	require.Equal(t, []string{"a", "b", "c"}, threads)
	require.Empty(t, defects)
}

// A server that was killed in the middle of a line spoils that line only, wherever it
// was killed, and also when the next one is killed in the same way.
func TestAFileGoesOnBehindAFragment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := open(t, file.Options{Path: path})
	write(t, f, "a", "b")
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, end := range []string{"", "\n", "\n{\"v\":"} {
		for cut := 1; cut < len(whole); cut += 1 + cut%7 {
			require.NoError(t, os.WriteFile(path, []byte(string(whole[:cut])+end), 0o600))
			f := open(t, file.Options{Path: path})
			write(t, f, "c", "d")
			require.NoError(t, f.Close())
			threads, _ := read(t, path)
			require.Equal(t, []string{"c", "d"}, threads[len(threads)-2:], "%d %q", cut, end)
		}
	}
}

func TestAFileThatWasMovedIsFollowedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := open(t, file.Options{Path: path})
	write(t, f, "a", "b")
	require.NoError(t, os.Rename(path, path+".1"))
	write(t, f, "c")
	threads, defects := read(t, path+".1", path)
	require.Equal(t, []string{"a", "b", "c"}, threads)
	require.Empty(t, defects, "the chain goes on in the next file")
	require.NoError(t, os.Remove(path))
	write(t, f, "d")
	require.NoError(t, os.Truncate(path, 0)) // as copytruncate does
	write(t, f, "e")
	threads, defects = read(t, path)
	require.Equal(t, []string{"e"}, threads)
	require.Empty(t, defects)
	require.NoError(t, f.Close())
}

func TestAFullFileIsRenamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	require.NoError(t, os.WriteFile(path+".keep", nil, 0o600))
	f := open(t, file.Options{Path: path, MaxBytes: 300, Keep: 3})
	for i := range 20 {
		write(t, f, fmt.Sprintf("t%02d", i))
	}
	require.NoError(t, f.Close())
	names, err := filepath.Glob(path + ".0*")
	require.NoError(t, err)
	require.Len(t, names, 3)
	require.FileExists(t, path+".keep")
	threads, defects := read(t, append(names, path)...)
	require.Empty(t, defects)
	require.Equal(t, "t19", threads[len(threads)-1])
	require.Greater(t, len(threads), 5)
}

func TestAFileThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	foreign, long, used := filepath.Join(dir, "foreign"), filepath.Join(dir, "long"), filepath.Join(dir, "used")
	require.NoError(t, os.WriteFile(foreign, []byte("root:x:0:0\n"), 0o600))
	require.NoError(t, os.WriteFile(long, []byte(`{"v":`+strings.Repeat("1", 3*audit.MaxLineBytes)), 0o600))
	f := open(t, file.Options{Path: used})
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	for path, want := range map[string]string{
		foreign: "no record of the audit", long: "no record of the audit", dir: "no regular file",
		filepath.Join(dir, "no", "folder"): "can't be opened", used: "belongs to another server",
	} {
		_, err := file.Open(file.Options{Path: path})
		wrong, ok := errors.AsType[*file.Error](err)
		require.True(t, ok, "%s: %v", path, err)
		require.ErrorContains(t, wrong, want)
		require.NotEmpty(t, wrong.Want)
	}
	text, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.Equal(t, "root:x:0:0\n", string(text))
}

// A file is synced a while after a write, also when none follows.
func TestAFileIsSyncedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		f := open(t, file.Options{Path: path, Sync: time.Second})
		write(t, f, "a")
		write(t, f, "b")
		require.NoError(t, backoff.Sleep(t.Context(), 2*time.Second))
		synctest.Wait()
		write(t, f, "c")
		require.NoError(t, f.Close())
	})
	threads, defects := read(t, path)
	require.Equal(t, []string{"a", "b", "c"}, threads)
	require.Empty(t, defects)
}

// fullWriter takes a number of bytes, as a disk that is full.
type fullWriter struct {
	bytes.Buffer

	room int
}

func (w *fullWriter) Write(b []byte) (int, error) {
	n, _ := w.Buffer.Write(b[:min(len(b), w.room)])
	w.room -= n
	if n < len(b) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// A disk that is full in the middle of a line, at every byte of it, spoils no other
// line.
func TestAStreamGoesOnAfterAFailedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "copy")
	list := []audit.Record{{Kind: audit.KindCall, Thread: "a"}, {Kind: audit.KindCall, Thread: "b"}, {Kind: audit.KindCall, Thread: "c"}}
	for room := range 400 {
		to := &fullWriter{room: room}
		s := file.NewStream(to)
		rest := list
		for len(rest) > 0 {
			n, err := s.WriteRecords(t.Context(), rest)
			require.True(t, err != nil || n == len(rest))
			rest, to.room = rest[n:], 1<<20
			if err != nil && room%3 == 0 && to.Len() == room {
				to.room = 1 // the break behind the fragment only
			}
		}
		require.NoError(t, os.WriteFile(path, to.Bytes(), 0o600))
		threads, defects := read(t, path)
		require.Equal(t, []string{"a", "b", "c"}, threads, "room for %d", room)
		for _, d := range defects {
			require.Regexp(t, "is not a record|has no end", d, "room for %d", room)
		}
	}
}
