//go:build faults

package replicas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// clockAheadEnv is the environment variable by which a server whose clock can be set
// wrong is told how many seconds it is ahead.
const clockAheadEnv = "GRAPHD_TEST_CLOCK_AHEAD"

// buildWithWrongClock builds the server with another time.Now: programs in Go ask the
// kernel for the time and not a library that could be replaced. It compiles all
// of the standard library, and takes minutes the first time, hence the tag.
func buildWithWrongClock(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Equal(t, 1, strings.Count(string(text), reads), "%s is not as expected with %s", original, runtime.Version())
	dir := t.TempDir()
	files := map[string]string{
		original: strings.Replace(string(text), reads, reads+"\tsec += ahead\n", 1),
		filepath.Join(filepath.Dir(original), "ahead.go"): fmt.Sprintf(
			"package time\n\nimport \"syscall\"\n\nvar ahead = func() int64 {\n\ttext, _ := syscall.Getenv(%q)\n"+
				"\tn, _ := atoi(text)\n\treturn int64(n)\n}()\n", clockAheadEnv),
	}
	replaced := make(map[string]string)
	for name, content := range files {
		path := filepath.Join(dir, filepath.Base(name))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		replaced[name] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	path, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "graphd")
	require.NoError(t, os.WriteFile(path, overlay, 0o600))
	out, err = exec.Command("go", "build", "-overlay", path, "-o", binary, "../../cmd/graphd").CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

// One server whose clock is five hours fast and one whose clock is five hours
// slow: leases end when they must, and nothing that clients are shown has a
// time of either.
func TestClocksHoursOff(t *testing.T) {
	t.Parallel()
	n, long := partialSize()
	w := newCluster(t, clusterSetup{threads: n, spread: long, binary: buildWithWrongClock(t), env: func(replica int) []string {
		return []string{fmt.Sprintf("%s=%d", clockAheadEnv, []int{5 * 3600, -5 * 3600}[replica])}
	}})
	began := time.Now()
	faults := &faultInjector{replicas: w.replicas, proxies: w.proxies, redis: w.redis, tally: w.faults, seed: *seed}
	drivers := w.runUnderFaults(faults.killServers)
	for _, c := range w.servers {
		w.verifyTimes(c, drivers, began)
	}
	data, err := os.ReadFile(w.replicas[0].logPath)
	require.NoError(t, err)
	require.Contains(t, string(data), time.Now().UTC().Add(5*time.Hour).Format("2006-01-02T15:"), "the clock of the first server is right")
}

// verifyTimes checks that all times of all threads are between the beginning of the
// test and now.
func (w *cluster) verifyTimes(c harness.Client, drivers []*threadDriver, began time.Time) {
	w.Helper()
	const slack = 5 * time.Second
	check := func(what string, at *timestamppb.Timestamp) {
		w.Helper()
		require.NotNil(w, at, what)
		require.WithinRange(w, at.AsTime(), began.Add(-slack), time.Now().Add(slack), what)
	}
	for _, d := range drivers {
		thread, err := c.GetThread(w.Context(), &graphdv1.GetThreadRequest{ThreadId: d.thread})
		require.NoError(w, err)
		check("begin of thread", thread.GetCreateTime())
		check("last change of thread", thread.GetUpdateTime())
		run, err := c.GetRun(w.Context(), &graphdv1.GetRunRequest{ThreadId: d.thread, RunId: d.runID})
		require.NoError(w, err)
		check("begin of run", run.GetCreateTime())
		ctx, cancel := context.WithCancel(w.Context())
		stream, err := c.Watch(ctx, &graphdv1.WatchRequest{
			ThreadId: d.thread, Filter: harness.StoredEvents(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		})
		require.NoError(w, err)
		for {
			e, err := stream.Recv()
			require.NoError(w, err)
			check(fmt.Sprintf("%T", e.GetKind()), e.GetTime())
			if e.GetEnd() != nil {
				break
			}
		}
		cancel()
	}
}
