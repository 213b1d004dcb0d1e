package workers

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// openSession checks a hello, registers the graphs in it, begins the session and
// sends the welcome. number is that of the hello.
func (s *Service) openSession(ctx context.Context, stream workerStream, number uint64, h *graphdv1.Hello) (*worker.Session, error) {
	v := s.newValidator(ctx)
	hello := wire.HelloFromProto(v, h)
	hello.Number, hello.Principal = number, interceptor.ActorOf(ctx).Name
	if err := v.Err(); err != nil {
		return nil, err
	}
	protocol, err := wire.NegotiateProtocol(h.GetManifest())
	if err != nil {
		return nil, err
	}
	if err := s.checkServed(ctx, hello.Capabilities, h.GetManifest().GetGraphs()); err != nil {
		return nil, err
	}
	registered, err := s.registerGraphs(ctx, &hello, h.GetManifest().GetGraphs())
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // it would take the place of a newer stream, of which this hello knows nothing
		return nil, context.Cause(ctx)
	}
	session, w, err := s.hub.OpenSession(hello)
	if err != nil {
		return nil, err
	}
	welcome := s.welcomeToProto(&w, protocol, registered)
	if err := stream.Send(&graphdv1.ConnectResponse{
		Kind: &graphdv1.ConnectResponse_Welcome{Welcome: welcome},
	}); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// welcomeToProto converts the answer to a hello. registered are the graphs that the worker
// has brought along.
func (s *Service) welcomeToProto(w *worker.Welcome, protocol uint32, registered []*graphdv1.GraphRegistration) *graphdv1.Welcome {
	welcome := &graphdv1.Welcome{
		SessionId: w.SessionID, Protocol: protocol, Graphs: registered,
		BeatInterval: wire.DurationToProto(w.HeartbeatInterval), LeaseTtl: wire.DurationToProto(w.LeaseTTL),
		Lost: wire.LeaseTokensToProto(w.LostLeases), Undecided: wire.LeaseTokensToProto(w.UndecidedLeases),
		MaxMessageBytes: wire.ClampUint32(s.maxMessageBytes), MaxPayloadBytes: wire.ClampUint32(s.limits.MaxBytes),
		MaxResultBytes: wire.MaxResultBytes, ServerVersion: s.version, Features: workerFeatures(),
	}
	for _, token := range w.RenewedLeases {
		welcome.Renewed = append(welcome.Renewed, wire.LeaseToProto(token, w.LeaseTTL))
	}
	return welcome
}

// checkServed refuses a worker that names a graph which its caller may not serve. The
// others get only tasks of graphs that they have named. The error is ACCESS_DENIED.
func (s *Service) checkServed(ctx context.Context, served []worker.Capability, brought []*graphdv1.GraphSpec) error {
	if s.access == nil {
		return nil
	}
	checked := map[string]bool{}
	check := func(name string) error {
		if checked[name] {
			return nil
		}
		checked[name] = true
		return s.access.CheckGraph(ctx, graphdv1.WorkerService_Connect_FullMethodName, name)
	}
	for i := range served {
		if err := check(served[i].Graph); err != nil {
			return err
		}
	}
	for _, spec := range brought {
		if err := check(spec.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// registerGraphs stores the graphs that a worker brings along. The worker serves
// the stored graphs. A refused graph does not prevent the worker from serving the
// others.
func (s *Service) registerGraphs(
	ctx context.Context, hello *worker.Hello, specs []*graphdv1.GraphSpec,
) ([]*graphdv1.GraphRegistration, error) {
	var out []*graphdv1.GraphRegistration
	beside := map[string]string{} // versions of the graphs that came before
	for _, spec := range specs {
		g, err := s.putGraph(ctx, spec, beside)
		if err == nil {
			beside[tenant.ClientName(g.Name)] = g.Version
			hello.Capabilities = append(hello.Capabilities, worker.Capability{Graph: g.Name, Version: g.Version})
			out = append(out, &graphdv1.GraphRegistration{Graph: tenant.ClientName(g.Name), Version: g.Version})
			continue
		}
		refused := reason.ToClientError(err)
		if refused == nil || refused.IsStoreFault() {
			return nil, err
		}
		out = append(out, &graphdv1.GraphRegistration{Graph: spec.GetName(), Problems: graphProblems(refused)})
	}
	return out, nil
}

func (s *Service) putGraph(ctx context.Context, spec *graphdv1.GraphSpec, beside map[string]string) (*graph.Graph, error) {
	v := s.newValidator(ctx)
	in := wire.GraphSpecFromProto(v, spec)
	if err := v.Err(); err != nil {
		return nil, err
	}
	pinSubgraphs(in, beside)
	entry, err := s.graphs.PutGraph(ctx, graphdv1.WorkerService_Connect_FullMethodName, runtime.PutGraphRequest{
		Tenant: interceptor.TenantOf(ctx), Spec: in,
	})
	if err != nil {
		return nil, err
	}
	return entry.Graph, nil
}

// pinSubgraphs pins the subgraphs of a graph to the versions that its worker has brought with it: the
// newest ones may be those of another program. A graph whose version is named keeps the subgraphs with
// which that was stored. One that contains itself is left to the compiler, which refuses it.
func pinSubgraphs(spec *graph.Spec, beside map[string]string) {
	if spec.Version != "" {
		return
	}
	for i := range spec.Nodes {
		if inside := spec.Nodes[i].Graph; inside != nil && inside.Version == "" && inside.Name != spec.Name {
			inside.Version = beside[inside.Name]
		}
	}
}

func graphProblems(e *runtime.Error) []*graphdv1.GraphProblem {
	if len(e.Violations) == 0 {
		return []*graphdv1.GraphProblem{{Description: e.Message}}
	}
	var out []*graphdv1.GraphProblem
	for _, v := range e.Violations {
		out = append(out, &graphdv1.GraphProblem{Field: v.Field, Description: reason.ViolationText(v)})
	}
	return out
}
