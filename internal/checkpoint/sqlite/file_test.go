package sqlite_test

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// What the store acknowledges must be found again: when its file or the log of
// that is removed or replaced under it, it refuses changes, says so, and goes on
// when the file is back.
func TestAFileThatIsReplacedTakesNoChanges(t *testing.T) {
	other := func(t *testing.T, name string) {
		t.Helper()
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	for name, c := range map[string]struct {
		suffix string
		harm   func(t *testing.T, name string)
		says   string
	}{
		"removed":      {harm: func(*testing.T, string) {}, says: "was removed"},
		"replaced":     {harm: other, says: "was replaced"},
		"log removed":  {suffix: "-wal", harm: func(*testing.T, string) {}, says: "a.db-wal was removed"},
		"log replaced": {suffix: "-wal", harm: other, says: "a.db-wal was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			s := openStore(t, path)
			_, err := s.Apply(t.Context(), newStep("t", 1))
			require.NoError(t, err)
			require.NoError(t, s.CheckWritable(t.Context()))

			file := path + c.suffix
			require.NoError(t, os.Rename(file, file+".away"))
			c.harm(t, file)
			for range 2 {
				_, err = s.Apply(t.Context(), newStep("t", 2))
				require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "restart graphd")
			}
			err = s.PutGraph(t.Context(), checkpoint.GraphRecord{Name: "g", Version: "1", Source: "{}"}, checkpoint.GraphCondition{})
			require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
			require.ErrorIs(t, s.CheckWritable(t.Context()), checkpoint.ErrStoreReplaced)
			requireSteps(t, s, "t", 1)

			require.NoError(t, os.Rename(file+".away", file))
			require.NoError(t, s.CheckWritable(t.Context()))
			_, err = s.Apply(t.Context(), newStep("t", 2))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			requireSteps(t, openStore(t, path), "t", 2)
		})
	}
}

// A symbolic link that leads elsewhere than when it was opened counts, too.
func TestALinkThatLeadsElsewhere(t *testing.T) {
	dir := t.TempDir()
	link, one, two := filepath.Join(dir, "link"), filepath.Join(dir, "one.db"), filepath.Join(dir, "two.db")
	require.NoError(t, os.Symlink("one.db", link))
	s := openStore(t, link)
	require.FileExists(t, one)
	require.NoError(t, openStore(t, two).Close())
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(two, link))
	_, err := s.Apply(t.Context(), newStep("t", 1))
	require.ErrorIs(t, err, checkpoint.ErrStoreReplaced)
}

// A file has one owner under all its names.
func TestOneOwnerUnderAllNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	cmd := startOwner(t, path)

	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	symbolic, hard, folder := filepath.Join(sub, "symbolic.db"), filepath.Join(sub, "hard.db"), filepath.Join(dir, "folder")
	require.NoError(t, os.Symlink("../a.db", symbolic))
	require.NoError(t, os.Link(path, hard))
	require.NoError(t, os.Symlink(dir, folder))
	for _, name := range []string{path, symbolic, hard, filepath.Join(folder, "a.db")} {
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: name})
		var busy *sqlite.InUseError
		require.ErrorAs(t, err, &busy, name)
		if name != hard {
			require.Equal(t, cmd.Process.Pid, busy.PID, name)
		}
	}
	_, err := sqlite.Migrate(t.Context(), sqlite.Options{Path: hard}, true, nil)
	var busy *sqlite.InUseError
	require.ErrorAs(t, err, &busy)
	killOwner(t, cmd)
	requireSteps(t, openStore(t, symbolic), "t", 1)
}

// startOwner has another process own a file, with a change in it.
func startOwner(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "own", path)
	_, err := cmd.StdinPipe() // open for as long as the test waits
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

func killOwner(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

// Only the account that graphd runs as may read what it keeps, whatever the
// umask and whatever the rights of old files.
func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	rights := func() map[string]fs.FileMode {
		found := map[string]fs.FileMode{}
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			info, err := os.Stat(path + suffix)
			require.NoError(t, err)
			found[suffix] = info.Mode().Perm()
		}
		return found
	}
	want := map[string]fs.FileMode{"": 0o600, "-wal": 0o600, "-shm": 0o600, ".lock": 0o600}
	s := openStore(t, path)
	require.Equal(t, want, rights())
	require.Empty(t, s.Warnings())
	require.NoError(t, s.Close())

	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.Chmod(path+".lock", 0o666))
	s = openStore(t, path)
	require.Equal(t, want, rights())
	require.Len(t, s.Warnings(), 2)
	require.Contains(t, s.Warnings()[0], "a.db could be read by others (0644); it is 0600 now")
}

func TestRemoveLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "a.db"), Reserve: 4 << 10})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, sqlite.Remove(filepath.Join(dir, "a.db")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, sqlite.Remove(filepath.Join(dir, "a.db")), "what is gone is removed")
}
