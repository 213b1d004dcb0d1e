package refused_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/tests/harness"
)

const (
	reasonFull     = "STORE_FULL"
	reasonReplaced = "STORE_REPLACED"
)

// smallDisk is a folder on a disk of 24 MiB, as far as the command around a
// program sees it.
func smallDisk(t *testing.T) (dir string, around []string) {
	t.Helper()
	dir = t.TempDir()
	const options = "size=24m"
	if exec.Command("mount", "-t", "tmpfs", "-o", options, "graphd-test", dir).Run() == nil {
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
		return dir, nil
	}
	return dir, []string{
		"unshare", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o ` + options + ` graphd-test "$0" && exec "$@"`, dir,
	}
}

// smallFiles has a program whose files may have 12 or 24 MiB each: shells differ in
// what they count.
func smallFiles(t *testing.T) (dir string, around []string) {
	t.Helper()
	return t.TempDir(), []string{"sh", "-c", `ulimit -f 24576 && exec "$0" "$@"`}
}

// A store whose space ends, on a disk or because a file may be no larger: what was
// stored can be read, deleting threads frees space, and then the calls that were
// refused succeed.
func TestAFullStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		small func(t *testing.T) (string, []string)
		log   string
	}{
		"disk": {smallDisk, "is full: make room on it, or delete threads"},
		"file": {smallFiles, "is full: raise `ulimit -f`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, around := c.small(t)
			testFullStore(t, startServer(t, "sqlite:"+filepath.Join(dir, "graphd.db"), around, "--disk-reserve", "2097152"), c.log)
		})
	}
}

func testFullStore(t *testing.T, s *server, log string) {
	t.Helper()
	s.runToEnd("first", 10)
	thread := func(i int) string { return fmt.Sprint("t", i) }
	stored := 0
	var err error
	for ; err == nil && stored < 500; stored++ {
		_, err = s.startRun(thread(stored), 200_000)
	}
	stored--
	requireRefusal(t, err, codes.ResourceExhausted, reasonFull, "no space left", "nothing was changed", "read and deleted", "same request id")
	s.requireRefusing(reasonFull, log)

	// Runs that had begun wait, and so do calls that are made again.
	_, err = s.startRun(thread(stored), 200_000)
	require.Equal(t, reasonFull, harness.ReasonOf(err), err)
	s.requireThread("first")
	list, err := s.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{PageSize: 500})
	require.NoError(t, err)
	require.Len(t, list.GetThreads(), stored+1)

	for i := range stored / 2 {
		_, err := s.DeleteThread(t.Context(), &graphdv1.DeleteThreadRequest{ThreadId: thread(i), Force: true})
		require.NoError(t, err, "deleting makes room")
	}
	s.requireRunsGoOn(thread(stored))
	for i := stored / 2; i < stored; i++ {
		s.runToEnd(thread(i), 200_000) // the same run: its request id is known
	}
	s.requireThread("first")
	s.Stop(syscall.SIGTERM)
}

// A file that is removed or replaced while it is served: nothing is acknowledged that
// no reader would find, and the file put back is the way out, or a restart.
func TestAFileThatIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, other := range map[string][]byte{"removed": nil, "replaced": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "graphd.db")
			s := startServer(t, "sqlite:"+file, nil)
			s.runToEnd("before", 10)
			require.NoError(t, os.Rename(file, file+".away"))
			if other != nil {
				require.NoError(t, os.WriteFile(file, other, 0o600))
			}
			_, err := s.startRun("lost", 10)
			requireRefusal(t, err, codes.FailedPrecondition, reasonReplaced, "no longer the one that this server opened", "the server's log says how")
			s.requireRefusing(reasonReplaced, "graphd.db was "+name, "put the file back under its name")
			_, err = s.DeleteThread(t.Context(), &graphdv1.DeleteThreadRequest{ThreadId: "before"})
			require.Equal(t, reasonReplaced, harness.ReasonOf(err), err)
			s.requireThread("before")

			require.NoError(t, os.Rename(file+".away", file))
			s.requireRunsGoOn("after")
			s.Stop(syscall.SIGTERM)

			again := startServer(t, "sqlite:"+file, nil)
			again.requireThread("before")
			again.requireThread("after")
			_, err = again.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "lost"})
			require.Equal(t, "THREAD_NOT_FOUND", harness.ReasonOf(err), "what was refused was not made")
		})
	}
}

// A server whose file was replaced begins with what is there when it is started
// again; the file that was moved away keeps what it has.
func TestAServerThatIsRestartedTakesTheFileThatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, away := filepath.Join(dir, "graphd.db"), filepath.Join(dir, "away.db")
	s := startServer(t, "sqlite:"+file, nil)
	s.runToEnd("mine", 10)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.Rename(file+suffix, away+suffix))
	}
	s.requireRefusing(reasonReplaced, "was removed")
	s.Stop(syscall.SIGTERM)

	fresh := startServer(t, "sqlite:"+file, nil)
	_, err := fresh.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "mine"})
	require.Equal(t, "THREAD_NOT_FOUND", harness.ReasonOf(err))
	fresh.runToEnd("new", 10)
	startServer(t, "sqlite:"+away, nil).requireThread("mine")
}

// Redis that comes back empty: an idle server notices, and no client is told that
// its threads never were. The next start makes a new store.
func TestRedisThatIsEmptied(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendfsync", "no")
	s := startServer(t, redis.URL(""), nil, "--heartbeat", "1s")
	s.runToEnd("before", 10)
	watch := s.watchInterrupts("")
	bookmark, err := watch.Recv()
	require.NoError(t, err)
	require.NoError(t, redis.Client.FlushAll(t.Context()).Err())
	s.requireRefusing(reasonReplaced, "Redis came back empty", "Restore a backup", "restart the servers")
	require.Equal(t, reasonReplaced, harness.ReasonOf(readToError(watch)), "who waits for questions is told")
	for _, token := range []string{"", bookmark.GetResumeToken()} {
		require.Equal(t, reasonReplaced, harness.ReasonOf(readToError(s.watchInterrupts(token))), "an inbox of nothing is not the inbox")
	}
	_, err = s.startRun("lost", 10)
	requireRefusal(t, err, codes.FailedPrecondition, reasonReplaced, "no longer the one that this server opened", "the server's log says how")
	_, err = s.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "before"})
	require.Equal(t, reasonReplaced, harness.ReasonOf(err), "what was lost is not what never was")
	s.Stop(syscall.SIGTERM)

	fresh := startServer(t, redis.URL(""), nil)
	fresh.runToEnd("new", 10)
	_, err = fresh.GetThread(context.WithoutCancel(t.Context()), &graphdv1.GetThreadRequest{ThreadId: "before"})
	require.Equal(t, "THREAD_NOT_FOUND", harness.ReasonOf(err))
}
