package transport

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/worker"
)

// description is what an endpoint says that it serves.
type description struct {
	done     chan struct{}    // closed when the rest is known
	serves   *worker.Coverage // nil = everything
	compares bool             // what it asks with what was answered
	problem  string           // why it gets no tasks, "" = nothing
	err      error
}

const (
	// describeWithin is how long an endpoint may take to describe itself.
	describeWithin = 10 * time.Second
	// maxManifest is how many bytes its description may have.
	maxManifest = 1 << 20
)

// describe returns what the endpoint serves. It is asked once; all tasks wait
// for the same answer, each for as long as it may.
func (e *endpoint) describe(ctx context.Context, by *Remote) (*description, error) {
	e.mu.Lock()
	d := e.described
	if d == nil {
		d = &description{done: make(chan struct{})}
		e.described = d
		go contain.Func(func() {
			defer close(d.done)
			e.ask(context.WithoutCancel(ctx), by, d)
		}, func(*contain.PanicError) { e.forget(d) })()
	}
	e.mu.Unlock()
	select {
	case <-d.done:
		return d, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *endpoint) ask(ctx context.Context, by *Remote, d *description) {
	d.err = errNoDescription
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	manifest := &graphdv1.WorkerManifest{}
	err := by.receive(manifest, maxManifest, func(m *incoming) error {
		return e.conn.Invoke(ctx, graphdv1.NodeService_Describe_FullMethodName, &graphdv1.DescribeRequest{}, m,
			grpc.StaticMethod(), grpc.MaxCallRecvMsgSize(maxManifest))
	})
	switch {
	case err == nil:
		d.err = d.take(manifest)
	case status.Code(err) == codes.Unimplemented:
		d.err = nil
	case ctx.Err() != nil:
		d.err = status.Errorf(codes.DeadlineExceeded, "Describe was not answered within %s", describeWithin)
	default:
		d.err = err
	}
	if d.err != nil {
		e.forget(d)
	}
}

// take keeps what tasks are judged by.
func (d *description) take(m *graphdv1.WorkerManifest) error {
	b := &border{}
	serves := servedIn(b, "nodes", m.GetNodes())
	if err := b.err(); err != nil {
		return err
	}
	d.compares = slices.Contains(m.GetFeatures(), featureDrift)
	if len(serves) > 0 {
		d.serves = worker.NewCoverage(serves)
	}
	if _, err := protocolOf(m); err != nil {
		d.problem = err.Error()
	}
	return nil
}

// errNoDescription is the answer when asking panicked.
var errNoDescription = status.Error(codes.Internal, "the description of the endpoint could not be read")

// forget has the endpoint asked again: it may be another build the next time.
func (e *endpoint) forget(d *description) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.described == d {
		e.described = nil
	}
}
