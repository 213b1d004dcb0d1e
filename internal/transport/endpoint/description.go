package endpoint

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// endpointDescription is the manifest of an endpoint, as far as tasks are checked
// against it.
type endpointDescription struct {
	done            chan struct{}    // closed when the fields below are set
	coverage        *worker.Coverage // nil = everything
	comparesAnswers bool             // the questions of a node with the answered questions
	problem         string           // why it gets no tasks, "" = it gets tasks
	err             error
}

const (
	// describeTimeout is how long an endpoint may take to describe itself.
	describeTimeout = 10 * time.Second
	// maxManifestBytes bounds the description.
	maxManifestBytes = 1 << 20
)

// awaitDescription returns the description of the endpoint. One request answers all
// tasks; each waits until its own context ends.
func (e *endpoint) awaitDescription(ctx context.Context, by *Executor) (*endpointDescription, error) {
	e.mu.Lock()
	d := e.description
	if d == nil {
		d = &endpointDescription{done: make(chan struct{})}
		e.description = d
		go contain.Func(func() {
			defer close(d.done)
			e.requestDescription(context.WithoutCancel(ctx), by, d)
		}, func(*contain.PanicError) { e.dropDescription(d) })()
	}
	e.mu.Unlock()
	select {
	case <-d.done:
		return d, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *endpoint) requestDescription(ctx context.Context, by *Executor, d *endpointDescription) {
	d.err = errNoDescription
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	manifest := &graphdv1.WorkerManifest{}
	err := by.receiver.ReceiveMessage(manifest, nil, maxManifestBytes, func(m any) error {
		return e.conn.Invoke(ctx, graphdv1.NodeService_Describe_FullMethodName, &graphdv1.DescribeRequest{}, m,
			grpc.StaticMethod(), grpc.MaxCallRecvMsgSize(maxManifestBytes))
	})
	switch {
	case err == nil:
		d.err = d.readManifest(manifest)
	case status.Code(err) == codes.Unimplemented:
		d.err = nil
	case ctx.Err() != nil:
		d.err = status.Errorf(codes.DeadlineExceeded, "Describe was not answered within %s", describeTimeout)
	default:
		d.err = err
	}
	if d.err != nil {
		e.dropDescription(d)
	}
}

// readManifest sets the fields that tasks are checked against.
func (d *endpointDescription) readManifest(m *graphdv1.WorkerManifest) error {
	v := wire.NewValidator(payload.Limits{}, tenant.Default)
	serves := wire.CapabilitiesFromProto(v, "nodes", m.GetNodes())
	if err := v.Err(); err != nil {
		return err
	}
	d.comparesAnswers = slices.Contains(m.GetFeatures(), wire.FeatureDrift)
	if len(serves) > 0 {
		d.coverage = worker.NewCoverage(serves)
	}
	if _, err := wire.NegotiateProtocol(m); err != nil {
		d.problem = err.Error()
	}
	return nil
}

// errNoDescription is the error of a request for the description that panicked.
var errNoDescription = status.Error(codes.Internal, "the description of the endpoint could not be read")

// dropDescription makes the next task request the description again, because the
// endpoint may run another build by then.
func (e *endpoint) dropDescription(d *endpointDescription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.description == d {
		e.description = nil
	}
}
