package chaos_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timing is how long things take: short times, so that many faults are found out
// and mended in one test, and as much longer as the machine is busy, so that a
// worker that lives is not lost all the time.
type timing struct {
	slowdown         float64
	heartbeat, lease time.Duration
}

// usualLoadTime is how long the interpreter takes to load the SDK on a quiet machine.
const usualLoadTime = 500 * time.Millisecond

// timingOf finds the pace of this machine. A program was loaded in took.
func timingOf(took time.Duration) timing {
	slower := max(1, float64(took)/float64(usualLoadTime))
	return timing{
		slowdown: slower, heartbeat: time.Duration(150 * slower * float64(time.Millisecond)),
		lease: time.Duration(600 * slower * float64(time.Millisecond)),
	}
}

// scaleDuration is a duration of a quiet machine on this one.
func (p timing) scaleDuration(d time.Duration) time.Duration {
	return time.Duration(p.slowdown * float64(d))
}

// findPython is an interpreter with the SDK, and the pace of the machine. A machine
// without one can't show that workers survive, so that is a failure.
func findPython(tb testing.TB) (string, timing) {
	tb.Helper()
	path := os.Getenv("TEST_PYTHON") //nolint:forbidigo // which Python there is, is up to the machine
	if path == "" {
		path = filepath.Join("..", "..", ".cache", "python", "bin", "python")
	}
	began := time.Now()
	out, err := exec.Command(path, "-c", "import graphd").CombinedOutput()
	took := time.Since(began)
	if err != nil {
		require.FailNow(tb, "no Python with the SDK",
			"%s: %v %s\nrun `make chaos` or `make python-test` once, or set TEST_PYTHON to a Python with sdk/python installed", path, err, out)
	}
	path, err = filepath.Abs(path)
	require.NoError(tb, err)
	return path, timingOf(took)
}

// process is a program that is started, and started again, with its output in
// one file.
type process struct {
	tb         testing.TB
	newCommand func() *exec.Cmd
	log        *os.File

	mu  sync.Mutex
	cmd *exec.Cmd
	// exited is closed when cmd has ended.
	exited chan struct{}
}

func newProcess(tb testing.TB, log string, command func() *exec.Cmd) *process {
	tb.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(tb, err)
	p := &process{tb: tb, newCommand: command, log: file}
	tb.Cleanup(func() {
		p.killProcess()
		require.NoError(tb, file.Close())
	})
	return p
}

// startProcess runs the program. It must not be running.
func (p *process) startProcess() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.newCommand()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	exit := make(chan struct{})
	go func() {
		defer close(exit)
		_ = cmd.Wait() // how it ended is in its state
	}()
	p.cmd, p.exited = cmd, exit
	return nil
}

// sendSignal sends a signal; to a program that has ended it does nothing.
func (p *process) sendSignal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// killProcess ends the program the hard way.
func (p *process) killProcess() {
	p.sendSignal(syscall.SIGKILL)
	p.waitEnded(time.Minute)
}

// waitEnded waits until the program has ended, and says whether it has in time.
func (p *process) waitEnded(limit time.Duration) bool {
	p.mu.Lock()
	exit := p.exited
	p.mu.Unlock()
	if exit == nil {
		return true
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-exit:
		return true
	case <-timer.C:
		return false
	}
}

// hasEnded reports whether the program has ended by itself, and how.
func (p *process) hasEnded() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String(), true
	default:
		return "", false
	}
}

// freeAddress is free. A server keeps it over restarts.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, l.Close()) }()
	return l.Addr().String()
}

// lastLines is the end of a file, for the message of a failure.
func lastLines(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
