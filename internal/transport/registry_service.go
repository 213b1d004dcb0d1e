package transport

import (
	"context"
	"slices"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Info describes the server to clients.
type Info struct {
	Version   string
	Features  []string
	Store     string        // "memory", "sqlite", "redis"
	Retention time.Duration // of events, 0 = as long as the thread
	Started   time.Time
}

// registryService returns information about the server, its graphs and its workers.
type registryService struct {
	graphdv1.UnimplementedRegistryServiceServer
	*service

	graphs  Registry
	changes graphChanges
	workers Workers // nil = none can connect
	info    Info
}

// GetServerInfo returns the version, the features and the limits of the server, and who
// calls. The error is always nil.
func (s *registryService) GetServerInfo(
	ctx context.Context, _ *graphdv1.GetServerInfoRequest,
) (*graphdv1.ServerInfo, error) {
	info := &graphdv1.ServerInfo{
		Version: s.info.Version, Features: s.info.Features, Store: s.info.Store,
		MaxMessageBytes: wire.ClampUint32(s.maxMessageBytes), MaxInlinePayloadBytes: wire.ClampUint32(s.limits.MaxBytes),
		MaxPayloadDepth: wire.ClampUint32(s.limits.MaxDepth), HeartbeatInterval: wire.DurationToProto(s.streams.HeartbeatInterval),
		EventRetention: wire.DurationToProto(s.info.Retention), StartTime: wire.TimeToProto(s.info.Started),
	}
	if c := interceptor.CallerOf(ctx); c != nil {
		info.Caller = &graphdv1.Caller{Principal: c.Name, Groups: c.Groups, How: string(c.How), Tenant: interceptor.TenantOf(ctx)}
	}
	return info, nil
}

// ListGraphs lists the newest version of every graph. Errors: INVALID_FIELD,
// INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, and those of the store.
func (s *registryService) ListGraphs(
	ctx context.Context, req *graphdv1.ListGraphsRequest,
) (*graphdv1.ListGraphsResponse, error) {
	v := s.newValidator(ctx)
	size := listing.PageSize(v, req.GetPageSize())
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "graphs")
	var after string
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &after); err != nil {
		return nil, err
	}
	entries, last, err := s.readGraphPage(ctx, after, size)
	if err != nil {
		return nil, err
	}
	next := ""
	if last != nil {
		if next, err = s.tokens.EncodeToken(list, last.Graph.Name); err != nil {
			return nil, err
		}
	}
	resp := &graphdv1.ListGraphsResponse{NextPageToken: next}
	for _, e := range entries {
		resp.Graphs = append(resp.Graphs, wire.GraphToProto(e, req.GetView() == graphdv1.GraphView_GRAPH_VIEW_FULL))
	}
	return resp, s.checkAnswerSize(resp, "ask for a smaller page_size, or for GRAPH_VIEW_BASIC")
}

// readGraphPage reads the graphs of a page that the caller gets, those after a name. last
// is the graph after which the next page begins, nil for none.
func (s *registryService) readGraphPage(ctx context.Context, after string, size int) (page []runtime.GraphEntry, last *runtime.GraphEntry, err error) {
	filter := s.access.NewItemFilter(ctx, graphdv1.RegistryService_ListGraphs_FullMethodName)
	if filter == nil {
		entries, more, err := s.graphs.ListGraphs(ctx, interceptor.TenantOf(ctx), after, size)
		if more && len(entries) > 0 {
			last = &entries[len(entries)-1]
		}
		return entries, last, err
	}
	return listing.CollectPage(size,
		func(e *runtime.GraphEntry) bool { return filter.Shows(e.Graph.Name, "") },
		func(limit int, from *runtime.GraphEntry) ([]runtime.GraphEntry, bool, error) {
			if from != nil {
				after = from.Graph.Name
			}
			return s.graphs.ListGraphs(ctx, interceptor.TenantOf(ctx), after, limit)
		})
}

// GetGraph returns a graph. Errors: INVALID_FIELD, GRAPH_NOT_FOUND,
// GRAPH_VERSION_UNAVAILABLE, and those of the store.
func (s *registryService) GetGraph(ctx context.Context, req *graphdv1.GetGraphRequest) (*graphdv1.Graph, error) {
	v := s.newValidator(ctx)
	name, version := v.CheckGraphName("graph", req.GetGraph()), v.CheckName("version", req.GetVersion())
	v.RequireSet("graph", name != "")
	if err := v.Err(); err != nil {
		return nil, err
	}
	entry, err := s.graphs.GetGraph(ctx, name, version)
	if err != nil {
		return nil, err
	}
	return wire.GraphToProto(entry, req.GetView() != graphdv1.GraphView_GRAPH_VIEW_BASIC), nil
}

// PutGraph checks and stores a graph. Errors: those of Validator.Err,
// *graph.BuildError, GRAPH_EXISTS, TOO_MANY_GRAPHS, and those of the store.
func (s *registryService) PutGraph(ctx context.Context, req *graphdv1.PutGraphRequest) (*graphdv1.Graph, error) {
	v := s.newValidator(ctx)
	put := runtime.PutGraphRequest{
		Tenant:       interceptor.TenantOf(ctx),
		DocumentName: v.CheckText("document_name", req.GetDocumentName()), ValidateOnly: req.GetValidateOnly(),
	}
	switch definition := req.GetDefinition().(type) {
	case *graphdv1.PutGraphRequest_Spec:
		v.RequireSet("spec", definition.Spec != nil)
		put.Spec = wire.GraphSpecFromProto(v, definition.Spec)
	case *graphdv1.PutGraphRequest_Document:
		put.Document = definition.Document
		v.RequireSet("document", strings.TrimSpace(definition.Document) != "")
		v.CheckSize("document", "max-payload", len(definition.Document), s.limits.MaxBytes)
	default:
		v.AddViolation("definition", "must be a spec or a document")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	entry, err := s.changes.PutGraph(ctx, graphdv1.RegistryService_PutGraph_FullMethodName, put)
	if err != nil {
		return nil, err
	}
	return wire.GraphToProto(entry, true), nil
}

// DeleteGraph deletes all versions of a graph. Errors: INVALID_FIELD, and those of
// Registry.DeleteGraph, like GRAPH_IN_USE.
func (s *registryService) DeleteGraph(
	ctx context.Context, req *graphdv1.DeleteGraphRequest,
) (*graphdv1.DeleteGraphResponse, error) {
	v := s.newValidator(ctx)
	name := v.CheckGraphName("graph", req.GetGraph())
	v.RequireSet("graph", name != "")
	if err := v.Err(); err != nil {
		return nil, err
	}
	gone, err := s.changes.DeleteGraph(ctx, graphdv1.RegistryService_DeleteGraph_FullMethodName,
		runtime.DeleteGraphRequest{Name: name, Force: req.GetForce()})
	return &graphdv1.DeleteGraphResponse{Versions: gone}, err
}

// DeleteGraphVersion deletes a version of a graph. Errors: INVALID_FIELD, and those
// of Registry.DeleteGraph, like GRAPH_IN_USE.
func (s *registryService) DeleteGraphVersion(
	ctx context.Context, req *graphdv1.DeleteGraphVersionRequest,
) (*graphdv1.DeleteGraphResponse, error) {
	v := s.newValidator(ctx)
	name, version := v.CheckGraphName("graph", req.GetGraph()), v.CheckName("version", req.GetVersion())
	v.RequireSet("graph", name != "")
	v.RequireSet("version", version != "")
	if err := v.Err(); err != nil {
		return nil, err
	}
	gone, err := s.changes.DeleteGraph(ctx, graphdv1.RegistryService_DeleteGraphVersion_FullMethodName,
		runtime.DeleteGraphRequest{Name: name, Version: version, Force: req.GetForce()})
	return &graphdv1.DeleteGraphResponse{Versions: gone}, err
}

// ListWorkers lists connected workers. Errors: INVALID_FIELD, INVALID_PAGE_TOKEN,
// and those of Workers.
func (s *registryService) ListWorkers(
	ctx context.Context, req *graphdv1.ListWorkersRequest,
) (*graphdv1.ListWorkersResponse, error) {
	v := s.newValidator(ctx)
	size := listing.PageSize(v, req.GetPageSize())
	name := tenant.ClientName(v.CheckGraphName("graph", req.GetGraph()))
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "workers", name)
	var after string
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &after); err != nil {
		return nil, err
	}
	if s.workers == nil {
		return &graphdv1.ListWorkersResponse{}, nil
	}
	workers, err := s.workers.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers = selectTenantWorkers(interceptor.TenantOf(ctx), workers)
	workers = selectVisibleWorkers(s.access.NewItemFilter(ctx, graphdv1.RegistryService_ListWorkers_FullMethodName), workers)
	workers = slices.DeleteFunc(slices.Clone(workers), func(w runtime.Worker) bool {
		return after != "" && w.ID <= after || name != "" && !slices.ContainsFunc(w.Nodes, func(n string) bool {
			return strings.HasPrefix(n, name+"/")
		})
	})
	workers, next, err := listing.CutPage(s.tokens, list, workers, size, func(*runtime.Worker) int { return 0 }, func(w runtime.Worker) any { return w.ID })
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListWorkersResponse{NextPageToken: next}
	for _, w := range workers {
		resp.Workers = append(resp.Workers, &graphdv1.WorkerInfo{
			WorkerId: w.ID, Nodes: w.Nodes, TotalSlots: wire.ClampUint32(w.Slots), FreeSlots: wire.ClampUint32(w.FreeSlots),
			LastBeatTime: wire.TimeToProto(w.LastHeartbeat), Labels: w.Labels, Draining: w.Draining, BuildId: w.Build,
		})
	}
	return resp, nil
}

// selectTenantWorkers returns the workers of a tenant, as its clients know them.
func selectTenantWorkers(owner string, workers []runtime.Worker) []runtime.Worker {
	var own []runtime.Worker
	for _, w := range workers {
		if !tenant.Contains(owner, w.ID) {
			continue
		}
		w.ID, w.Nodes = tenant.ClientName(w.ID), slices.Clone(w.Nodes)
		for i, served := range w.Nodes {
			name, node, _ := strings.Cut(served, "/")
			w.Nodes[i] = tenant.ClientName(name) + "/" + node
		}
		own = append(own, w)
	}
	return own
}

// selectVisibleWorkers returns the workers that serve a graph which the caller sees, with
// the nodes of these graphs.
func selectVisibleWorkers(filter *permission.ItemFilter, workers []runtime.Worker) []runtime.Worker {
	if filter == nil {
		return workers
	}
	var visible []runtime.Worker
	for _, w := range workers {
		w.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), func(node string) bool {
			name, _, _ := strings.Cut(node, "/")
			return !filter.Shows(name, "")
		})
		if len(w.Nodes) > 0 {
			visible = append(visible, w)
		}
	}
	return visible
}
