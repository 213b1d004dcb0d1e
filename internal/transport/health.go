package transport

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// healthService is the standard service, but its watches end when the server
// drains: an open watch would keep the server from stopping.
type healthService struct {
	*health.Server

	streams      *stream.Registry
	storeRefusal func() *runtime.Error // why the store takes no changes, nil while it does
	watchCount   *atomic.Int64
	maxWatches   int64 // open at the same time, 0 = any number
}

// Check reports the status of a service. A header has the reason for which the
// store takes no changes.
func (h healthService) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if refused := h.storeRefusal(); refused != nil {
		_ = grpc.SetHeader(ctx, metadata.Pairs(interceptor.HeaderRefusal, refused.Reason)) // it fails when the call is over
	}
	return h.Server.Check(ctx, req)
}

// Watch reports the status of a service and each change of it. Watches need no credentials
// and have no end of their own, so they get only a part of the open calls. The error is
// TOO_MANY_REQUESTS.
func (h healthService) Watch(req *healthpb.HealthCheckRequest, ss healthpb.Health_WatchServer) error {
	defer h.watchCount.Add(-1)
	if h.watchCount.Add(1) > h.maxWatches && h.maxWatches > 0 {
		return runtime.Errorf(runtime.ReasonTooManyRequests, "the server holds as many watches of its health as it may, %d; try again", h.maxWatches).
			WithLimit("max-open-calls", h.maxWatches, 0)
	}
	life, release := h.streams.NewLifetime(ss.Context())
	defer release()
	err := h.Server.Watch(req, &healthStream{ServerStreamingServer: ss, ctx: life})
	if errors.Is(context.Cause(life), stream.ErrDraining) {
		return ss.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING})
	}
	return err
}

// healthStream is a watch that ends with its context.
type healthStream struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]

	ctx context.Context
}

// Context returns the context that ends with the server.
func (s *healthStream) Context() context.Context { return s.ctx }
