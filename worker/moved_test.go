package worker_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/network"
)

// A task stays with its worker when another server on the same store takes up its run.
func TestATaskFollowsItsRunToAnotherServer(t *testing.T) {
	t.Parallel()
	store := redistest.Start(t, "--appendfsync", "no").URL("")
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "drained": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--lease", "2s", "--worker-beat", "300ms", "--worker-lease", "1m", "--drain-timeout", "2s"}
			first, second := startServerOn(t, store, flags...), startServerOn(t, store, flags...)
			p := network.NewProxy(t, first.Address)
			g := newGate(name)
			serve(t, p.Address(), oneNode(name, g.run))
			first.start(t, name, name)
			receive(t, g.begun, "the node")
			p.Redirect(second.Address)
			first.SendSignal(end)
			g.open <- struct{}{}
			requireOutput(t, `{"a":"`+name+`"}`, second.wait(t, name))
			require.Equal(t, int32(1), g.starts.Load())
			require.Equal(t, int32(1), g.memos.Load())
		})
	}
}
