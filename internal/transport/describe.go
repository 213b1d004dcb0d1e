package transport

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
)

// description is what an endpoint says that it serves.
type description struct {
	done     chan struct{}            // closed when the rest is known
	manifest *graphdv1.WorkerManifest // nil when it does not describe itself
	err      error
}

// describeWithin is how long an endpoint may take to describe itself.
const describeWithin = 10 * time.Second

// describe returns what the endpoint serves. It is asked once; all tasks wait
// for the same answer, each for as long as it may.
func (e *endpoint) describe(ctx context.Context) (*description, error) {
	e.mu.Lock()
	d := e.described
	if d == nil {
		d = &description{done: make(chan struct{})}
		e.described = d
		go contain.Func(func() {
			defer close(d.done)
			e.ask(context.WithoutCancel(ctx), d)
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

func (e *endpoint) ask(ctx context.Context, d *description) {
	d.err = errNoDescription
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	m, err := e.client.Describe(ctx, &graphdv1.DescribeRequest{})
	switch {
	case err == nil:
		d.manifest, d.err = m, nil
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
