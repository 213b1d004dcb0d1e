package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Cluster is servers that share slots, and may change who has which.
type Cluster struct {
	Nodes []*Server
	tb    testing.TB
}

// AddReplica starts a replica of a node and waits until it has everything.
// Settings are those of Start.
func (c *Cluster) AddReplica(master *Server, settings ...string) *Server {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(c.tb.Context(), startTimeout)
	defer cancel()
	s, bus := startNode(c.tb, settings)
	if err := master.Client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", s.port, bus).Err(); err != nil {
		c.tb.Fatal(err)
	}
	id := c.nodeID(ctx, master)
	if err := master.Client.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		c.tb.Fatal(err)
	}
	for _, node := range c.Nodes {
		waitForAnswer(ctx, c.tb, s.Client, "CLUSTER NODES", c.nodeID(ctx, node))
	}
	if err := s.Client.ClusterReplicate(ctx, id).Err(); err != nil {
		c.tb.Fatal(err)
	}
	waitForAnswer(ctx, c.tb, s.Client, "INFO replication", "master_link_status:up")
	// The others vote for a replica only when they know it as a replica.
	for _, node := range c.Nodes {
		waitForAnswer(ctx, c.tb, node.Client, "CLUSTER NODES", "slave "+id)
	}
	return s
}

// FailOver kills a node whose replica takes its place.
func (c *Cluster) FailOver(master, replica *Server) {
	master.Kill()
	c.Nodes[slices.Index(c.Nodes, master)] = replica
}

// NewCluster starts a cluster as StartCluster does.
func NewCluster(tb testing.TB, nodes int, settings ...string) *Cluster {
	tb.Helper()
	return &Cluster{Nodes: StartCluster(tb, nodes, settings...), tb: tb}
}

// SlotOwner returns the node that has a slot.
func (c *Cluster) SlotOwner(ctx context.Context, slot int64) (*Server, error) {
	shares, err := c.Nodes[0].Client.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS names dead masters too
	if err != nil {
		return nil, fmt.Errorf("slots of the cluster: %w", err)
	}
	for _, share := range shares {
		if int64(share.Start) > slot || slot > int64(share.End) {
			continue
		}
		for _, node := range c.Nodes {
			if node.Addr() == share.Nodes[0].Addr {
				return node, nil
			}
		}
	}
	return nil, fmt.Errorf("no node has slot %d: %v", slot, shares)
}

// MoveSlot gives a slot to a node, key by key, as an operator would who rebalances
// a cluster in use. Between two keys it waits for the time that is given.
func (c *Cluster) MoveSlot(ctx context.Context, slot int64, to *Server, wait time.Duration) error {
	from, err := c.SlotOwner(ctx, slot)
	if err != nil || from == to {
		return err
	}
	target, source := c.nodeID(ctx, to), c.nodeID(ctx, from)
	if err := to.Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source).Err(); err != nil {
		return fmt.Errorf("importing slot %d: %w", slot, err)
	}
	if err := from.Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Err(); err != nil {
		return fmt.Errorf("migrating slot %d: %w", slot, err)
	}
	for {
		keys, err := from.Client.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		if err != nil {
			return fmt.Errorf("keys of slot %d: %w", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		err = from.Client.Migrate(ctx, "127.0.0.1", strconv.Itoa(to.port), keys[0], 0, startTimeout).Err()
		if err != nil {
			return fmt.Errorf("moving %s: %w", keys[0], err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("moving slot %d: %w", slot, ctx.Err())
		}
	}
	for _, node := range append([]*Server{to, from}, c.Nodes...) {
		if err := node.Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err(); err != nil {
			return fmt.Errorf("settling slot %d: %w", slot, err)
		}
	}
	return nil
}

func (c *Cluster) nodeID(ctx context.Context, s *Server) string {
	c.tb.Helper()
	id, err := s.Client.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		c.tb.Errorf("id of a node: %v", err)
	}
	return strings.TrimSpace(id)
}
