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

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

const examples = "../../examples/refund-review"

// A refund that a person has to decide.
const request = `{"user_id": 9007199254740993, "user_request": "I want a refund for order 8841"}`

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

// caller calls commands the way main does, without a terminal.
type caller struct {
	server   string
	in       string
	terminal bool
	env      map[string]string
}

func (c caller) call(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	code := c.execute(ctx, &out, &complaints, args)
	require.NotContains(t, out.String()+complaints.String(), "%!", "a verb does not fit its argument")
	return result{code: code, out: out.String(), err: complaints.String()}
}

// begin calls a command that goes on until it is left, as with Ctrl-C.
func (c caller) begin(t *testing.T, args ...string) (out *lockedBuffer, leave func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, complaints := newLockedBuffer(), newLockedBuffer()
	ended := make(chan int, 1)
	go func() { ended <- c.execute(ctx, out, complaints, args) }()
	return out, func() result {
		cancel()
		return result{code: <-ended, out: out.String(), err: complaints.String()}
	}
}

func (c caller) execute(ctx context.Context, out, complaints io.Writer, args []string) int {
	p := &program{
		IO:      cli.IO{In: strings.NewReader(c.in), Out: out, Err: complaints, Terminal: c.terminal},
		getenv:  func(name string) string { return c.env[name] },
		program: []string{"graphd"}, version: "test",
	}
	if c.server != "" {
		args = append(args, "--server", c.server)
	}
	return p.execute(ctx, args)
}

// serving starts a server in this process.
func serving(t *testing.T, store string) caller {
	t.Helper()
	o := serverOptions{Listen: "127.0.0.1:0", Store: store, Graphs: []string{examples}}
	s, err := newServer(t.Context(), o, zap.NewNop(), "test")
	require.NoError(t, err)
	s.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, s.drain(ctx))
	})
	return caller{server: s.address()}
}

// process is a server of its own, which can be killed.
type process struct {
	cmd     *exec.Cmd
	address string
	log     *lockedBuffer
}

// serveProcess starts `graphd serve` and waits until it serves. An empty
// listen means any port.
func serveProcess(t *testing.T, listen, store string, more ...string) *process {
	t.Helper()
	path := built.Graphd(t)
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	p := &process{log: newLockedBuffer()}
	args := []string{"serve", "--listen", listen, "--store", store, "--graphs", examples, "--log-format", "json"}
	p.cmd = exec.Command(path, append(args, more...)...)
	p.cmd.Stderr = p.log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			require.NoError(t, p.cmd.Process.Kill())
			require.Error(t, p.cmd.Wait())
		}
	})
	p.address = p.log.find(t, regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`))
	return p
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait(), "a killed process does not end well")
}

// lockedBuffer collects what a process writes while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{more: make(chan struct{}, 1)} }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// find waits for a pattern and returns its first group, or all of it.
func (b *lockedBuffer) find(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		if m := pattern.FindStringSubmatch(b.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-b.more:
		case <-deadline.C:
			require.FailNow(t, "never seen", "%s in:\n%s", pattern, b)
		}
	}
}

// execIn is a command in a folder.
func execIn(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}
