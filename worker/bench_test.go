package worker_test

import (
	"crypto/rand"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
	"github.com/graphd-dev/graphd/worker"
)

// BenchmarkRuns measures runs of three nodes in a worker, many at a time.
func BenchmarkRuns(b *testing.B) {
	s := harness.StartServer(b, []string{built.Graphd(b)}, "memory")
	c, err := client.Dial(s.Address)
	require.NoError(b, err)
	g := graph.New("three").Channel("a").Node("x", update(`{"a":1}`)).Node("y", update(`{"a":2}`)).Node("z", update(`{"a":3}`)).
		Chain(graph.Start, "x", "y", "z", graph.End)
	w, err := worker.Dial(s.Address, worker.Options{Graphs: []*graph.Builder{g}})
	require.NoError(b, err)
	go func() { _ = w.Run(b.Context()) }()
	<-w.Ready()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		thread := rand.Text()
		for i := 0; pb.Next(); i++ {
			o, err := c.Invoke(b.Context(), client.Run{Graph: "three", Thread: thread + strconv.Itoa(i), Input: map[string]any{}})
			if err != nil || o.Run.GetFailure() != nil {
				b.Error(err, o)
			}
		}
	})
}
