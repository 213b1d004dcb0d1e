// Package hostile_test gives a real server with 1 GiB of memory what an attacker
// would give it, while an honest client runs a trivial graph.
package hostile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// What the server has: a container of 1 GiB, of which automemlimit would give
// Go 80 %.
const (
	memoryLimit   = int64(1 << 30)
	goMemLimitEnv = "GOMEMLIMIT=858993459"
)

// server is a graphd process.
type server struct {
	*harness.Server

	peakBytes atomic.Int64 // most bytes of its own that it had
	killedAt  atomic.Int64 // the bytes for which it was killed, 0 = it was not
}

func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "g.db")
	s := &server{Server: harness.StartServer(t, []string{"env", goMemLimitEnv, built.Graphd(t)}, store, append([]string{
		"--log-level", "info", "--heartbeat", "1s", // so that each stream that is taken in says something
	}, flags...)...)}
	go s.watchMemory()
	return s
}

// logTail is the end of the log, and whether the test has killed the server.
func (s *server) logTail() string {
	if bytes := s.killedAt.Load(); bytes > 0 {
		return fmt.Sprintf("%s\nkilled by the test: %d MiB of its own", s.LogTail(200), bytes>>20)
	}
	return s.LogTail(200)
}

// watchMemory watches the memory until the process ends. It is killed where its
// container would kill it.
func (s *server) watchMemory() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.Done():
			return
		case <-tick.C:
		}
		now := s.ownBytes()
		if now > s.peakBytes.Load() {
			s.peakBytes.Store(now)
		}
		if now > memoryLimit {
			s.killedAt.Store(now)
			s.SendSignal(syscall.SIGKILL)
			return
		}
	}
}

// residentBytes is how many bytes of memory the process has, 0 when it has ended.
func (s *server) residentBytes() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel's
	return pages * int64(os.Getpagesize())
}

// ownBytes is how many bytes of that are the process's own: the rest are pages of its
// program, which the kernel drops when it needs the memory.
func (s *server) ownBytes() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	var kib int64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, _ = strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // the kernel's
		}
	}
	return kib << 10
}

// newClient connects a client, until ctx ends.
func (s *server) newClient(ctx context.Context, more ...grpc.DialOption) (harness.Client, error) {
	conn, err := grpc.NewClient(s.Address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)),
	}, more...)...)
	if err != nil {
		return harness.Client{}, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return harness.NewClient(conn), nil
}
