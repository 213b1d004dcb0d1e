package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	_ "google.golang.org/grpc/health" // endpoints are asked for their health, if they tell it
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// EndpointOptions make a Remote. Zero fields mean the defaults that are named.
type EndpointOptions struct {
	Limits          payload.Limits // of one payload; 1 MiB, 128 deep
	MaxMessageBytes int            // of one message, both ways; 8 MiB
	// TLS is the base of the configuration towards endpoints with TLS; the
	// roots of the system when nil.
	TLS    *tls.Config
	Losses int           // calls a task may lose before it fails; 5
	Retry  time.Duration // first wait after a lost call, doubled up to 5 s; 100 ms
	// Idle is how long a connection that no call uses stays open; 1 min.
	Idle time.Duration
	// MaxConns is how many connections there may be; 256. Calls of further
	// endpoints wait for one.
	MaxConns int
	// Turn is how long an endpoint that does not answer keeps a connection that
	// others wait for; 5 s.
	Turn time.Duration
	Log  *zap.Logger // nil = nothing is logged
	// Dial adds to the options of every connection.
	Dial []grpc.DialOption
}

// Defaults of EndpointOptions.
const (
	defaultEndpointIdle = time.Minute
	defaultEndpointTurn = 5 * time.Second
	defaultEndpoints    = 256
)

// Remote runs remote nodes: on the endpoint that the graph names, or in a
// connected worker. It is safe for concurrent use.
type Remote struct {
	hub    *worker.Hub
	opts   EndpointOptions
	conns  *endpoints
	shapes shapes
}

var _ runtime.Executor = (*Remote)(nil)

// NewRemote makes a Remote that gives everything without an endpoint to hub.
func NewRemote(hub *worker.Hub, o EndpointOptions) *Remote {
	o.Limits.MaxBytes = orDefault(o.Limits.MaxBytes, defaultPayload)
	o.Limits.MaxDepth = orDefault(o.Limits.MaxDepth, defaultNesting)
	o.MaxMessageBytes = orDefault(o.MaxMessageBytes, defaultMessage)
	o.Losses = orDefault(o.Losses, 5)
	o.Retry = orDefault(o.Retry, 100*time.Millisecond)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Turn = orDefault(o.Turn, defaultEndpointTurn)
	o.Idle = orDefault(o.Idle, defaultEndpointIdle)
	o.MaxConns = orDefault(o.MaxConns, defaultEndpoints)
	return &Remote{hub: hub, opts: o, conns: newEndpoints(o)}
}

// Close ends the connections to all endpoints.
func (r *Remote) Close() { r.conns.close() }

// Execute makes one attempt of a task.
func (r *Remote) Execute(ctx context.Context, t *runtime.Task) worker.Result {
	spec := endpointOf(t)
	if spec.Endpoint == "" {
		return r.hub.Execute(ctx, t)
	}
	c := &endpointCall{remote: r, spec: spec, task: t}
	if err := c.connect(ctx); err != nil {
		return c.unconnected(ctx, err)
	}
	defer c.disconnect()
	return c.run(ctx)
}

// endpointOf says where a task runs. Reducers, and the conditional edges of the
// start, go where the graph's nodes are.
func endpointOf(t *runtime.Task) graph.RemoteSpec {
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

// endpointCall is one attempt of a task on an endpoint. A call that is lost is made
// again: as it was if it has not left, and as a further delivery if the node may
// have begun, since it can't be known how far that came.
type endpointCall struct {
	remote   *Remote
	endpoint *endpoint
	spec     graph.RemoteSpec
	task     *runtime.Task

	told   bool // that the endpoint does not answer
	left   departure
	losses int          // deliveries that were lost
	missed int          // calls in a row that have not left
	memos  worker.Memos // recorded by lost calls
}

// connect takes a connection to the endpoint.
func (c *endpointCall) connect(ctx context.Context) error {
	e, err := c.remote.conns.acquire(ctx, c.spec, func() {
		c.tell(fmt.Sprintf("endpoint %q waits for one of the server's %d connections", c.spec.Endpoint, c.remote.opts.MaxConns))
	})
	if err == nil {
		c.endpoint = e
	}
	return err
}

// disconnect gives the connection back, if the call has one.
func (c *endpointCall) disconnect() {
	if c.endpoint != nil {
		c.remote.conns.release(c.endpoint)
		c.endpoint = nil
	}
}

// unconnected says why there is no connection.
func (c *endpointCall) unconnected(ctx context.Context, err error) worker.Result {
	if ctx.Err() != nil {
		return rejected("Cancelled", "the task was stopped before the endpoint answered")
	}
	return rejected("InvalidEndpoint", fmt.Sprintf("endpoint %q can't be dialled: %v", c.spec.Endpoint, err))
}

// tell says once to those who look on why the task waits.
func (c *endpointCall) tell(why string) {
	if !c.told && c.task.Host != nil {
		c.told = true
		c.task.Host.Unassigned(why)
	}
}

func (c *endpointCall) run(ctx context.Context) worker.Result {
	for {
		if err := c.ready(ctx); err != nil {
			return c.unconnected(ctx, err)
		}
		r, err := c.attempt(ctx)
		if err == nil {
			return r
		}
		if over(ctx, err) {
			c.leaveBehind(ctx)
			return rejected("Cancelled", "the task was stopped: "+context.Cause(ctx).Error())
		}
		if r, final := c.judge(err); final {
			return r
		}
		if r, final := c.lose(err); final {
			return r
		}
		if wait(ctx, c.pause()) != nil {
			c.leaveBehind(ctx)
			return rejected("Cancelled", "the task was stopped between two calls of the endpoint")
		}
	}
}

// lose notes that a call was lost. It is the end of the attempt when that has
// happened too often.
func (c *endpointCall) lose(err error) (r worker.Result, final bool) {
	log := c.remote.opts.Log.With(zap.String("endpoint", c.spec.Endpoint), zap.String("task", c.task.ID),
		zap.Error(errors.New(clip(err.Error(), maxText))))
	if !c.left.noted() {
		log.Warn("a call has not reached its endpoint")
		c.missed++
		return failedOn("NotReached", fmt.Sprintf("endpoint %q was not reached in %d calls in a row; the last error was: %v",
			c.spec.Endpoint, c.missed, err)), c.missed >= c.remote.opts.Losses
	}
	log.Warn("a call of an endpoint was lost; the node may have begun")
	c.missed = 0
	c.losses++
	c.remote.hub.CountLoss()
	return failedOn("WorkerLost", fmt.Sprintf("endpoint %q was lost %d times while it ran the task; the last error was: %v",
		c.spec.Endpoint, c.losses, err)), c.losses >= c.remote.opts.Losses
}

// pause is how long to wait before the next call.
func (c *endpointCall) pause() time.Duration {
	return min(c.remote.opts.Retry<<min(max(c.losses+c.missed-1, 0), 16), 5*time.Second)
}

// delivery counts how often the node was called and may have begun, with the call
// that is made now. Of a server that died it is not known whether it has called.
func (c *endpointCall) delivery() int {
	if c.task.Recovered.IsZero() {
		return c.losses + 1
	}
	return c.losses + 2
}

// lostBefore reports whether the node was called before and may have begun.
func (c *endpointCall) lostBefore() bool { return c.losses > 0 || c.task.HandedOut }

// leaveBehind tells the server that goes on with the run that the node may have
// begun.
func (c *endpointCall) leaveBehind(ctx context.Context) {
	if errors.Is(context.Cause(ctx), runtime.ErrElsewhere) && (c.losses > 0 || c.left.noted()) && c.task.Lent != nil {
		c.task.Lent.Store(true)
	}
}

// over reports whether the attempt has ended. The endpoint's clock may see the
// deadline a moment before ours does.
func over(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	if ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < time.Second {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// ready waits until the endpoint can be reached. A run does not fail because a
// node is away; those who look on are told.
func (c *endpointCall) ready(ctx context.Context) error {
	for c.endpoint.conn.GetState() != connectivity.Ready {
		turn, cancel := context.WithTimeout(ctx, c.remote.opts.Turn)
		reached := c.reach(turn)
		cancel()
		if reached || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

// yield lets calls of other endpoints have the connection of one that does not
// answer, if they wait for it, and queues up behind them.
func (c *endpointCall) yield(ctx context.Context) error {
	if !c.remote.conns.crowded() {
		return nil
	}
	c.disconnect()
	return c.connect(ctx)
}

// reach waits until the connection is ready, and reports whether it is.
func (c *endpointCall) reach(ctx context.Context) bool {
	conn := c.endpoint.conn
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.Idle:
			conn.Connect()
		case connectivity.TransientFailure, connectivity.Shutdown:
			c.tell(fmt.Sprintf("endpoint %q does not answer", c.spec.Endpoint))
		case connectivity.Connecting:
		}
		if !conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// attempt makes one call. An error says that the call was lost, or why it was
// refused.
func (c *endpointCall) attempt(ctx context.Context) (worker.Result, error) {
	c.left.reset()
	if problem, err := c.check(ctx); err != nil || problem != "" {
		return rejected("NotServed", problem), err
	}
	ctx, cancel := c.remote.hub.Outlast(ctx, c.task)
	defer cancel()
	loan := c.remote.hub.Lend(ctx, c.task, c.delivery(), c.lostBefore(), &c.memos)
	defer loan.Return(ctx)
	task := assignmentOut(loan.Assignment)
	if size, most := proto.Size(task), c.remote.opts.MaxMessageBytes; size > most {
		return tooLargeToSend(size, most), nil
	}
	stream, err := c.endpoint.client.ExecuteTask(c.left.follow(ctx), &graphdv1.ExecuteTaskRequest{Task: task})
	if err != nil {
		return worker.Result{}, err
	}
	for {
		u := &graphdv1.TaskUpdate{}
		err := c.remote.receive(u, c.remote.opts.MaxMessageBytes, func(m *incoming) error { return stream.RecvMsg(m) })
		if refused, ok := errors.AsType[*runtime.Error](err); ok {
			return unusable(runtime.FailedOutputTooLarge, fmt.Sprintf("endpoint %q: %s", c.spec.Endpoint, refused.Message)), nil
		}
		if errors.Is(err, io.EOF) {
			return failedOn("NoResult", fmt.Sprintf("endpoint %q ended the call without a result", c.spec.Endpoint)), nil
		}
		if err != nil {
			return worker.Result{}, err
		}
		if token := u.GetLeaseToken(); len(token) > 0 && string(token) != loan.Assignment.Token {
			return unusable(runtime.FailedInvalidUpdate, fmt.Sprintf(
				"endpoint %q answers with the lease of another task; lease_token may be left out", c.spec.Endpoint)), nil
		}
		if c.task.Host != nil {
			c.task.Host.Alive()
		}
		switch kind := u.GetKind().(type) {
		case *graphdv1.TaskUpdate_Emit:
			events, dropped := emitIn(c.remote.opts.Limits, kind.Emit)
			if loan.Emit(ctx, events, dropped) {
				return worker.FloodFailure(), nil
			}
		case *graphdv1.TaskUpdate_Result:
			r, _ := outcomeIn(c.remote.opts.Limits, kind.Result)
			return r, nil
		}
	}
}

// receive receives a message of an endpoint, unless it would take much more
// memory than it has bytes: the error has a reason then.
func (r *Remote) receive(into proto.Message, most int, by func(m *incoming) error) error {
	m := &incoming{into: into, most: inMemory*most + 64<<10, message: most, shapes: &r.shapes}
	if err := by(m); err != nil {
		return err
	}
	return m.refused
}

// check says what is wrong when the endpoint does not serve the task.
func (c *endpointCall) check(ctx context.Context) (problem string, err error) {
	d, err := c.endpoint.describe(ctx, c.remote)
	if err != nil {
		return "", err
	}
	if worker.Binding(c.task) && !d.compares {
		c.endpoint.forget(d)
		return fmt.Sprintf("endpoint %q does not say that it compares what it asks with what was answered (feature %q in "+
			"Describe), so it gets no answers; bring it up to date", c.spec.Endpoint, featureDrift), nil
	}
	if problem = d.problem; problem == "" {
		problem = c.unserved(d.serves)
	}
	if problem != "" {
		c.endpoint.forget(d)
	}
	return problem, nil
}

func (c *endpointCall) unserved(serves *worker.Coverage) string {
	node := ""
	if c.task.Node != nil {
		node = c.task.Node.Name
	}
	if serves == nil || serves.Takes(worker.Served{Graph: c.task.Graph.Name, Version: c.task.Graph.Version, Node: node}) {
		return ""
	}
	return fmt.Sprintf("endpoint %q does not serve node %q of graph %q version %q", c.spec.Endpoint, node,
		c.task.Graph.Name, c.task.Graph.Version)
}

// judge says what an error of a call means: the end of the attempt, or a call
// that was lost and is made again.
func (c *endpointCall) judge(err error) (r worker.Result, final bool) {
	if refused, ok := errors.AsType[*runtime.Error](err); ok {
		return rejected("InvalidManifest", fmt.Sprintf("the manifest of endpoint %q can't be used: %s", c.spec.Endpoint, refused.Message)), true
	}
	s := status.Convert(err)
	switch s.Code() { //nolint:exhaustive // the others are the node's failure
	case codes.Unavailable:
		return r, false
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), "larger than max") {
			return unusable(runtime.FailedOutputTooLarge, fmt.Sprintf("a message from or to endpoint %q is too large: %s",
				c.spec.Endpoint, s.Message())), true
		}
		return r, false
	case codes.Unimplemented:
		return rejected("NotServed", fmt.Sprintf("endpoint %q does not serve graphd.v1.NodeService", c.spec.Endpoint)), true
	}
	return failedOn("grpc."+s.Code().String(), fmt.Sprintf("endpoint %q: %s", c.spec.Endpoint, s.Message())), true
}

func failedOn(kind, message string) worker.Result {
	return worker.Result{Failure: &worker.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: kind, Message: clip(message, maxText),
	}}}
}

func rejected(kind, message string) worker.Result {
	r := failedOn(kind, message)
	r.Failure.Permanent = true
	return r
}

// wait pauses, or returns why ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
