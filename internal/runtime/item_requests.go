package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Item is a value of a tenant under a namespace and a key.
type Item struct {
	Tenant    string
	Namespace []string
	Key       string
	Value     payload.JSON // a JSON object
	Created   time.Time
	Updated   time.Time     // when the value was put
	TTL       time.Duration // 0 = for ever
	Expires   time.Time     // zero = never
}

// ItemQuery selects items of a tenant.
type ItemQuery struct {
	Tenant string
	Prefix []string     // the first labels of the namespaces; empty = all
	Filter payload.JSON // a JSON object, "" = all
	Limit  int
	Offset int
	// Refresh lets the items that are found live for their TTL from now on.
	Refresh  bool
	MaxBytes int         // of the values together
	Memory   *CallMemory // of the call that shows them; nil = none
}

// ItemNamespaceQuery selects namespaces of a tenant that have items.
type ItemNamespaceQuery struct {
	Tenant   string
	Prefix   []string // "*" = any label
	Suffix   []string // "*" = any label
	MaxDepth int      // labels that count, 0 = all
	Limit    int
	Offset   int
}

// Size returns about how many bytes an item holds.
func (i *Item) Size() int {
	n := len(i.Key) + len(i.Value)
	for _, label := range i.Namespace {
		n += len(label)
	}
	return n
}
