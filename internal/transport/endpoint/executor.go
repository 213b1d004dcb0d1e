// Package endpoint runs remote nodes on the endpoints that graphs name. It holds
// the connections, reads the descriptions of endpoints, makes the calls, and
// repeats lost calls.
package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// Options make an Executor. Zero fields mean the defaults in their comments.
type Options struct {
	Limits          payload.Limits // of one payload; 1 MiB, 128 deep
	MaxMessageBytes int            // of one message, both ways; 8 MiB
	// TLS returns the configuration of a connection that begins, to an endpoint with
	// TLS; nil = the CAs of the system, and no certificate.
	TLS        func() *tls.Config
	MaxLosses  int           // calls a task may lose before it fails; 5
	RetryDelay time.Duration // first wait after a lost call, doubled up to 5 s; 100 ms
	// IdleTimeout is how long a connection that no call uses stays open; 1 min.
	IdleTimeout time.Duration
	// MaxConns is the number of connections that may be open; 256. Calls of further
	// endpoints wait for a connection.
	MaxConns int
	// UnansweredTimeout is how long an endpoint that does not answer keeps a
	// connection that others wait for; 5 s.
	UnansweredTimeout time.Duration
	// Policy decides which endpoints are dialled; nil = all.
	Policy Policy
	Log    *zap.Logger // nil = nothing is logged
	// DialOptions adds to the options of every connection.
	DialOptions []grpc.DialOption
}

// Policy decides which endpoints may be dialled.
type Policy interface {
	// AdmitEndpoint returns the target by which gRPC dials an endpoint, and the check
	// of each address before a connection to it is opened. network and address are
	// those of net.Dialer.ControlContext. The errors tell why not.
	AdmitEndpoint(endpoint string) (grpcTarget string, checkAddress func(network, address string) error, err error)
}

// Defaults of Options.
const (
	defaultIdleTimeout       = time.Minute
	defaultUnansweredTimeout = 5 * time.Second
	defaultMaxConns          = 256
)

// Executor runs remote nodes: on the endpoint that the graph names, or in a
// connected worker. It is safe for concurrent use.
type Executor struct {
	hub      *worker.Hub
	opts     Options
	pool     *endpointPool
	receiver flow.MessageReceiver
}

var _ runtime.Executor = (*Executor)(nil)

// NewExecutor makes an Executor that hands tasks without an endpoint to hub.
func NewExecutor(hub *worker.Hub, o Options) *Executor {
	o.Limits.MaxBytes = cmp.Or(o.Limits.MaxBytes, wire.DefaultMaxPayload)
	o.Limits.MaxDepth = cmp.Or(o.Limits.MaxDepth, wire.DefaultMaxDepth)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, wire.DefaultMaxMessage)
	o.MaxLosses = cmp.Or(o.MaxLosses, 5)
	o.RetryDelay = cmp.Or(o.RetryDelay, 100*time.Millisecond)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.UnansweredTimeout = cmp.Or(o.UnansweredTimeout, defaultUnansweredTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdleTimeout)
	o.MaxConns = cmp.Or(o.MaxConns, defaultMaxConns)
	return &Executor{hub: hub, opts: o, pool: newEndpointPool(o)}
}

// Close ends the connections to all endpoints.
func (e *Executor) Close() { e.pool.closeAll() }

// Execute makes one attempt of a task.
func (e *Executor) Execute(ctx context.Context, t *runtime.Task) worker.Result {
	spec := endpointOfTask(t)
	if spec.Endpoint == "" {
		return e.hub.Execute(ctx, t)
	}
	c := &endpointCall{executor: e, spec: spec, task: t}
	if err := c.acquireEndpoint(ctx); err != nil {
		return c.connectFailure(ctx, err)
	}
	defer c.releaseEndpoint()
	return c.runTask(ctx)
}

// endpointOfTask returns the endpoint of a task. Reducers and the conditional edges
// of the start run on the endpoint of the graph.
func endpointOfTask(t *runtime.Task) graph.RemoteSpec {
	if t.Node != nil && t.Node.Spec != nil && t.Node.Spec.Remote != nil {
		return *t.Node.Spec.Remote
	}
	var first graph.RemoteSpec
	for _, n := range t.Graph.Nodes {
		if n.Spec == nil || n.Spec.Remote == nil {
			continue
		}
		if n.Spec.Remote.Endpoint == "" {
			return graph.RemoteSpec{}
		}
		if first.Endpoint == "" {
			first = *n.Spec.Remote
		}
	}
	return first
}
