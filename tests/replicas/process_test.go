package replicas_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphd-dev/graphd/tests/harness"
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
	newCommand func() *exec.Cmd
	logPath    string
	address    string

	mu        sync.Mutex
	cmd       *exec.Cmd
	wasKilled bool          // or told to stop
	downtime  time.Duration // how long it stays away then
}

// keepRunning runs the server until ctx ends. It returns an error when the
// server ends by itself for another reason than that it could not start.
func (r *replica) keepRunning(ctx context.Context) error {
	file, err := os.OpenFile(r.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for {
		began, err := file.Seek(0, 2)
		if err != nil {
			return err
		}
		cmd := r.newCommand()
		cmd.Stdout, cmd.Stderr = file, file
		if err := r.startCommand(cmd); err != nil {
			return err
		}
		unwatch := context.AfterFunc(ctx, func() { r.killServer(0) })
		how := cmd.Wait()
		unwatch()
		killed, down := r.recordEnd()
		if ctx.Err() != nil {
			return nil
		}
		if !killed {
			text, err := os.ReadFile(r.logPath)
			if err != nil {
				return err
			}
			if said := string(text[began:]); strings.Contains(said, `"msg":"serving"`) || !isStartFailure(said) {
				return fmt.Errorf("server %s has ended by itself: %w\n%s", r.address, how, said)
			}
			down = 100 * time.Millisecond
		}
		harness.SleepContext(ctx, down)
	}
}

// isStartFailure knows the reasons for which a server that is well ends: Redis was
// away, or another process had its port for a moment.
func isStartFailure(said string) bool {
	return strings.Contains(said, "the store can't be opened") || strings.Contains(said, "address already in use") ||
		strings.Contains(said, "can't be used: it does not answer") || strings.Contains(said, "error: STORE_UNAVAILABLE: the store ")
}

func (r *replica) startCommand(cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	r.cmd, r.wasKilled, r.downtime = cmd, false, 0
	return nil
}

func (r *replica) recordEnd() (killed bool, down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd = nil
	return r.wasKilled, r.downtime
}

// killServer ends the server the hard way; it comes back after a while.
func (r *replica) killServer(down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		r.wasKilled, r.downtime = true, down
		_ = r.cmd.Process.Kill()
	}
}

// stopServer lets the server end in order; it comes back after a while.
func (r *replica) stopServer(down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		r.wasKilled, r.downtime = true, down
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// signalServer sends a signal, if there is a server.
func (r *replica) signalServer(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

// logOfThread is what a server logged about a thread and about what went wrong with
// all of them, for the message of a failure.
func logOfThread(path, thread string) string {
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
