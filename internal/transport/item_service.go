package transport

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// itemService keeps items.
type itemService struct {
	graphdv1.UnimplementedItemServiceServer
	*service

	items Items
	// searchSlots holds one value for each search. Pages wait for other searches, not for states.
	searchSlots chan struct{}
}

// maxItemSearches is the number of searches for items at the same time. Each holds the values that it
// compares, and those that it has found.
const maxItemSearches = 8

// acquireSearchSlot waits for a slot of a search. The caller calls leave when the answer is built. It
// returns an error when ctx ends first.
func (s *itemService) acquireSearchSlot(ctx context.Context) (leave func(), err error) {
	select {
	case s.searchSlots <- struct{}{}:
		return func() { <-s.searchSlots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// PutItem puts an item. Errors: those of Validator.Err, and those of items.Keeper.PutItem.
func (s *itemService) PutItem(ctx context.Context, req *graphdv1.PutItemRequest) (*graphdv1.Item, error) {
	v := s.newValidator(ctx)
	item := wire.ItemFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	put, err := s.items.PutItem(ctx, item)
	if err != nil {
		return nil, err
	}
	put.Value = "" // the client has it
	return wire.ItemToProto(&put), nil
}

// GetItem returns an item. Errors: INVALID_FIELD, and those of items.Keeper.GetItem.
func (s *itemService) GetItem(ctx context.Context, req *graphdv1.GetItemRequest) (*graphdv1.Item, error) {
	v := s.newValidator(ctx)
	namespace, key := v.CheckItemNamespace("namespace", req.GetNamespace()), v.CheckItemKey("key", req.GetKey())
	if err := v.Err(); err != nil {
		return nil, err
	}
	item, err := s.items.GetItem(ctx, interceptor.TenantOf(ctx), namespace, key, req.GetRefreshTtl())
	if err != nil {
		return nil, err
	}
	return wire.ItemToProto(&item), nil
}

// DeleteItem deletes an item. Errors: INVALID_FIELD, and those of the store.
func (s *itemService) DeleteItem(ctx context.Context, req *graphdv1.DeleteItemRequest) (*emptypb.Empty, error) {
	v := s.newValidator(ctx)
	namespace, key := v.CheckItemNamespace("namespace", req.GetNamespace()), v.CheckItemKey("key", req.GetKey())
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.items.DeleteItem(ctx, interceptor.TenantOf(ctx), namespace, key); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// SearchItems finds items. Errors: those of Validator.Err, and those of items.Keeper.SearchItems.
func (s *itemService) SearchItems(ctx context.Context, req *graphdv1.SearchItemsRequest) (*graphdv1.SearchItemsResponse, error) {
	v := s.newValidator(ctx)
	q := wire.ItemQueryFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	leave, err := s.acquireSearchSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	q.MaxBytes, q.Memory = s.maxMessageBytes, interceptor.CallMemoryOf(ctx)
	found, err := s.items.SearchItems(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.SearchItemsResponse{Items: make([]*graphdv1.Item, len(found))}
	for i := range found {
		resp.Items[i] = wire.ItemToProto(&found[i])
	}
	return resp, s.checkAnswerSize(resp, "ask for a smaller limit")
}

// ListItemNamespaces lists namespaces. Errors: INVALID_FIELD, PAYLOAD_TOO_LARGE, and those of
// items.Keeper.ListNamespaces.
func (s *itemService) ListItemNamespaces(
	ctx context.Context, req *graphdv1.ListItemNamespacesRequest,
) (*graphdv1.ListItemNamespacesResponse, error) {
	v := s.newValidator(ctx)
	q := wire.ItemNamespaceQueryFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	leave, err := s.acquireSearchSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.items.ListNamespaces(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListItemNamespacesResponse{Namespaces: make([]*graphdv1.ItemNamespace, len(found))}
	for i, labels := range found {
		resp.Namespaces[i] = &graphdv1.ItemNamespace{Labels: labels}
	}
	return resp, s.checkAnswerSize(resp, "ask for a smaller limit")
}
