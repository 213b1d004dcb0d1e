package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// endpointCall is one attempt of a task on an endpoint. A lost call is made again:
// unchanged if it was never sent, and as a further delivery if the node may have
// begun.
type endpointCall struct {
	executor *Executor
	endpoint *endpoint
	spec     graph.RemoteSpec
	task     *runtime.Task

	isReported  bool // the run was notified that the endpoint does not answer
	sent        sentMark
	losses      int          // deliveries that were lost
	unsentCalls int          // calls in a row that were not sent
	memos       worker.Memos // recorded by lost calls
}

// acquireEndpoint takes a connection to the endpoint.
func (c *endpointCall) acquireEndpoint(ctx context.Context) error {
	e, err := c.executor.pool.acquireEndpoint(ctx, c.spec, func() {
		c.reportUnassigned(fmt.Sprintf("endpoint %q waits for one of the server's %d connections", c.spec.Endpoint, c.executor.opts.MaxConns))
	})
	if err == nil {
		c.endpoint = e
	}
	return err
}

// releaseEndpoint releases the connection, if the call has one.
func (c *endpointCall) releaseEndpoint() {
	if c.endpoint != nil {
		c.executor.pool.releaseEndpoint(c.endpoint)
		c.endpoint = nil
	}
}

// connectFailure returns the failure of a task without a connection.
func (c *endpointCall) connectFailure(ctx context.Context, err error) worker.Result {
	if ctx.Err() != nil {
		c.markRemoteTask(ctx)
		return permanentFailure("Cancelled", "the task was stopped before the endpoint answered")
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		r := permanentFailure("EndpointNotAllowed", refused.Error())
		r.Failure.Reason = runtime.FailedEndpointRefused
		return r
	}
	return permanentFailure("InvalidEndpoint", fmt.Sprintf("endpoint %q can't be dialled: %v", c.spec.Endpoint, err))
}

// reportUnassigned reports to watchers, once, why the task waits.
func (c *endpointCall) reportUnassigned(why string) {
	if !c.isReported && c.task.Host != nil {
		c.isReported = true
		c.task.Host.ReportUnassigned(why)
	}
}

// runTask calls the endpoint until there is a result. Between two calls it waits, and
// it stops when the attempt is over.
func (c *endpointCall) runTask(ctx context.Context) worker.Result {
	for {
		if err := c.waitReady(ctx); err != nil {
			return c.connectFailure(ctx, err)
		}
		r, err := c.callOnce(ctx)
		if err == nil {
			return r
		}
		if isAttemptOver(ctx, err) {
			c.markRemoteTask(ctx)
			return permanentFailure("Cancelled", "the task was stopped: "+context.Cause(ctx).Error())
		}
		if r, final := c.classifyError(err); final {
			return r
		}
		if r, final := c.recordLoss(err); final {
			return r
		}
		if backoff.Sleep(ctx, c.retryDelay()) != nil {
			c.markRemoteTask(ctx)
			return permanentFailure("Cancelled", "the task was stopped between two calls of the endpoint")
		}
	}
}

// recordLoss counts a lost call. It ends the attempt when too many calls were lost.
func (c *endpointCall) recordLoss(err error) (r worker.Result, final bool) {
	log := c.executor.opts.Log.With(zap.String("endpoint", c.spec.Endpoint), zap.String("task", c.task.ID),
		zap.Error(errors.New(reason.ClipText(err.Error(), wire.MaxTextLength))))
	if !c.sent.wasSent() {
		log.Warn("a call has not reached its endpoint")
		c.unsentCalls++
		return nodeFailure("NotReached", fmt.Sprintf("endpoint %q was not reached in %d calls in a row; the last error was: %v",
			c.spec.Endpoint, c.unsentCalls, err)), c.unsentCalls >= c.executor.opts.MaxLosses
	}
	log.Warn("a call of an endpoint was lost; the node may have begun")
	c.unsentCalls = 0
	c.losses++
	c.executor.hub.CountEndpointLoss()
	return nodeFailure("WorkerLost", fmt.Sprintf("endpoint %q was lost %d times while it ran the task; the last error was: %v",
		c.spec.Endpoint, c.losses, err)), c.losses >= c.executor.opts.MaxLosses
}

// retryDelay returns the pause before the next call.
func (c *endpointCall) retryDelay() time.Duration {
	return backoff.Policy{First: c.executor.opts.RetryDelay, Max: 5 * time.Second}.Delay(c.losses + c.unsentCalls)
}

// deliveryNumber returns the number of calls after which the node may have begun,
// with the present one. A server that died may or may not have called, and counts
// as a call.
func (c *endpointCall) deliveryNumber() int {
	if c.task.RecoveredAt.IsZero() {
		return c.losses + 1
	}
	return c.losses + 2
}

// hasLostDelivery reports whether the node was called before and may have begun.
func (c *endpointCall) hasLostDelivery() bool { return c.losses > 0 || c.task.HandedOut }

// markRemoteTask records, for a server that continues the run, that the node may
// have begun. A task that was not called here may have begun at the server before.
func (c *endpointCall) markRemoteTask(ctx context.Context) {
	mark := c.task.StillRemote
	if c.losses == 0 && !c.sent.wasSent() {
		mark = c.task.Unresolved
		if c.task.RecoveredAt.IsZero() {
			return
		}
	}
	if errors.Is(context.Cause(ctx), runtime.ErrElsewhere) && mark != nil {
		mark.Store(true)
	}
}

// isAttemptOver reports whether the attempt has ended. The endpoint's clock may see the
// deadline a moment before ours does.
func isAttemptOver(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	if ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < time.Second {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// waitReady waits until the endpoint can be reached. The run does not fail while
// the endpoint is away; watchers get the reason. An endpoint with a refused address,
// of which no other answers, is an error.
func (c *endpointCall) waitReady(ctx context.Context) error {
	for c.endpoint.conn.GetState() != connectivity.Ready {
		waitCtx, cancel := context.WithTimeout(ctx, c.executor.opts.UnansweredTimeout)
		reached := c.waitConnected(waitCtx)
		cancel()
		if reached || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if refused := c.endpoint.refusedAddress(); refused != nil {
			c.executor.pool.forgetEndpoint(c.spec, c.endpoint)
			return refused
		}
		if err := c.yieldEndpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}

// yieldEndpoint releases the connection of an endpoint that does not answer to
// waiting calls of other endpoints, and waits for a connection again.
func (c *endpointCall) yieldEndpoint(ctx context.Context) error {
	if !c.executor.pool.hasWaiters() {
		return nil
	}
	c.releaseEndpoint()
	return c.acquireEndpoint(ctx)
}

// waitConnected waits until the connection is ready, and reports whether it is. It
// ends early when an address is refused.
func (c *endpointCall) waitConnected(ctx context.Context) bool {
	conn := c.endpoint.conn
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.Idle:
			conn.Connect()
		case connectivity.TransientFailure, connectivity.Shutdown:
			if c.endpoint.refusedAddress() != nil {
				return false
			}
			c.reportUnassigned(c.describeSilence())
		case connectivity.Connecting:
		}
		if !conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// describeSilence says why the task waits.
func (c *endpointCall) describeSilence() string {
	text := fmt.Sprintf("endpoint %q does not answer", c.spec.Endpoint)
	if problem := c.endpoint.tls.describeProblem(); problem != "" {
		text += ": " + problem
	}
	return text
}

// callOnce makes one call. It returns an error when the call was lost or refused.
func (c *endpointCall) callOnce(ctx context.Context) (worker.Result, error) {
	c.sent.clearMark()
	if problem, err := c.checkDescription(ctx); err != nil || problem != "" {
		return permanentFailure("NotServed", problem), err
	}
	ctx, cancel := c.executor.hub.GraceContext(ctx, c.task)
	defer cancel()
	lease := c.executor.hub.LeaseToEndpoint(ctx, c.task, c.deliveryNumber(), c.hasLostDelivery(), &c.memos)
	defer lease.End(ctx)
	task := wire.TaskAssignmentToProto(lease.Assignment)
	if size, most := proto.Size(task), c.executor.opts.MaxMessageBytes; size > most {
		return wire.TooLargeTaskResult(size, most), nil
	}
	stream, err := c.endpoint.client.ExecuteTask(c.sent.withMark(withTrace(ctx, c.task.Trace)), &graphdv1.ExecuteTaskRequest{Task: task})
	if err != nil {
		return worker.Result{}, err
	}
	for {
		u := &graphdv1.TaskUpdate{}
		err := c.executor.receiver.ReceiveMessage(u, nil, c.executor.opts.MaxMessageBytes, stream.RecvMsg)
		if refused, ok := errors.AsType[*runtime.Error](err); ok {
			return wire.UnusableResult(runtime.FailedOutputTooLarge, fmt.Sprintf("endpoint %q: %s", c.spec.Endpoint, refused.Message)), nil
		}
		if errors.Is(err, io.EOF) {
			return nodeFailure("NoResult", fmt.Sprintf("endpoint %q ended the call without a result", c.spec.Endpoint)), nil
		}
		if err != nil {
			return worker.Result{}, err
		}
		if token := u.GetLeaseToken(); len(token) > 0 && string(token) != lease.Assignment.Token {
			return wire.UnusableResult(runtime.FailedInvalidUpdate, fmt.Sprintf(
				"endpoint %q answers with the lease of another task; lease_token may be left out", c.spec.Endpoint)), nil
		}
		if c.task.Host != nil {
			c.task.Host.ResetIdleTimeout()
		}
		switch kind := u.GetKind().(type) {
		case *graphdv1.TaskUpdate_Emit:
			events, dropped := wire.EmissionsFromProto(c.executor.opts.Limits, kind.Emit)
			if lease.EmitEvents(ctx, events, dropped) {
				return worker.EmitFloodFailure(), nil
			}
		case *graphdv1.TaskUpdate_Result:
			r, _ := wire.TaskResultFromProto(c.executor.opts.Limits, kind.Result)
			return r, nil
		}
	}
}

// withTrace adds a W3C trace context to the metadata of a call.
func withTrace(ctx context.Context, trace map[string]string) context.Context {
	if len(trace) == 0 {
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, metadata.New(trace))
}

// checkDescription returns the problem when the endpoint does not serve the task.
func (c *endpointCall) checkDescription(ctx context.Context) (problem string, err error) {
	d, err := c.endpoint.awaitDescription(ctx, c.executor)
	if err != nil {
		return "", err
	}
	if worker.NeedsComparison(c.task) && !d.comparesAnswers {
		c.endpoint.dropDescription(d)
		return fmt.Sprintf("endpoint %q does not say that it compares what it asks with what was answered (feature %q in "+
			"Describe), so it gets no answers; bring it up to date", c.spec.Endpoint, wire.FeatureDrift), nil
	}
	if problem = d.problem; problem == "" {
		problem = c.unservedProblem(d.coverage)
	}
	if problem != "" {
		c.endpoint.dropDescription(d)
	}
	return problem, nil
}

func (c *endpointCall) unservedProblem(serves *worker.Coverage) string {
	node := ""
	if c.task.Node != nil {
		node = c.task.Node.Name
	}
	name := tenant.ClientName(c.task.Graph.Name) // an endpoint knows no tenants
	if serves == nil || serves.Covers(worker.Capability{Graph: name, Version: c.task.Graph.Version, Node: node}) {
		return ""
	}
	return fmt.Sprintf("endpoint %q does not serve node %q of graph %q version %q", c.spec.Endpoint, node,
		name, c.task.Graph.Version)
}

// classifyError reports whether an error of a call ends the attempt, and with which
// result. Any other error means a lost call, which is made again.
func (c *endpointCall) classifyError(err error) (r worker.Result, final bool) {
	if refused, ok := errors.AsType[*runtime.Error](err); ok {
		return permanentFailure("InvalidManifest", fmt.Sprintf("the manifest of endpoint %q can't be used: %s", c.spec.Endpoint, refused.Message)), true
	}
	s := status.Convert(err)
	switch s.Code() { //nolint:exhaustive // the others are the node's failure
	case codes.Unavailable:
		return r, false
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), "larger than max") {
			return wire.UnusableResult(runtime.FailedOutputTooLarge, fmt.Sprintf("a message from or to endpoint %q is too large: %s",
				c.spec.Endpoint, s.Message())), true
		}
		return r, false
	case codes.Unimplemented:
		return permanentFailure("NotServed", fmt.Sprintf("endpoint %q does not serve graphd.v1.NodeService", c.spec.Endpoint)), true
	}
	return nodeFailure("grpc."+s.Code().String(), fmt.Sprintf("endpoint %q: %s", c.spec.Endpoint, s.Message())), true
}

func nodeFailure(kind, message string) worker.Result {
	return worker.Result{Failure: &worker.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: kind, Message: reason.ClipText(message, wire.MaxTextLength),
	}}}
}

func permanentFailure(kind, message string) worker.Result {
	r := nodeFailure(kind, message)
	r.Failure.Permanent = true
	return r
}
