// Package worker serves nodes, routes and reducers of graphs to a graphd server, from a process of
// its own. The server keeps the state, the questions and their answers; a worker runs functions.
//
//	err := worker.Run(ctx, "localhost:7700", orders)
//
// A node runs at least once: put effects that must not happen twice behind [graph.Memo].
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker/internal/session"
)

// Options are what a worker serves, and how. Zero fields have the defaults in their comments.
type Options struct {
	// Graphs are brought along: the server keeps them and their subgraphs, and the worker serves all
	// of their nodes, routes and reducers in Go.
	Graphs []*graph.Builder
	// Nodes are those of graph files: of the server, or brought along.
	Nodes []Nodes
	// Deployment and BuildID name the program and its build.
	Deployment string // "go"
	BuildID    string
	// Slots is how many tasks run at the same time; 64.
	Slots int
	// KeptBytes bounds the values of states that are kept for later tasks, so that the server sends
	// each once; 32 MiB, negative = none.
	KeptBytes int64
	// Labels are for the list of workers.
	Labels map[string]string
	// DrainTimeout is how long tasks may go on when the worker is to end; 30 s. After that their
	// contexts end.
	DrainTimeout time.Duration
	// Tracers make a span for each task, inside that of the server; nil = none. The context of a
	// function has the trace of its run either way.
	Tracers trace.TracerProvider
	// Log takes what the worker has to say; nil = nothing is said.
	Log *slog.Logger
}

// Defaults of options.
const (
	defaultDeployment   = "go"
	defaultSlots        = 64
	defaultKeptBytes    = 32 << 20
	defaultDrainTimeout = 30 * time.Second
)

// maxSlots bounds the tasks of one worker.
const maxSlots = 100_000

// Nodes are the functions of a graph file: those of its remote nodes, of routes in a worker, and of
// remote reducers.
type Nodes struct {
	// File is the text of the graph file, in YAML or JSON, which the worker brings along. nil = the
	// server has the graph already.
	File []byte
	// Graph is the name of the graph; "" with a File = that of the file.
	Graph string
	// Version is that of the graph; "" = every version.
	Version string
	// Functions are the functions of nodes, by the names of the nodes. Without Routers and Reducers
	// the worker gets tasks of these nodes only, and other workers may serve the others. With them, and
	// with a File, it must have all functions of the graph.
	Functions graph.Functions
	// Routers are the functions of routes, by the names that the graph has for them.
	Routers graph.Functions
	// Reducers combine what nodes write, by the names that the graph has for them.
	Reducers map[string]graph.Reduce
}

// Worker serves tasks of a server.
type Worker struct {
	session *session.Session
	hasRun  atomic.Bool
	ready   chan struct{}

	mu       sync.Mutex
	versions map[string]string
}

// Run serves graphs and their subgraphs to the server at an address, HOST:PORT, until ctx ends. The
// connection is in plain text: see [Dial] for others. When ctx ends, tasks may end in 30 s, and an
// [UnfinishedError] says how many have not.
func Run(ctx context.Context, address string, graphs ...*graph.Builder) error {
	w, err := Dial(address, Options{Graphs: graphs})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// Dial makes a worker of the server at an address, HOST:PORT, or in another form of gRPC like
// dns:///HOST:PORT. Without options of transport security the connection is in plain text. Nothing is
// sent before [Worker.Run], which closes the connection. Errors are a [*client.AddressError], an
// [*OptionError], and those of graphs.
func Dial(address string, o Options, options ...grpc.DialOption) (*Worker, error) {
	if err := client.CheckAddress(address); err != nil {
		return nil, err
	}
	all := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), quickReconnects(),
		grpc.WithStaticStreamWindowSize(windowSize), grpc.WithStaticConnWindowSize(windowSize),
	}, options...)
	conn, err := session.Dial(func() (*grpc.ClientConn, error) { return grpc.NewClient(address, all...) })
	if err != nil {
		return nil, err
	}
	w, err := newWorker(conn, o)
	if err != nil {
		conn.Close()
	}
	return w, err
}

// windowSize is how many bytes of one call a server may send before the worker has read them. A window
// that gRPC chooses itself costs a ping for each message.
const windowSize = 1 << 20

// quickReconnects keeps the pauses between attempts to connect short: leases end without their worker.
func quickReconnects() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: 5 * time.Second,
	})
}

// New makes a worker on a connection, which stays that of the caller. A connection that may become
// silent needs keepalive of gRPC: a worker of [Dial] makes a new one.
func New(conn grpc.ClientConnInterface, o Options) (*Worker, error) {
	return newWorker(session.NewConnection(conn), o)
}

func newWorker(conn *session.Connection, o Options) (*Worker, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	served, err := newServed(&o)
	if err != nil {
		return nil, err
	}
	w := &Worker{ready: make(chan struct{}), versions: make(map[string]string)}
	w.session = session.New(conn, session.Options{
		WorkerID: "go-" + rand.Text(), Manifest: served.manifest(&o), Labels: o.Labels, Slots: o.Slots, KeptBytes: max(o.KeptBytes, 0), DrainTimeout: o.DrainTimeout,
		Find: served.find, Welcomed: w.takeWelcome, Tracers: o.Tracers, Log: o.Log,
		Unfinished: func(tasks int) error { return &UnfinishedError{Tasks: tasks} },
		Stopped:    func(reason string) error { return &StoppedError{Reason: reason} },
	})
	return w, nil
}

func (o *Options) setDefaults() error {
	if o.Slots < 0 || o.Slots > maxSlots {
		return &OptionError{Field: "Slots", Reason: fmt.Sprintf("is %d: want 1 to %d, or 0 for %d", o.Slots, maxSlots, defaultSlots)}
	}
	if o.DrainTimeout < 0 {
		return &OptionError{Field: "DrainTimeout", Reason: fmt.Sprintf("is %s: want a positive time, or 0 for %s", o.DrainTimeout, defaultDrainTimeout)}
	}
	o.KeptBytes = cmp.Or(o.KeptBytes, defaultKeptBytes)
	if o.Slots == 0 {
		o.Slots = defaultSlots
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = defaultDrainTimeout
	}
	if o.Deployment == "" {
		o.Deployment = defaultDeployment
	}
	return nil
}

// Run serves until ctx ends; then tasks may end for the time of the options, and nil says that all
// have. It is called once. Errors are a [*GraphError] for a graph that the server refuses, a
// [*client.Error] for a server that refuses the worker, and an [*UnfinishedError]. A server that is
// away is no error: the worker connects again.
func (w *Worker) Run(ctx context.Context) error {
	if w.hasRun.Swap(true) {
		return ErrHasRun
	}
	return w.session.Run(ctx)
}

// Ready returns a channel that is closed when a server has taken the worker and its graphs.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// Version returns the version under which the server keeps a graph that was brought along; "" = it
// is not known.
func (w *Worker) Version(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions[name]
}

// takeWelcome notes the versions of graphs. The error names the graphs that the server refuses.
func (w *Worker) takeWelcome(welcome *graphdv1.Welcome) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refused []error
	for _, g := range welcome.GetGraphs() {
		if len(g.GetProblems()) > 0 {
			refused = append(refused, newGraphError(g))
			continue
		}
		w.versions[g.GetGraph()] = g.GetVersion()
	}
	if len(refused) > 0 {
		return joinErrors(refused)
	}
	select {
	case <-w.ready:
	default:
		close(w.ready)
	}
	return nil
}
