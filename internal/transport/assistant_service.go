package transport

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// assistantService keeps assistants.
type assistantService struct {
	graphdv1.UnimplementedAssistantServiceServer
	*service

	assistants Assistants
}

// CreateAssistant makes an assistant. Errors: those of Validator.Err, ASSISTANT_NOT_FOUND, and those
// of assistants.Keeper.CreateAssistant.
func (s *assistantService) CreateAssistant(ctx context.Context, req *graphdv1.CreateAssistantRequest) (*graphdv1.Assistant, error) {
	v := s.newValidator(ctx)
	create := wire.NewAssistantFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if create.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	made, err := s.assistants.CreateAssistant(ctx, create)
	if err != nil {
		return nil, err
	}
	if !s.shows(ctx, made.Graph) { // the request is repeated, and the assistant has another graph now
		return nil, runtime.NewAssistantNotFoundError(made.ID)
	}
	return wire.AssistantToProto(&made), nil
}

// GetAssistant returns an assistant. Errors: INVALID_FIELD, ASSISTANT_NOT_FOUND, and those of the
// store.
func (s *assistantService) GetAssistant(ctx context.Context, req *graphdv1.GetAssistantRequest) (*graphdv1.Assistant, error) {
	v := s.newValidator(ctx)
	id, version := v.CheckID("assistant_id", req.GetAssistantId()), int(req.GetVersion())
	if version < 0 {
		v.AddViolation("version", "is %d, want a number from 1, or 0 for the active version", version)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.readShown(ctx, id, version)
	if err != nil {
		return nil, err
	}
	return wire.AssistantToProto(&found), nil
}

// readShown reads a version of an assistant that the caller may see, 0 = the active one. The graph of
// the active version decides whether the assistant exists for the caller, and that of the version
// whether the version does.
func (s *assistantService) readShown(ctx context.Context, id string, version int) (runtime.Assistant, error) {
	found, err := s.assistants.GetAssistant(ctx, interceptor.TenantOf(ctx), id, 0)
	if err == nil && version != 0 && s.shows(ctx, found.Graph) {
		found, err = s.assistants.GetAssistant(ctx, interceptor.TenantOf(ctx), id, version)
	}
	if err == nil && !s.shows(ctx, found.Graph) {
		return runtime.Assistant{}, runtime.NewAssistantNotFoundError(id)
	}
	return found, err
}

// shows reports whether the caller may see the assistants of a graph.
func (s *assistantService) shows(ctx context.Context, graph string) bool {
	return s.access.NewItemFilter(ctx, graphdv1.AssistantService_GetAssistant_FullMethodName).Shows(graph, "")
}

// ListAssistants lists assistants. Errors: INVALID_FIELD, INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, and
// those of the store.
func (s *assistantService) ListAssistants(ctx context.Context, req *graphdv1.ListAssistantsRequest) (*graphdv1.ListAssistantsResponse, error) {
	v := s.newValidator(ctx)
	size := listing.PageSize(v, req.GetPageSize())
	q := runtime.AssistantQuery{
		Tenant: interceptor.TenantOf(ctx), Graph: v.CheckGraphName("graph", req.GetGraph()), Metadata: v.CheckLabels("metadata", req.GetMetadata()),
		IsBasic:  req.GetView() != graphdv1.AssistantView_ASSISTANT_VIEW_FULL,
		MaxBytes: s.maxMessageBytes / 2, // another one may be as large
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	digest := digestList(ctx, append([]string{"assistants", tenant.ClientName(q.Graph)}, sortedPairs(q.Metadata)...)...)
	if err := s.tokens.DecodeToken(req.GetPageToken(), digest, &q.After); err != nil {
		return nil, err
	}
	filter := s.access.NewItemFilter(ctx, graphdv1.AssistantService_ListAssistants_FullMethodName)
	page, last, err := listing.CollectPage(size,
		func(a *runtime.Assistant) bool { return filter.Shows(a.Graph, "") },
		func(limit int, from *runtime.Assistant) ([]runtime.Assistant, bool, error) {
			if from != nil {
				q.After = from.Position()
			}
			q.Limit = limit
			return s.assistants.ListAssistants(ctx, q)
		})
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListAssistantsResponse{}
	if last != nil {
		if resp.NextPageToken, err = s.tokens.EncodeToken(digest, last.Position()); err != nil {
			return nil, err
		}
	}
	for i := range page {
		resp.Assistants = append(resp.Assistants, wire.AssistantToProto(&page[i]))
	}
	return resp, s.checkAnswerSize(resp, "ask for a smaller page_size, or for ASSISTANT_VIEW_BASIC")
}

// sortedPairs returns labels as texts, in the order of their keys.
func sortedPairs(labels map[string]string) []string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key, labels[key])
	}
	return pairs
}

// UpdateAssistant changes an assistant. Errors: those of Validator.Err, ACCESS_DENIED, and those of
// assistants.Keeper.UpdateAssistant.
func (s *assistantService) UpdateAssistant(ctx context.Context, req *graphdv1.UpdateAssistantRequest) (*graphdv1.Assistant, error) {
	v := s.newValidator(ctx)
	change := wire.AssistantChangeFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	const method = graphdv1.AssistantService_UpdateAssistant_FullMethodName
	if change.Graph != nil {
		if err := s.access.CheckGraph(ctx, method, *change.Graph); err != nil {
			return nil, err
		}
	}
	change.Admits = s.admitChange(ctx, method, change.ID)
	changed, err := s.assistants.UpdateAssistant(ctx, change)
	if err != nil {
		return nil, err
	}
	return wire.AssistantToProto(&changed), nil
}

// admitChange returns what refuses a change of an assistant of a graph that the caller may not
// change: one that it may not see does not exist for it.
func (s *assistantService) admitChange(ctx context.Context, method, id string) func(graph string) error {
	return func(graph string) error {
		interceptor.RecordGraph(ctx, tenant.ClientName(graph))
		if !s.shows(ctx, graph) {
			return runtime.NewAssistantNotFoundError(id)
		}
		return s.access.CheckGraph(ctx, method, graph)
	}
}

// ListAssistantVersions lists the versions of an assistant. Errors: INVALID_FIELD,
// INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, ASSISTANT_NOT_FOUND, and those of the store.
func (s *assistantService) ListAssistantVersions(
	ctx context.Context, req *graphdv1.ListAssistantVersionsRequest,
) (*graphdv1.ListAssistantVersionsResponse, error) {
	v := s.newValidator(ctx)
	id, size := v.CheckID("assistant_id", req.GetAssistantId()), min(listing.PageSize(v, req.GetPageSize()), maxVersionsPage)
	if err := v.Err(); err != nil {
		return nil, err
	}
	q := runtime.AssistantVersionQuery{Tenant: interceptor.TenantOf(ctx), ID: id, MaxBytes: s.maxMessageBytes / 2} // another one may be as large
	digest := digestList(ctx, "assistant versions", id)
	if err := s.tokens.DecodeToken(req.GetPageToken(), digest, &q.Before); err != nil {
		return nil, err
	}
	if _, err := s.readShown(ctx, id, 0); err != nil {
		return nil, err
	}
	filter := s.access.NewItemFilter(ctx, graphdv1.AssistantService_ListAssistantVersions_FullMethodName)
	page, last, err := listing.CollectPage(size,
		func(a *runtime.Assistant) bool { return filter.Shows(a.Graph, "") },
		func(limit int, from *runtime.Assistant) ([]runtime.Assistant, bool, error) {
			if from != nil {
				q.Before = from.Version
			}
			q.Limit = limit
			return s.assistants.ListVersions(ctx, q)
		})
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListAssistantVersionsResponse{}
	if last != nil {
		if resp.NextPageToken, err = s.tokens.EncodeToken(digest, last.Version); err != nil {
			return nil, err
		}
	}
	for i := range page {
		resp.Versions = append(resp.Versions, wire.AssistantToProto(&page[i]))
	}
	return resp, s.checkAnswerSize(resp, "read one version with GetAssistant")
}

// maxVersionsPage is how many versions a page has at most.
const maxVersionsPage = 100

// ActivateAssistantVersion makes a version the active one. Errors: INVALID_FIELD, ACCESS_DENIED,
// ASSISTANT_NOT_FOUND, and those of the store.
func (s *assistantService) ActivateAssistantVersion(
	ctx context.Context, req *graphdv1.ActivateAssistantVersionRequest,
) (*graphdv1.Assistant, error) {
	v := s.newValidator(ctx)
	id, version := v.CheckID("assistant_id", req.GetAssistantId()), int(req.GetVersion())
	if version < 1 {
		v.AddViolation("version", "is %d, want a number from 1", version)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	admit := s.admitChange(ctx, graphdv1.AssistantService_ActivateAssistantVersion_FullMethodName, id)
	active, err := s.assistants.ActivateVersion(ctx, interceptor.TenantOf(ctx), id, version, admit)
	if err != nil {
		return nil, err
	}
	return wire.AssistantToProto(&active), nil
}

// DeleteAssistant deletes an assistant. Errors: INVALID_FIELD, ACCESS_DENIED, and those of
// assistants.Keeper.DeleteAssistant.
func (s *assistantService) DeleteAssistant(ctx context.Context, req *graphdv1.DeleteAssistantRequest) (*emptypb.Empty, error) {
	v := s.newValidator(ctx)
	id, etag := v.CheckID("assistant_id", req.GetAssistantId()), v.ParseEtag("etag", req.GetEtag())
	if err := v.Err(); err != nil {
		return nil, err
	}
	admit := s.admitChange(ctx, graphdv1.AssistantService_DeleteAssistant_FullMethodName, id)
	if err := s.assistants.DeleteAssistant(ctx, interceptor.TenantOf(ctx), id, etag, admit); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}
