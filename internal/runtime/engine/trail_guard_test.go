package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/trail"
)

// trailGuard is a store that finds changes which take entries out of a trail, or store a
// state or a vote without its entry.
type trailGuard struct {
	checkpoint.Store

	mu      sync.Mutex
	trouble []string
}

func (g *trailGuard) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	before := map[string]checkpoint.Interrupt{}
	for i := range c.Interrupts {
		if old, err := g.Interrupt(ctx, c.Thread, c.Interrupts[i].ID); err == nil {
			before[old.ID] = old
		}
	}
	r, err := g.Store.Apply(ctx, c)
	if err != nil {
		return r, err
	}
	for i := range c.Interrupts {
		q, err := g.Interrupt(ctx, c.Thread, c.Interrupts[i].ID)
		old := before[q.ID]
		if err != nil || q.Revision != old.Revision+1 {
			continue // another change came between
		}
		if problem := findTrailProblem(&old, &q); problem != "" {
			g.mu.Lock()
			g.trouble = append(g.trouble, q.ID+": "+problem)
			g.mu.Unlock()
		}
	}
	return r, nil
}

// findTrailProblem says what is wrong with the trail of a question after a change, "" = nothing.
func findTrailProblem(old, q *checkpoint.Interrupt) string {
	if q.Policy == nil && q.Trail.IsEmpty() {
		return ""
	}
	entries, err := q.Trail.Entries()
	if err != nil {
		return err.Error()
	}
	if q.Trail.State != string(q.State) {
		return fmt.Sprintf("is %s, and its trail says %s", q.State, q.Trail.State)
	}
	for _, v := range q.Votes {
		if v.Entry == 0 || entries[v.Entry-1].Principal != v.Voter || entries[v.Entry-1].Kind != trail.Voted {
			return "has a vote of " + v.Voter + " without its entry"
		}
	}
	if n, m := len(old.Trail.Records), len(q.Trail.Records); n > m || n > 0 && q.Trail.Records[n-1] != old.Trail.Records[n-1] {
		return fmt.Sprintf("had %d entries, and has %d others", n, m)
	}
	return ""
}

// A guarded store can do what its store can do beyond checkpoint.Store.
type (
	guardedMemory struct {
		*memory.Store
		guard *trailGuard
	}
	guardedSQLite struct {
		*sqlite.Store
		guard *trailGuard
	}
	guardedRedis struct {
		*redis.Store
		guard *trailGuard
	}
)

func (s guardedMemory) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return s.guard.Apply(ctx, c)
}

func (s guardedSQLite) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return s.guard.Apply(ctx, c)
}

func (s guardedRedis) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return s.guard.Apply(ctx, c)
}

// guardTrails makes a store that fails the test when a trail is not kept.
func guardTrails(tb testing.TB, store checkpoint.Store) checkpoint.Store {
	tb.Helper()
	g := &trailGuard{Store: store}
	tb.Cleanup(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, trouble := range g.trouble {
			tb.Error(trouble)
		}
	})
	switch s := store.(type) {
	case *memory.Store:
		return guardedMemory{s, g}
	case *sqlite.Store:
		return guardedSQLite{s, g}
	case *redis.Store:
		return guardedRedis{s, g}
	}
	return g
}
