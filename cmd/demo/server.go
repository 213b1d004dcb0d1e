package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// memoryServer serves graphs to this machine, and forgets them when it ends. It has no
// options and no workers; internal/server has both.
type memoryServer struct {
	store    *memory.Store
	engine   *engine.Engine
	grpc     *transport.Server
	listener net.Listener
	ended    chan error // the error with which serving ends
}

// startServer serves on a free port of the loopback interface.
func startServer(ctx context.Context) (*memoryServer, error) {
	s := &memoryServer{store: memory.New(memory.Options{}), ended: make(chan error, 1)}
	schemas := schema.New(schema.Limits{})
	nodes := node.New(api.Functions{}, node.Options{Schemas: schemas})
	expressions, err := expr.New(expr.Options{})
	if err != nil {
		return nil, err
	}
	graphs, err := registry.New(ctx, registry.Options{Store: s.store, Threads: s.store, Env: graph.Env{
		Expressions: expressions, CheckSchema: schemas.CheckSchema, CheckValue: schemas.CheckValue,
		HasFunction: nodes.HasFunction, Limits: graph.DefaultLimits(),
	}})
	if err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil { //nolint:noctx // has no effect on listening
		return nil, fmt.Errorf("can't listen: %w", err)
	}
	s.engine = engine.New(ctx, s.store, graphs, nodes, schemas, engine.Options{KeepsSecrets: true})
	s.grpc, err = transport.NewServer(transport.Options{
		Engine: s.engine, Registry: graphs, Assistants: s.engine.Assistants(), Items: s.engine.Items(), RunWebhooks: s.engine.Webhooks(), Crons: s.engine.Crons(), Now: s.engine.Now,
		Follow: func(req runtime.FollowRequest) stream.Follower { return s.engine.Follow(req) },
		FollowInterrupts: func(held *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) transport.InterruptFollower {
			return s.engine.FollowInterrupts(held, q, after)
		},
		Info: transport.Info{Store: "memory", Started: time.Now()},
	})
	if err != nil {
		s.engine.Close()
		return nil, errors.Join(err, s.listener.Close())
	}
	go func() { s.ended <- s.grpc.Serve(s.listener) }()
	return s, nil
}

// address returns where the server serves, HOST:PORT.
func (s *memoryServer) address() string { return s.listener.Addr().String() }

// drain lets calls and nodes end until ctx ends, and stops the server.
func (s *memoryServer) drain(ctx context.Context) error {
	drained := make(chan error, 1)
	go func() { drained <- s.grpc.Drain(ctx) }()
	s.engine.Drain(ctx)
	err := <-drained
	s.engine.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what was left was cut
	}
	return errors.Join(err, <-s.ended, s.store.Close())
}
