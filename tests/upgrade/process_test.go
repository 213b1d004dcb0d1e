// Package upgrade_test reads with today's graphd what earlier ones have stored.
package upgrade_test

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// waitTimeout bounds what must not hang.
const waitTimeout = 2 * time.Minute

// TestMain lets all tests run at the same time: each mostly waits for the leases of
// the processes that wrote its store.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// client is everything that tests call.
type client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient
}

// server is a graphd of its own process.
type server struct {
	client

	tb     testing.TB
	cmd    *exec.Cmd
	output *lockedBuffer
	ended  chan struct{}
}

// startServer starts a program on a store and waits until it serves.
func startServer(tb testing.TB, program, store string, more ...string) *server {
	tb.Helper()
	address := freeAddress(tb)
	args := append([]string{
		"serve", "--store", store, "--listen", address, "--log-format", "json", "--checkpoints", "all",
		"--worker-beat", "500ms", "--worker-lease", "5s", // for so long the tasks of gone workers wait
	}, more...)
	s := &server{tb: tb, cmd: exec.Command(program, args...), output: &lockedBuffer{}, ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	require.NoError(tb, s.cmd.Start())
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	tb.Cleanup(s.killServer)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	s.client = client{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn),
		graphdv1.NewInterruptServiceClient(conn), graphdv1.NewRegistryServiceClient(conn),
		graphdv1.NewWorkerServiceClient(conn),
	}
	require.Eventually(tb, func() bool {
		select {
		case <-s.ended:
			tb.Fatalf("the server has ended:\n%s", s.output)
		default:
		}
		ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
		defer cancel()
		_, err := s.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
		return err == nil
	}, waitTimeout, 20*time.Millisecond)
	return s
}

// killServer ends the server the hard way.
func (s *server) killServer() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// runCommand runs a program to its end and returns what it said.
func runCommand(tb testing.TB, program string, args ...string) (code int, said string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(tb, err)
	}
	require.NotContains(tb, string(out), "%!", "a verb does not fit its argument")
	return cmd.ProcessState.ExitCode(), string(out)
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, l.Close()) }()
	return l.Addr().String()
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
