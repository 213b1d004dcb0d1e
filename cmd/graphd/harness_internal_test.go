package main

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

const examplesDir = "../../examples/refund-review"

// A refund that a person has to decide.
const refundInput = `{"user_id": 9007199254740993, "user_request": "I want a refund for order 8841"}`

// commandResult is the outcome of a command.
type commandResult struct {
	code     int
	out, err string
}

// commandRunner calls commands the way main does, without a terminal.
type commandRunner struct {
	server     string
	http       string // URL of the API for browsers, "" = none
	stdin      string
	isTerminal bool
	columns    int
	env        map[string]string

	isErrTerminal bool
	openBrowser   func(url string) error
	demoLinger    time.Duration
}

func (c commandRunner) runCommand(t *testing.T, args ...string) commandResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	code := c.executeCommand(ctx, &out, &complaints, args)
	require.NotContains(t, out.String()+complaints.String(), "%!", "a verb does not fit its argument")
	return commandResult{code: code, out: out.String(), err: complaints.String()}
}

// startCommand calls a command that runs until it is interrupted, as with Ctrl-C.
func (c commandRunner) startCommand(t *testing.T, args ...string) (out *lockedBuffer, leave func() commandResult) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, complaints := newLockedBuffer(), newLockedBuffer()
	ended := make(chan int, 1)
	go func() { ended <- c.executeCommand(ctx, out, complaints, args) }()
	return out, func() commandResult {
		cancel()
		return commandResult{code: <-ended, out: out.String(), err: complaints.String()}
	}
}

func (c commandRunner) executeCommand(ctx context.Context, out, complaints io.Writer, args []string) int {
	p := &program{
		IO:         output.IO{In: strings.NewReader(c.stdin), Out: out, Err: complaints, IsTerminal: c.isTerminal, Columns: c.columns},
		getenv:     func(name string) string { return c.env[name] },
		invocation: []string{"graphd"}, version: "test",
		isErrTerminal: c.isErrTerminal, openBrowser: c.openBrowser, demoLinger: c.demoLinger,
	}
	if c.server != "" {
		args = append(args, "--server", c.server)
	}
	return p.executeCommand(ctx, args)
}

// startServer starts a server in this process.
func startServer(t *testing.T, store string) commandRunner {
	t.Helper()
	return startServerWith(t, server.Options{Store: store, Graphs: []string{examplesDir}})
}

// startServerWith starts a server with options, on any port.
func startServerWith(t *testing.T, o server.Options) commandRunner {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	if o.WorkerBeat == 0 { // the workers of these tests send no beats, and the machine may be slow
		o.WorkerBeat, o.WorkerLease = 10*time.Minute, time.Hour
	}
	s, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, s.DrainServer(ctx))
	})
	return commandRunner{server: s.Address(), http: s.HTTPURL()}
}

// serverProcess is a server of its own, which can be killed.
type serverProcess struct {
	*process.Process

	address string
}

// startServerProcess starts `graphd serve` and waits until it serves. An empty
// listen means any port.
func startServerProcess(t *testing.T, listen, store string, more ...string) *serverProcess {
	t.Helper()
	path := built.Graphd(t)
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	args := append([]string{"serve", "--listen", listen, "--store", store, "--graphs", examplesDir, "--log-format", "json"}, more...)
	p := process.Launch(t, "server", func() *exec.Cmd { return exec.Command(path, args...) })
	return &serverProcess{p, p.WaitForAddress()}
}

// lockedBuffer collects what a process writes while a test reads it.
type lockedBuffer struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{}
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{written: make(chan struct{}, 1)} }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.written <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// waitForMatch waits for a pattern and returns its first group, or all of it.
func (b *lockedBuffer) waitForMatch(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		if m := pattern.FindStringSubmatch(b.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-b.written:
		case <-deadline.C:
			require.FailNow(t, "never seen", "%s in:\n%s", pattern, b)
		}
	}
}

// newCommandIn returns a command in a folder.
func newCommandIn(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}
