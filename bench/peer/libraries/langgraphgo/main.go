// Command langgraphgo drives the graph library of that name, see ../../README.md.
//
// A graph is compiled for every run: its checkpoints slow down with the number
// of runs otherwise, and a compiled graph is not safe to share.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/smallnest/langgraphgo/graph"
	"github.com/smallnest/langgraphgo/store"
	"github.com/smallnest/langgraphgo/store/memory"
	"github.com/smallnest/langgraphgo/store/redis"

	"github.com/graphd-dev/graphd/bench/peer/libraries/drive"
)

const length = 10

func main() {
	drive.Answer("langgraphgo", "github.com/smallnest/langgraphgo", func(r drive.Request) (drive.One, error) {
		kept, err := open(r)
		if err != nil {
			return nil, err
		}
		switch r.Workload {
		case "W1":
			return func(ctx context.Context, thread string) (time.Duration, error) { return chain(ctx, kept, thread) }, nil
		case "W2", "W5":
			return func(ctx context.Context, thread string) (time.Duration, error) { return question(ctx, kept, thread) }, nil
		default:
			return nil, fmt.Errorf("no workload %s", r.Workload)
		}
	})
}

func open(r drive.Request) (store.CheckpointStore, error) {
	switch r.Store {
	case "memory":
		return memory.NewMemoryCheckpointStore(), nil
	case "redis":
		address, database, err := r.Redis()
		return redis.NewRedisCheckpointStore(redis.RedisOptions{Addr: address, DB: database}), err
	default:
		return nil, fmt.Errorf("no store %s", r.Store)
	}
}

type state struct {
	X      int    `json:"x"`
	Answer string `json:"answer"`
}

func add(_ context.Context, s state) (state, error) {
	s.X++
	return s, nil
}

func compile(kept store.CheckpointStore, names []string, nodes map[string]func(context.Context, state) (state, error)) (*graph.CheckpointableRunnable[state], error) {
	g := graph.NewCheckpointableStateGraphWithConfig[state](graph.CheckpointConfig{Store: kept, AutoSave: true})
	for i, name := range names {
		node := nodes[name]
		if node == nil {
			node = add
		}
		g.AddNode(name, name, node)
		if i > 0 {
			g.AddEdge(names[i-1], name)
		}
	}
	g.SetEntryPoint(names[0])
	g.AddEdge(names[len(names)-1], graph.END)
	return g.CompileCheckpointable()
}

func chain(ctx context.Context, kept store.CheckpointStore, thread string) (time.Duration, error) {
	names := make([]string, length)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	g, err := compile(kept, names, nil)
	if err != nil {
		return 0, err
	}
	out, err := g.InvokeWithConfig(ctx, state{}, graph.WithThreadID(thread))
	if err == nil && out.X != length {
		err = fmt.Errorf("wrong result: %+v", out)
	}
	return 0, err
}

func question(ctx context.Context, kept store.CheckpointStore, thread string) (time.Duration, error) {
	ask := func(ctx context.Context, s state) (state, error) {
		given, err := graph.Interrupt(ctx, s.X)
		if err != nil {
			return s, err
		}
		s.Answer, _ = given.(string)
		return s, nil
	}
	g, err := compile(kept, []string{"a", "ask", "z"}, map[string]func(context.Context, state) (state, error){"ask": ask})
	if err != nil {
		return 0, err
	}
	config := graph.WithThreadID(thread)
	out, err := g.InvokeWithConfig(ctx, state{}, config)
	var asked *graph.GraphInterrupt
	if !errors.As(err, &asked) {
		return 0, fmt.Errorf("no question came: %w", err)
	}
	// The caller keeps the state: a state from the store has lost its type.
	began := time.Now()
	config = graph.WithThreadID(thread)
	config.ResumeFrom, config.ResumeValue = []string{asked.Node}, "yes"
	out, err = g.InvokeWithConfig(ctx, out, config)
	if err == nil && (out.X != 2 || out.Answer != "yes") {
		err = fmt.Errorf("wrong result: %+v", out)
	}
	return time.Since(began), err
}
