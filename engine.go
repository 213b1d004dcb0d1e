// Package graphd runs graphs in this process: durable runs that pause for people, without a
// server. What a server has is there, too: [Engine.Serve] opens the same engine to others.
//
//	e, err := graphd.Open(ctx, graphd.SQLite("app.db"), orders)
//	outcome, err := e.Invoke(ctx, client.Run{Graph: "orders", Thread: "t-1", Input: order})
//	outcome, err = e.Resume(ctx, "t-1", client.Answer{Value: "yes"})
package graphd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/telemetry/sloglines"
)

// Store is where an engine keeps its threads.
type Store struct {
	text    string
	isRedis bool
}

// Memory keeps threads as long as the engine is open.
func Memory() Store { return Store{text: "memory"} }

// SQLite keeps threads in a file. One process has it open at a time.
func SQLite(path string) Store { return Store{text: "sqlite:" + path} }

// Redis keeps threads in Redis, at a URL like redis://127.0.0.1:6379/0. Engines and servers on the
// same Redis share them.
func Redis(url string) Store { return Store{text: url, isRedis: true} }

// Engine runs graphs in this process. Its client is that of a server; nothing of it leaves the
// process before [Engine.Serve]. Its methods may be called at the same time.
type Engine struct {
	*client.Client

	server *server.Server
	conn   *grpc.ClientConn // in memory
	drain  time.Duration

	isClosing atomic.Bool
	closing   sync.Once
	closed    error // of the first Close
}

// Open opens an engine on a store, with some graphs and their subgraphs. Runs that a process before
// has left go on. Errors are an [*OptionError], and those of the graphs and of the store.
func Open(ctx context.Context, store Store, graphs ...*graph.Builder) (*Engine, error) {
	return OpenWith(ctx, store, Options{}, graphs...)
}

// OpenWith is [Open] with options.
func OpenWith(ctx context.Context, store Store, options Options, graphs ...*graph.Builder) (*Engine, error) {
	built, err := buildGraphs(graphs)
	if err != nil {
		return nil, err
	}
	o, err := options.serverOptions(store)
	if err != nil {
		return nil, err
	}
	o.Embedding = server.Embedding{InMemory: true, Functions: graph.Functions{}, Reducers: map[string]graph.Reduce{}}
	maps.Copy(o.Functions, options.Functions)
	maps.Copy(o.Reducers, options.Reducers)
	for _, g := range built {
		maps.Copy(o.Functions, g.Functions())
		maps.Copy(o.Reducers, g.Reducers())
	}
	e := &Engine{drain: o.DrainTimeout}
	if e.server, err = server.NewServer(context.WithoutCancel(ctx), *o, sloglines.NewLogger(options.Log), "embedded"); err != nil {
		return nil, explainOption(err)
	}
	e.server.StartServing()
	err = e.connect()
	if err == nil {
		err = e.putGraphs(ctx, built)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

// connect makes the client of the engine.
func (e *Engine) connect() (err error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return e.server.Dial(ctx) }
	e.conn, err = grpc.NewClient("passthrough:///memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	if err == nil {
		e.Client = client.New(endingConn{e.server.ConnectProcess(e.conn), &e.isClosing})
	}
	return err
}

// putGraphs puts the graphs into the store. The error has all mistakes of the graphs that only the
// server knows.
func (e *Engine) putGraphs(ctx context.Context, graphs []*graph.Graph) error {
	var wrong []error
	for _, g := range graphs {
		text, err := g.Document(graph.InProcess)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if _, err := e.Registry().PutGraph(ctx, &graphdv1.PutGraphRequest{
			Definition: &graphdv1.PutGraphRequest_Document{Document: string(text)},
		}); err != nil {
			wrong = append(wrong, fmt.Errorf("the graph %q: %w", g.Name(), client.FromGRPC(err)))
		}
	}
	return errors.Join(wrong...)
}

// ExposureError refuses an address that other machines reach, for an engine that lacks protection.
type ExposureError struct {
	Address string
	Lacking string // like "no TLS"
}

// Error says what would be right.
func (e *ExposureError) Error() string {
	return "graphd: other machines may reach " + e.Address + ", and the engine has " + e.Lacking + ": open it with --tls-cert and --tls-key, " +
		"and --api-keys, --token-issuers or --certificate-rules; or listen at 127.0.0.1; or open it with --insecure where a network keeps others out"
}

// Serve serves the engine to other processes by gRPC, as graphd serve does: clients, workers, and the
// command line. It takes connections from a listener until the engine is closed, returns nil then, and
// closes the listener. TLS and the callers that the engine knows are those of its [Options]; an
// engine without them serves this machine only, or fails with an [*ExposureError].
//
//	listener, err := net.Listen("tcp", "127.0.0.1:7700")
//	go func() { failed <- e.Serve(listener) }()
func (e *Engine) Serve(listener net.Listener) error {
	if lacking := e.server.FindLack(listener.Addr()); lacking != "" {
		return errors.Join(&ExposureError{Address: listener.Addr().String(), Lacking: lacking}, listener.Close())
	}
	err := e.server.ServeBeside(listener)
	if errors.Is(err, grpc.ErrServerStopped) {
		return ErrClosed
	}
	return err
}

// Close lets calls and nodes end, for as long as ctx and the option --drain-timeout allow, and closes
// the store. What is not done goes on when the store is opened again. Calls that it cuts, and all that
// come later, fail with [ErrClosed]. All calls of Close return the error of the first one.
func (e *Engine) Close(ctx context.Context) error {
	e.closing.Do(func() {
		e.isClosing.Store(true)
		e.closed = e.closeAll(ctx)
	})
	return e.closed
}

func (e *Engine) closeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.drain)
	defer cancel()
	err := e.server.DrainServer(ctx)
	if e.conn != nil {
		err = errors.Join(err, e.conn.Close())
	}
	return err
}
