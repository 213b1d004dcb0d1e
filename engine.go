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
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/server"
)

// Store is where an engine keeps its threads.
type Store struct{ text string }

// Memory keeps threads as long as the engine is open.
func Memory() Store { return Store{"memory"} }

// SQLite keeps threads in a file. One process has it open at a time.
func SQLite(path string) Store { return Store{"sqlite:" + path} }

// Redis keeps threads in Redis, at a URL like redis://127.0.0.1:6379/0. Engines and servers on the
// same Redis share them.
func Redis(url string) Store { return Store{url} }

// Engine runs graphs in this process. Its client is that of a server; nothing of it leaves the
// process. Its methods may be called at the same time.
type Engine struct {
	*client.Client

	server *server.Server
	conn   *grpc.ClientConn
	drain  time.Duration

	closing sync.Once
	closed  error // of the first Close
}

// Options change an engine. Its zero value is that of a server.
type Options struct {
	// Log takes what the engine has to say; nil = nothing is said.
	Log *zap.Logger
	// Flags are flags of graphd serve, by their names without dashes: {"max-live-runs": "100"}.
	Flags map[string]string
	// Getenv is asked for secrets that flags name; nil = there are none.
	Getenv func(string) string
}

// memoryBytes is what each direction of the connection in memory holds until it is read.
const memoryBytes = 1 << 20

// Open opens an engine on a store, with some graphs and their subgraphs. Runs that a process before
// has left go on.
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
	listener := bufconn.Listen(memoryBytes)
	o.Embedding = server.Embedding{MemoryListener: listener, Functions: graph.Functions{}, Reducers: map[string]graph.Reduce{}}
	for _, g := range built {
		maps.Copy(o.Functions, g.Functions())
		maps.Copy(o.Reducers, g.Reducers())
	}
	log := options.Log
	if log == nil {
		log = zap.NewNop()
	}
	e := &Engine{drain: o.DrainTimeout}
	if e.server, err = server.NewServer(context.WithoutCancel(ctx), *o, log, "embedded"); err != nil {
		return nil, err
	}
	e.server.StartServing()
	err = e.connect(listener)
	if err == nil {
		err = e.putGraphs(ctx, built)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

// connect makes the client of the engine.
func (e *Engine) connect(listener *bufconn.Listener) (err error) {
	e.conn, err = grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err == nil {
		e.Client = client.New(e.conn)
	}
	return err
}

// serverOptions returns the options of a server, of which flags are set.
func (o *Options) serverOptions(store Store) (*server.Options, error) {
	all := &server.Options{}
	flags := pflag.NewFlagSet("engine", pflag.ContinueOnError)
	all.RegisterFlags(flags)
	if err := flags.Set("store", store.text); err != nil {
		return nil, err
	}
	for name, value := range o.Flags {
		if err := flags.Set(name, value); err != nil {
			return nil, fmt.Errorf("the flag %q of the engine: %w", name, err)
		}
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	err := all.CompleteOptions(flags, getenv)
	return all, err
}

// buildGraphs builds graphs and their subgraphs, which come first.
func buildGraphs(builders []*graph.Builder) ([]*graph.Graph, error) {
	var all []*graph.Graph
	known := make(map[string]bool)
	var add func(*graph.Graph)
	add = func(g *graph.Graph) {
		if known[g.Name()] {
			return
		}
		known[g.Name()] = true
		for _, sub := range g.Subgraphs() {
			add(sub)
		}
		all = append(all, g)
	}
	for _, b := range builders {
		g, err := b.Build()
		if err != nil {
			return nil, err
		}
		if known[g.Name()] {
			return nil, fmt.Errorf("there are two graphs %q", g.Name())
		}
		add(g)
	}
	return all, nil
}

// putGraphs puts the graphs into the store. The error has all mistakes of a graph.
func (e *Engine) putGraphs(ctx context.Context, graphs []*graph.Graph) error {
	for _, g := range graphs {
		text, err := g.Document(graph.InProcess)
		if err != nil {
			return err
		}
		if _, err := e.Registry().PutGraph(ctx, &graphdv1.PutGraphRequest{
			Definition: &graphdv1.PutGraphRequest_Document{Document: string(text)},
		}); err != nil {
			return fmt.Errorf("the graph %q: %w", g.Name(), err)
		}
	}
	return nil
}

// Close lets calls and nodes end, for as long as ctx and the flag drain-timeout allow, and closes
// the store. What is not done goes on when the store is opened again. All calls return the error of
// the first one.
func (e *Engine) Close(ctx context.Context) error {
	e.closing.Do(func() { e.closed = e.closeAll(ctx) })
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
