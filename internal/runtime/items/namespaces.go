package items

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// AnyLabel stands for any label in the prefix and the suffix of an ItemNamespaceQuery.
const AnyLabel = "*"

// ListNamespaces lists namespaces that have items, in the order of their labels. The errors are
// *Error: ITEM_SEARCH_TOO_BROAD, and those of the store.
func (k *Keeper) ListNamespaces(ctx context.Context, q runtime.ItemNamespaceQuery) ([][]string, error) {
	known := q.Prefix
	if i := slices.Index(known, AnyLabel); i >= 0 {
		known = known[:i]
	}
	found := map[string][]string{}
	err := k.visitHeads(ctx, newThreadQuery(q.Tenant, known), func(_ context.Context, heads []checkpoint.Head) (bool, error) {
		for i := range heads {
			namespace, err := parseNamespace(&heads[i])
			if err != nil {
				return false, runtime.TranslateStoreError(err)
			}
			if !matchesNamespace(&q, namespace) {
				continue
			}
			if q.MaxDepth > 0 {
				namespace = namespace[:min(len(namespace), q.MaxDepth)]
			}
			found[encodeTexts(namespace)] = namespace
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	list := make([][]string, 0, len(found))
	for _, namespace := range found {
		list = append(list, namespace)
	}
	slices.SortFunc(list, slices.Compare)
	list = list[min(q.Offset, len(list)):]
	return list[:min(q.Limit, len(list))], nil
}

// matchesNamespace reports whether a namespace begins and ends as a query says.
func matchesNamespace(q *runtime.ItemNamespaceQuery, namespace []string) bool {
	if len(namespace) < max(len(q.Prefix), len(q.Suffix)) {
		return false
	}
	return matchesLabels(q.Prefix, namespace[:len(q.Prefix)]) && matchesLabels(q.Suffix, namespace[len(namespace)-len(q.Suffix):])
}

func matchesLabels(wanted, labels []string) bool {
	for i, label := range wanted {
		if label != AnyLabel && label != labels[i] {
			return false
		}
	}
	return true
}
