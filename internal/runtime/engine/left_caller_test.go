package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// leftStore is a store whose caller leaves while it makes a change. It makes the change,
// and tells a caller whose context has ended nothing of it, as databases do.
type leftStore struct {
	checkpoint.Store

	leave context.CancelFunc
}

func (s *leftStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	s.leave()
	r, err := s.Store.Apply(context.WithoutCancel(ctx), c)
	if ctx.Err() != nil {
		return checkpoint.Receipt{}, ctx.Err()
	}
	return r, err
}

// A run that is stored is driven, though the caller who has started it has left meanwhile.
func TestStartedRunsNeedNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		c := newCluster(t, openMemory(t), 0, faultRefused)
		defer c.closeAll()
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(chainSpec("g", channelsLog, "quick", "last"))
		e := c.startEngine(&leftStore{c.store, leave})
		began := time.Now()
		started, err := e.Start(ctx, runtime.StartRequest{
			Thread: "t", CreateThread: true, Graph: "g", RequestID: "r", Request: checkpoint.RunRequest{Input: `{"log":[]}`},
		})
		require.NoError(t, err)
		run, err := e.WaitRun(t.Context(), "t", started.Run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, run.State)
		require.Less(t, time.Since(began), time.Second) // of virtual time: no lease had to end
	})
}
