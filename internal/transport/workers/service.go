// Package workers serves processes that run nodes: their sessions, the tasks that they get,
// and the calls that they make for a task.
package workers

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// GraphPutter stores graphs that workers bring along.
type GraphPutter interface {
	// PutGraph puts a graph for a method, if the caller may. The errors are ACCESS_DENIED,
	// a *graph.BuildError for a graph with problems, and those of the store.
	PutGraph(ctx context.Context, method string, put runtime.PutGraphRequest) (runtime.GraphEntry, error)
}

// Options are the parts of a server that the service of workers uses.
type Options struct {
	Hub    *worker.Hub
	Graphs GraphPutter
	Access *permission.Authorizer // nil = every caller may serve every graph

	Limits          payload.Limits // of one payload
	MaxMessageBytes int            // of one message
	Version         string         // of the server
}

// Service serves processes that run nodes.
type Service struct {
	graphdv1.UnimplementedWorkerServiceServer

	hub             *worker.Hub
	graphs          GraphPutter
	access          *permission.Authorizer
	limits          payload.Limits
	maxMessageBytes int
	version         string
}

// New makes the service.
func New(o Options) *Service {
	return &Service{
		hub: o.Hub, graphs: o.Graphs, access: o.Access, limits: o.Limits, maxMessageBytes: o.MaxMessageBytes, version: o.Version,
	}
}

// newValidator makes the validator of a message of a call.
func (s *Service) newValidator(ctx context.Context) *wire.Validator {
	return wire.NewValidator(s.limits, interceptor.TenantOf(ctx))
}

// checkHolder refuses a call under a lease that was given to the worker of another
// caller, or in another tenant. The error is TASK_LEASE_LOST.
func (s *Service) checkHolder(ctx context.Context, token string) error {
	return s.hub.CheckHolder(token, interceptor.TenantOf(ctx), interceptor.ActorOf(ctx).Name)
}
