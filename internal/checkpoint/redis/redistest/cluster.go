package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartCluster starts servers that share the slots of a cluster, without
// replicas. Settings are those of Start.
func StartCluster(tb testing.TB, nodes int, settings ...string) []*Server {
	tb.Helper()
	servers := make([]*Server, nodes)
	buses := make([]int, nodes)
	for i := range servers {
		servers[i], buses[i] = startNode(tb, settings)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	for i, s := range servers {
		from, to := i*16384/nodes, (i+1)*16384/nodes-1
		err := s.Client.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", from, to).Err()
		if err == nil && i > 0 {
			err = servers[0].Client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", s.port, buses[i]).Err()
		}
		if err != nil {
			tb.Fatalf("node %d of the cluster: %v", i, err)
		}
	}
	for i, s := range servers {
		if err := s.waitForCluster(ctx, nodes); err != nil {
			tb.Fatalf("node %d of the cluster: %v", i, err)
		}
	}
	return servers
}

// startNode starts a server that knows no other yet, and says on which port
// others of its cluster reach it.
func startNode(tb testing.TB, settings []string) (s *Server, bus int) {
	tb.Helper()
	bus = freePort(tb)
	return Start(tb, append([]string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000",
	}, settings...)...), bus
}

// waitForCluster waits until a node knows the whole cluster.
func (s *Server) waitForCluster(ctx context.Context, nodes int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := s.Client.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no cluster after %v: %w\n%s", startTimeout, err, info)
		case <-tick.C:
		}
	}
}
