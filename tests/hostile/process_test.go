// Package hostile_test gives a real server with 1 GiB of memory what an attacker
// would give it, while an honest client runs a trivial graph.
package hostile_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// What the server has: a container of 1 GiB, of which automemlimit would give
// Go 70 %.
const (
	memoryLimit   = int64(1 << 30)
	goMemLimitEnv = "GOMEMLIMIT=751619276"
)

// server is a graphd process. Its log is read through a pipe, not written to a file as
// by harness.StartServer: with a file the server had some 50 MiB more at its peak in each of
// three runs beside three, presumably because it never waits for the reader.
type server struct {
	cmd       *exec.Cmd
	address   string
	metrics   string // the address of its metrics and profiles
	exited    chan struct{}
	logTail   *lastLines
	peakBytes atomic.Int64 // most bytes of its own that it had
}

// lastLines keeps the end of a log.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) addLine(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines = append(l.lines, line); len(l.lines) > 200 {
		l.lines = l.lines[100:]
	}
}

// String returns the last lines.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{exited: make(chan struct{}), logTail: &lastLines{}}
	s.cmd = exec.Command(built.Graphd(t), append([]string{
		"serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + filepath.Join(t.TempDir(), "g.db"), "--log-format", "json", "--log-level", "info",
		"--heartbeat", "1s", // so that each stream that is taken in says something
		"--metrics", "127.0.0.1:0", "--profiles",
	}, flags...)...)
	s.cmd.Env = append(os.Environ(), goMemLimitEnv)
	errs, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	addresses := make(chan []string, 1)
	go s.readLog(bufio.NewReader(errs), addresses)
	select {
	case found := <-addresses:
		s.address, s.metrics = found[1], found[2]
	case <-s.exited:
		t.Fatal(s.logTail)
	}
	go s.watchMemory()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGKILL)
		<-s.exited
	})
	return s
}

// readLog takes in the log until the process ends.
func (s *server) readLog(from *bufio.Reader, addresses chan<- []string) {
	defer close(s.exited)
	serving := regexp.MustCompile(`"serving","address":"([^"]+)".*"metrics":"([^"]+)"`)
	for {
		line, err := from.ReadString('\n')
		if found := serving.FindStringSubmatch(line); found != nil {
			addresses <- found
		}
		if !strings.Contains(line, `"finished call"`) {
			s.logTail.addLine(strings.TrimSpace(line))
		}
		if err != nil {
			_ = s.cmd.Wait()
			return
		}
	}
}

// watchMemory watches the memory until the process ends. It is killed where its
// container would kill it.
func (s *server) watchMemory() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.exited:
			return
		case <-tick.C:
		}
		now := s.ownBytes()
		if now > s.peakBytes.Load() {
			s.peakBytes.Store(now)
		}
		if now > memoryLimit {
			s.logTail.addLine(fmt.Sprintf("killed by the test: %d MiB of its own", now>>20))
			_ = s.cmd.Process.Kill()
			return
		}
	}
}

// ownBytes is how many bytes of memory are the process's own. The others are pages of its
// program, which the kernel drops when it needs the memory.
func (s *server) ownBytes() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	var kib int64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, _ = strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // the kernel's
		}
	}
	return kib << 10
}

// collectHeap makes the process collect its garbage, and returns how many bytes it
// then uses. That memory of the kernel follows is for the collector to see to, as slowly
// as it likes.
func (s *server) collectHeap(ctx context.Context) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/debug/pprof/heap?gc=1&debug=1", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`# HeapAlloc = (\d+)`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s: no heap in %.100q", response.Status, text)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

func (s *server) isAlive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// newClient connects a client, until ctx ends.
func (s *server) newClient(ctx context.Context, more ...grpc.DialOption) (harness.Client, error) {
	conn, err := grpc.NewClient(s.address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)),
	}, more...)...)
	if err != nil {
		return harness.Client{}, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return harness.NewClient(conn), nil
}
