// Package redistest starts Redis servers for tests: each on a free port of the
// loopback and in a folder of its own, never a server that runs already.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// Server is a Redis server of a test. It ends with the test.
type Server struct {
	tb   testing.TB
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
	// Client talks to the server beside the tested code.
	Client *goredis.Client
}

// startTimeout is how long a server may take to start on a busy machine.
const startTimeout = time.Minute

// Start starts a server that keeps every change (appendonly, fsync always).
// Settings are further arguments, like "--maxmemory", "10mb"; later settings win.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, dir: tb.TempDir()}
	tb.Cleanup(func() {
		if s.Client != nil {
			_ = s.Client.Close()
		}
		s.Kill()
	})
	for left := 3; ; left-- {
		s.port = freePort(tb)
		s.args = append([]string{
			"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always", "--logfile", s.logPath(),
		}, settings...)
		s.Client = goredis.NewClient(&goredis.Options{Addr: s.Addr(), MaxRetries: 5})
		err := s.startProcess()
		if err == nil {
			return s
		}
		// Another process may have taken the port meanwhile.
		_ = s.Client.Close()
		s.Kill()
		if left == 0 {
			tb.Fatal(err)
		}
	}
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "redis.log") }

// Addr is host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// HostPort is the address in two parts.
func (s *Server) HostPort() (host, port string) { return "127.0.0.1", strconv.Itoa(s.port) }

// patience is for a server that gets no processor for a while: a test that is about
// time says so in its query.
const patience = "dial_timeout=1m&read_timeout=1m&write_timeout=1m"

// URL returns the URL for graphd; query may be "".
func (s *Server) URL(query string) string {
	if query == "" || !strings.Contains(query, "_timeout=") {
		query = strings.TrimPrefix(query+"&"+patience, "&")
	}
	return "redis://" + s.Addr() + "/0?" + query
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Restart kills the server and starts it again with its kept data.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.TryRestart(); err != nil {
		s.tb.Fatal(err)
	}
}

// TryRestart is Restart for those that are not the goroutine of the test.
func (s *Server) TryRestart() error {
	s.tb.Helper()
	s.Kill()
	return s.startProcess()
}

// AppendedBytes is how far the append-only file of changes has been written.
func (s *Server) AppendedBytes() (int64, error) {
	path, err := s.appendOnlyFile()
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("append-only file: %w", err)
	}
	return info.Size(), nil
}

// RestartTruncated kills the server, cuts its append-only file at a point, and starts
// it again: as on a machine that loses its power before the file was synced.
func (s *Server) RestartTruncated(written int64) error {
	s.tb.Helper()
	s.Kill()
	path, err := s.appendOnlyFile()
	if err != nil {
		return err
	}
	if err := os.Truncate(path, written); err != nil {
		return fmt.Errorf("append-only file: %w", err)
	}
	return s.startProcess()
}

// appendOnlyFile is the file that changes are appended to; it stays the same while the
// server does not rewrite it.
func (s *Server) appendOnlyFile() (string, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err != nil {
		return "", fmt.Errorf("append-only file: %w", err)
	}
	if len(files) != 1 {
		return "", fmt.Errorf("there are %d append-only files, and not one", len(files))
	}
	return files[0], nil
}

func (s *Server) startProcess() error {
	s.tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		s.tb.Fatal("redis-server is not installed and these tests start their own: apt-get install redis-server")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.tb.Context()), startTimeout)
	defer cancel()
	s.cmd = exec.Command(path, s.args...)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	if err := s.waitUntilReady(ctx); err != nil {
		log, _ := os.ReadFile(s.logPath())
		return fmt.Errorf("redis-server on port %d: %w\n%s", s.port, err, log)
	}
	return nil
}

// waitUntilReady waits until the server answers, with a password or without, and sees
// that it is this server.
func (s *Server) waitUntilReady(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := s.Client.Info(ctx, "server").Result()
		switch {
		case goredis.HasErrorPrefix(err, "NOAUTH"):
			return nil
		case err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r", s.cmd.Process.Pid)):
			return errors.New("another server has the port")
		case err == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", startTimeout, err)
		case <-tick.C:
		}
	}
}

func freePort(tb testing.TB) int {
	tb.Helper()
	_, port, err := net.SplitHostPort(process.FreeAddress(tb))
	if err != nil {
		tb.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		tb.Fatal(err)
	}
	return number
}
