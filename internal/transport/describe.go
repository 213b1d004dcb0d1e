package transport

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
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
		go e.ask(context.WithoutCancel(ctx), d)
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
	defer close(d.done)
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	m, err := e.client.Describe(ctx, &graphdv1.DescribeRequest{})
	switch {
	case err == nil:
		d.manifest = m
	case status.Code(err) == codes.Unimplemented:
	case ctx.Err() != nil:
		d.err = status.Errorf(codes.DeadlineExceeded, "Describe was not answered within %s", describeWithin)
	default:
		d.err = err
	}
	if d.err != nil {
		e.forget(d)
	}
}

// forget has the endpoint asked again: it may be another build the next time.
func (e *endpoint) forget(d *description) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.described == d {
		e.described = nil
	}
}
