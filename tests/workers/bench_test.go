package workers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// BenchmarkChainOfTen runs a chain of ten trivial nodes in a worker.
func BenchmarkChainOfTen(b *testing.B) {
	s := startServer(b, config{})
	nodes := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}
	work := make(map[string]taskFunc, len(nodes))
	for _, n := range nodes {
		work[n] = returnsUpdate(`{"x":1}`)
	}
	s.startWorker("w1", 4, listSpecs(newChainGraph("g", nodes...)), work)
	for b.Loop() {
		run, err := s.StartRun(b.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: "g", Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":1}`)},
		}})
		require.NoError(b, err)
		run, err = s.WaitRun(b.Context(), &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
		require.NoError(b, err)
		require.Equal(b, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	}
}

// BenchmarkTenRoundTrips is what ten bare calls of the same connection take.
func BenchmarkTenRoundTrips(b *testing.B) {
	s := startServer(b, config{})
	for b.Loop() {
		for range 10 {
			_, err := s.GetServerInfo(b.Context(), &graphdv1.GetServerInfoRequest{})
			require.NoError(b, err)
		}
	}
}
