package permission

import (
	"context"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// ItemFilter decides which items of a call the caller gets. A nil ItemFilter shows all.
type ItemFilter struct {
	policy *access.Policy
	wanted access.Request
}

// NewItemFilter makes the filter of a call; nil when the caller gets every item. A filter
// keeps its policy: a call that goes on for long makes another one.
func (a *Authorizer) NewItemFilter(ctx context.Context, method string) *ItemFilter {
	if a == nil {
		return nil
	}
	f := &ItemFilter{policy: a.opts.Policy(), wanted: a.newRequest(ctx, interceptor.CallerOf(ctx), method)}
	if isAllowedForAll(f.policy, f.wanted) {
		return nil
	}
	f.wanted.Extent = access.OneItem
	return f
}

// ShowsGraph reports whether the caller gets the items of a graph whatever thread they belong
// to. The name is as stores or as clients know it.
func (f *ItemFilter) ShowsGraph(graph string) bool {
	if f == nil {
		return true
	}
	wanted := f.wanted
	wanted.Graph, wanted.Extent = tenant.ClientName(graph), access.EveryGraph
	return f.policy.Decide(wanted).Allowed
}

// Shows reports whether the caller gets an item of a graph, and of a thread if it
// belongs to one. The names are as stores or as clients know them.
func (f *ItemFilter) Shows(graph, thread string) bool {
	if f == nil {
		return true
	}
	wanted := f.wanted
	wanted.Graph, wanted.Thread = tenant.ClientName(graph), tenant.ClientName(thread)
	return f.policy.Decide(wanted).Allowed
}
