package harness

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// Server is a graphd of its own process, as its clients see it.
type Server struct {
	Client
	*process.Process

	Address string
}

// StartServer starts a graphd on a store, and waits until it serves. command is the
// program, with what it is started by before it.
func StartServer(tb testing.TB, command []string, store string, flags ...string) *Server {
	tb.Helper()
	command = slices.Concat(command, []string{"serve", "--listen", "127.0.0.1:0", "--store", store, "--log-format", "json"}, flags)
	p := process.Launch(tb, "server", func() *exec.Cmd { return exec.Command(command[0], command[1:]...) })
	address := p.WaitForAddress()
	return &Server{Client: Dial(tb, address), Process: p, Address: address}
}
