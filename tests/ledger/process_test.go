package ledger_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// python is an interpreter with the SDK.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GRAPHD_PYTHON") //nolint:forbidigo // which Python there is, is up to the machine
	if path == "" {
		path = filepath.Join("..", "..", ".cache", "python", "bin", "python")
	}
	out, err := exec.Command(path, "-c", "import graphd").CombinedOutput()
	if err != nil {
		require.FailNow(t, "no Python with the SDK",
			"%s: %v %s\nrun `make python-test` once, or set GRAPHD_PYTHON to a Python with sdk/python installed", path, err, out)
	}
	path, err = filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// process is a program that is started anew after each kill.
type process struct {
	t    *testing.T
	log  string
	make func() *exec.Cmd

	mu   sync.Mutex
	cmd  *exec.Cmd
	exit chan struct{}
}

func launch(t *testing.T, log string, command func() *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, log: log, make: command}
	require.NoError(t, p.start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(log), tail(log, 60))
		}
	})
	return p
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(p.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	cmd, exit := p.make(), make(chan struct{})
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return errors.Join(err, file.Close())
	}
	go func() {
		defer close(exit)
		_ = cmd.Wait()
		_ = file.Close()
	}()
	p.cmd, p.exit = cmd, exit
	return nil
}

// kill ends the process without a word, and waits for its end.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.exit
}

// ended reports whether the process has left by itself.
func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exit:
		return true
	default:
		return false
	}
}

// tail is the end of a file.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
