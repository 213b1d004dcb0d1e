package replicas_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// summary is what was noted of all tests.
var summary struct {
	mu    sync.Mutex
	lines []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if testing.Verbose() {
		slices.Sort(summary.lines)
		fmt.Fprintln(os.Stdout, "summary:\n  "+strings.Join(summary.lines, "\n  "))
	}
	os.Exit(code)
}

// replica is a server that is started again whenever it has ended, as an
// orchestrator would.
type replica struct {
	command func() *exec.Cmd
	log     string
	address string

	mu     sync.Mutex
	cmd    *exec.Cmd
	killed bool          // or told to stop
	down   time.Duration // how long it stays away then
}

// supervise runs the server until ctx ends. It returns an error when the
// server ends by itself for another reason than that it could not start.
func (r *replica) supervise(ctx context.Context) error {
	file, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for {
		began, err := file.Seek(0, 2)
		if err != nil {
			return err
		}
		cmd := r.command()
		cmd.Stdout, cmd.Stderr = file, file
		if err := r.start(cmd); err != nil {
			return err
		}
		unwatch := context.AfterFunc(ctx, func() { r.kill(0) })
		how := cmd.Wait()
		unwatch()
		killed, down := r.end()
		if ctx.Err() != nil {
			return nil
		}
		if !killed {
			text, err := os.ReadFile(r.log)
			if err != nil {
				return err
			}
			if said := string(text[began:]); strings.Contains(said, `"msg":"serving"`) || !couldNotStart(said) {
				return fmt.Errorf("server %s has ended by itself: %w\n%s", r.address, how, said)
			}
			down = 100 * time.Millisecond
		}
		pause(ctx, down)
	}
}

// couldNotStart knows the reasons for which a server that is well ends:
// Redis was away, or somebody had its port for a moment.
func couldNotStart(said string) bool {
	return strings.Contains(said, "the store can't be opened") || strings.Contains(said, "address already in use") ||
		strings.Contains(said, "can't be used: it does not answer") || strings.Contains(said, "error: STORE_UNAVAILABLE: the store ")
}

func (r *replica) start(cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	r.cmd, r.killed, r.down = cmd, false, 0
	return nil
}

func (r *replica) end() (killed bool, down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd = nil
	return r.killed, r.down
}

// kill ends the server the hard way; it comes back after a while.
func (r *replica) kill(down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		r.killed, r.down = true, down
		_ = r.cmd.Process.Kill()
	}
}

// stop lets the server end in order; it comes back after a while.
func (r *replica) stop(down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		r.killed, r.down = true, down
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// signal sends a signal, if there is a server.
func (r *replica) signal(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

// freeAddress is where nobody listens yet. A server keeps it over restarts.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, l.Close()) }()
	return l.Addr().String()
}

// pause waits. It reports false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// said is what a server logged about a thread and about what went wrong with
// all of them, for the message of a failure.
func said(path, thread string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		about := thread != "" && strings.Contains(line, fmt.Sprintf("%q", thread))
		wrong := !strings.Contains(line, `"level":"info"`) && !strings.Contains(line, `"thread`)
		if about || wrong || strings.Contains(line, `"msg":"serving"`) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines[max(0, len(lines)-80):], "\n")
}
