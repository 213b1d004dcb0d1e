package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// world is a graphd and a node service, each a process of its own.
type world struct {
	graphd, address string
}

func start(t *testing.T) world {
	t.Helper()
	dir := t.TempDir()
	w := world{graphd: built.Graphd(t)}
	service := filepath.Join(dir, "node-service")
	build := exec.Command("go", "build", "-trimpath", "-o", service, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as graphd was built, with which it shares packages
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	endpoint := serving(t, exec.Command(service, "-listen", "127.0.0.1:0"), `serving address=(\S+)`)
	text, err := os.ReadFile("quote.yaml")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "127.0.0.1:7801"))
	graphs := filepath.Join(dir, "graphs")
	require.NoError(t, os.Mkdir(graphs, 0o700))
	moved := strings.ReplaceAll(string(text), "127.0.0.1:7801", endpoint)
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "quote.yaml"), []byte(moved), 0o600))

	server := exec.Command(w.graphd, "serve", "--listen", "127.0.0.1:0", "--store", "memory",
		"--graphs", graphs, "--log-format", "json")
	w.address = serving(t, server, `"msg":"serving","address":"([^"]+)"`)
	return w
}

// serving starts a process and returns the address that it says it serves on.
// When the test is over the process is told to end, and must end well.
func serving(t *testing.T, cmd *exec.Cmd, says string) string {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	var seen strings.Builder
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		m := regexp.MustCompile(says).FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for lines.Scan() { // a full pipe would stop the process
			}
		}()
		t.Cleanup(func() {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			<-drained
			require.NoError(t, cmd.Wait())
		})
		return m[1]
	}
	require.Fail(t, "the process ended before it served", seen.String())
	return ""
}

// run calls graphd and returns what it printed and its exit code.
func (w world) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(w.graphd, append(args, "--server", w.address)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestTheServiceIsANodeOfTheGraph(t *testing.T) {
	w := start(t)

	out, code := w.run(t, "run", "quote", "--thread", "small", "--input", `{"items": [{"sku": "lamp", "quantity": 2}]}`)
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "We offer this for 9800 cents.")

	out, code = w.run(t, "run", "quote", "--thread", "large", "-e", "updates,custom",
		"--input", `{"items": [{"sku": "desk", "quantity": 1}, {"sku": "chair", "quantity": 2}]}`)
	require.Equal(t, 3, code, out)
	require.Contains(t, out, `{"priced":"chair"}`)
	require.Contains(t, out, "The order is worth 55700 cents.")

	out, code = w.run(t, "resume", "large", "--value", "50")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "RESPONSE_SCHEMA_MISMATCH")
	out, code = w.run(t, "resume", "large", "--value", "10")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "We offer this for 50130 cents.")

	out, code = w.run(t, "run", "quote", "--thread", "odd", "--input", `{"items": [{"sku": "boat", "quantity": 1}]}`)
	require.Equal(t, 4, code, out)
	require.Contains(t, out, `there is no article "boat"`)
}
