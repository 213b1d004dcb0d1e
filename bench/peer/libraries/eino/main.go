// Command eino drives the graph library of that name, see ../../README.md.
//
// It stores nothing between questions, so that its W1 is no durable run.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/bench/peer/libraries/drive"
)

const length = 10

type state struct {
	X      int
	Answer string
}

func main() {
	schema.RegisterName[state]("bench_state")
	drive.Answer("eino", "github.com/cloudwego/eino", func(r drive.Request) (drive.One, error) {
		kept, err := open(r)
		if err != nil {
			return nil, err
		}
		switch r.Workload {
		case "W1":
			return chain(kept)
		case "W2", "W5":
			return question(kept)
		default:
			return nil, fmt.Errorf("no workload %s", r.Workload)
		}
	})
}

type memory struct{ all sync.Map }

func (m *memory) Get(_ context.Context, id string) ([]byte, bool, error) {
	v, ok := m.all.Load(id)
	b, _ := v.([]byte)
	return b, ok, nil
}

func (m *memory) Set(_ context.Context, id string, b []byte) error {
	m.all.Store(id, b)
	return nil
}

type redis struct{ client *goredis.Client }

func (s redis) Get(ctx context.Context, id string) ([]byte, bool, error) {
	b, err := s.client.Get(ctx, id).Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil, false, nil
	}
	return b, err == nil, err
}

func (s redis) Set(ctx context.Context, id string, b []byte) error {
	return s.client.Set(ctx, id, b, 0).Err()
}

func open(r drive.Request) (compose.CheckPointStore, error) {
	switch r.Store {
	case "memory":
		return &memory{}, nil
	case "redis":
		address, database, err := r.Redis()
		return redis{goredis.NewClient(&goredis.Options{Addr: address, DB: database})}, err
	default:
		return nil, fmt.Errorf("no store %s", r.Store)
	}
}

func add(_ context.Context, s state) (state, error) {
	s.X++
	return s, nil
}

func compile(kept compose.CheckPointStore, names []string, nodes map[string]func(context.Context, state) (state, error)) (compose.Runnable[state, state], error) {
	g := compose.NewGraph[state, state]()
	last := compose.START
	for _, name := range names {
		node := nodes[name]
		if node == nil {
			node = add
		}
		if err := errors.Join(g.AddLambdaNode(name, compose.InvokableLambda(node)), g.AddEdge(last, name)); err != nil {
			return nil, err
		}
		last = name
	}
	if err := g.AddEdge(last, compose.END); err != nil {
		return nil, err
	}
	return g.Compile(context.Background(), compose.WithCheckPointStore(kept))
}

func chain(kept compose.CheckPointStore) (drive.One, error) {
	names := make([]string, length)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	g, err := compile(kept, names, nil)
	return func(ctx context.Context, thread string) (time.Duration, error) {
		out, err := g.Invoke(ctx, state{}, compose.WithCheckPointID(thread))
		if err == nil && out.X != length {
			err = fmt.Errorf("wrong result: %+v", out)
		}
		return 0, err
	}, err
}

func question(kept compose.CheckPointStore) (drive.One, error) {
	g, err := compile(kept, []string{"a", "ask", "z"}, map[string]func(context.Context, state) (state, error){"ask": ask})
	return func(ctx context.Context, thread string) (time.Duration, error) {
		_, err := g.Invoke(ctx, state{}, compose.WithCheckPointID(thread))
		asked, ok := compose.ExtractInterruptInfo(err)
		if !ok || len(asked.InterruptContexts) != 1 {
			return 0, fmt.Errorf("no question came: %w", err)
		}
		began := time.Now()
		ctx = compose.ResumeWithData(ctx, asked.InterruptContexts[0].ID, "yes")
		out, err := g.Invoke(ctx, state{}, compose.WithCheckPointID(thread))
		if err == nil && (out.X != 2 || out.Answer != "yes") {
			err = fmt.Errorf("wrong result: %+v", out)
		}
		return time.Since(began), err
	}, err
}

// ask keeps its input with the question: it is lost otherwise.
func ask(ctx context.Context, s state) (state, error) {
	if asked, had, kept := compose.GetInterruptState[state](ctx); asked && had {
		if _, given, answer := compose.GetResumeContext[string](ctx); given {
			kept.Answer = answer
			return kept, nil
		}
	}
	return s, compose.StatefulInterrupt(ctx, s.X, s)
}
