// Package process runs programs for tests that break them: servers and workers
// of their own processes, whose logs a failed test shows.
package process

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs until the test ends, and can be started again.
type Process struct {
	tb         testing.TB
	logPath    string
	newCommand func() *exec.Cmd

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// Launch starts a program. Its output goes to a file of that name in a folder of
// the test. It starts the result of made once, and again by each Start.
func Launch(tb testing.TB, name string, made func() *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{tb: tb, logPath: filepath.Join(tb.TempDir(), name+".log"), newCommand: made}
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%s:\n%s", name, p.LogTail(100))
		}
	})
	return p
}

// Start starts the program when it has ended.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(p.logPath, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	cmd, exit := p.newCommand(), make(chan struct{})
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return errors.Join(err, file.Close())
	}
	go func() {
		defer close(exit)
		_ = cmd.Wait()
		_ = file.Close()
	}()
	p.cmd, p.exited = cmd, exit
	return nil
}

// Kill ends the program without a drain, and waits for its end.
func (p *Process) Kill() { p.Stop(syscall.SIGKILL) }

// Stop sends a signal, and waits for the end.
func (p *Process) Stop(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s)
	<-p.exited
}

// SendSignal sends a signal, and does not wait. A program that has ended gets none.
func (p *Process) SendSignal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s)
}

// WaitForEnd waits until the program has ended, and reports whether it has ended in
// time.
func (p *Process) WaitForEnd(limit time.Duration) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-exited:
		return true
	case <-timer.C:
		return false
	}
}

// HasEnded reports whether the program has ended by itself.
func (p *Process) HasEnded() bool { return p.EndState() != "" }

// EndState returns how the program has ended, like "exit status 0"; "" while it
// runs.
func (p *Process) EndState() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// LogPath returns the path of the file with the output.
func (p *Process) LogPath() string { return p.logPath }

// WaitForLine waits until a line of the log has all the words, and returns it.
func (p *Process) WaitForLine(words ...string) string {
	p.tb.Helper()
	limit, look := time.NewTimer(time.Minute), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer look.Stop()
	for {
		over := p.HasEnded() // read before the log, so that the last lines count
		if line := p.findLine(words); line != "" {
			return line
		}
		if over {
			p.tb.Fatalf("%s has ended and never said %q", p.logPath, words)
		}
		select {
		case <-look.C:
		case <-limit.C:
			p.tb.Fatalf("%s has not said %q", p.logPath, words)
		}
	}
}

// findLine returns the first line with all the words, "" if there is none.
func (p *Process) findLine(words []string) string {
	file, err := os.Open(p.logPath)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lines.Text(), w) }) {
			return lines.Text()
		}
	}
	return ""
}

// WaitForAddress waits until a server of graphd that logs JSON serves, and returns its
// address.
func (p *Process) WaitForAddress() string {
	p.tb.Helper()
	_, rest, _ := strings.Cut(p.WaitForLine(`"msg":"serving"`), `"address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

// LogTail returns the end of the log, without the lines of calls.
func (p *Process) LogTail(lines int) string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	all := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(line string) bool {
		return strings.Contains(line, "finished call")
	})
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Ports below those that the kernel gives to connections, and to listeners that name none: one that
// is free stays free until it is used.
const firstPort, lastPort = 10_000, 32_000

// FreeAddress returns an address on which no process listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	var refused error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		l, err := net.Listen("tcp", address)
		if err != nil {
			refused = err
			continue
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		return address
	}
	tb.Fatal(refused)
	return ""
}

// Python returns an interpreter with the SDK: $TEST_PYTHON, or that of this
// checkout, as seen from a package in tests.
func Python(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("TEST_PYTHON") //nolint:forbidigo // which Python there is, is up to the machine
	if path == "" {
		path = filepath.Join("..", "..", ".cache", "python", "bin", "python")
	}
	out, err := exec.Command(path, "-c", "import graphd").CombinedOutput()
	if err != nil {
		tb.Fatalf("no Python with the SDK: %s: %v %s\nrun `make python-test` once, or set TEST_PYTHON to a Python with sdk/python installed",
			path, err, out)
	}
	if path, err = filepath.Abs(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// TypeScript returns the built SDK for TypeScript, the file that programs import.
func TypeScript(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "sdk", "typescript", ".build", "index.js"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		tb.Fatalf("no TypeScript SDK: %s\nrun `make ts-build`", err)
	}
	return path
}
