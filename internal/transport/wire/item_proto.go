package wire

import (
	"fmt"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// Bounds of the names of items.
const (
	maxItemLabels     = 32
	maxNamespaceBytes = 1024
	maxItemKeyLength  = 1024
	// maxItemOffset bounds what a search passes over, as that of ListThreads.
	maxItemOffset = 100_000
	// Sizes of pages that a request does not name.
	defaultItemLimit      = 10
	defaultNamespaceLimit = 100
)

// reservedLabel begins no namespace of clients: LangGraph keeps it for itself.
const reservedLabel = "langgraph"

// ItemToProto converts an item.
func ItemToProto(i *runtime.Item) *graphdv1.Item {
	return &graphdv1.Item{
		Namespace: i.Namespace, Key: i.Key, Value: JSONToProto(i.Value), CreateTime: TimeToProto(i.Created), UpdateTime: TimeToProto(i.Updated),
		Ttl: DurationToProto(i.TTL), ExpireTime: TimeToProto(i.Expires),
	}
}

// ItemFromProto converts a request to put an item.
func ItemFromProto(v *Validator, req *graphdv1.PutItemRequest) runtime.Item {
	item := runtime.Item{
		Tenant: v.Tenant(), Namespace: v.CheckItemNamespace("namespace", req.GetNamespace()), Key: v.CheckItemKey("key", req.GetKey()),
		Value: v.convertObject("value", req.GetValue()), TTL: v.convertPositiveDuration("ttl", req.GetTtl()),
	}
	if len(item.Namespace) > 0 && item.Namespace[0] == reservedLabel {
		v.AddViolation("namespace", "begins with %q, which is reserved; choose another first label", reservedLabel)
	}
	v.RequireSet("value", req.GetValue() != nil)
	if item.TTL > 0 && item.TTL < time.Millisecond {
		v.AddViolation("ttl", "is %s; want at least 1ms", item.TTL)
	}
	if item.TTL > maxItemTTL {
		v.AddViolation("ttl", "is %s; want at most %s, or leave it unset for ever", item.TTL, maxItemTTL)
	}
	return item
}

// maxItemTTL keeps the time at which an item expires within what stores write.
const maxItemTTL = 100 * 365 * 24 * time.Hour

// CheckItemNamespace checks the namespace of an item.
func (v *Validator) CheckItemNamespace(field string, labels []string) []string {
	if len(labels) == 0 {
		v.AddViolation(field, `is empty; want a list of labels, like ["users", "ann"]`)
	}
	return v.checkItemLabels(field, labels)
}

// checkItemLabels checks labels of a namespace, or of a part of one.
func (v *Validator) checkItemLabels(field string, labels []string) []string {
	if len(labels) > maxItemLabels {
		v.AddViolation(field, "has %d labels; at most %d are allowed", len(labels), maxItemLabels)
		return labels
	}
	size := 0
	for i, label := range labels {
		size += len(label)
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case label == "":
			v.AddViolation(at, "is empty; want a text without periods")
		case strings.ContainsAny(label, ".\x00"):
			v.AddViolation(at, "is %q, with a period or a NUL; want a text without", reason.ClipText(label, MaxNameLength))
		}
	}
	if size > maxNamespaceBytes {
		v.AddViolation(field, "has labels of %d bytes; at most %d are allowed", size, maxNamespaceBytes)
	}
	return labels
}

// CheckItemKey checks the key of an item.
func (v *Validator) CheckItemKey(field, key string) string {
	v.RequireSet(field, key != "")
	if len(key) > maxItemKeyLength {
		v.AddViolation(field, "has %d bytes; at most %d are allowed", len(key), maxItemKeyLength)
	}
	return key
}

// ItemQueryFromProto converts a search for items.
func ItemQueryFromProto(v *Validator, req *graphdv1.SearchItemsRequest) runtime.ItemQuery {
	if req.GetQuery() != "" {
		v.AddViolation("query", "is set, and the server has no index of what texts mean; leave it empty and find items by namespace_prefix and filter")
	}
	q := runtime.ItemQuery{
		Tenant: v.Tenant(), Prefix: v.checkItemLabels("namespace_prefix", req.GetNamespacePrefix()), Filter: v.convertObject("filter", req.GetFilter()),
		Refresh: req.GetRefreshTtl(),
	}
	q.Limit, q.Offset = v.checkItemPage(req.GetLimit(), req.GetOffset(), defaultItemLimit)
	return q
}

// checkItemPage checks the limit and the offset of a list.
func (v *Validator) checkItemPage(limit, offset int32, standard int) (checkedLimit, checkedOffset int) {
	if limit < 0 {
		v.AddViolation("limit", "is %d; want 1 or more, or 0 for %d", limit, standard)
	}
	if offset < 0 || offset > maxItemOffset {
		v.AddViolation("offset", "is %d; want 0 to %d", offset, maxItemOffset)
	}
	if limit == 0 {
		return standard, int(offset)
	}
	return int(limit), int(offset)
}

// ItemNamespaceQueryFromProto converts a request for namespaces.
func ItemNamespaceQueryFromProto(v *Validator, req *graphdv1.ListItemNamespacesRequest) runtime.ItemNamespaceQuery {
	if req.GetMaxDepth() < 0 {
		v.AddViolation("max_depth", "is %d; want 1 or more, or 0 for all labels", req.GetMaxDepth())
	}
	q := runtime.ItemNamespaceQuery{
		Tenant: v.Tenant(), Prefix: v.checkItemLabels("prefix", req.GetPrefix()), Suffix: v.checkItemLabels("suffix", req.GetSuffix()),
		MaxDepth: int(req.GetMaxDepth()),
	}
	q.Limit, q.Offset = v.checkItemPage(req.GetLimit(), req.GetOffset(), defaultNamespaceLimit)
	return q
}
