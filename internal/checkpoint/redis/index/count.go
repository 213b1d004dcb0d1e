package index

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// CountThreads returns how many threads a tenant has, or atMost if it has more.
func (x *Reader) CountThreads(ctx context.Context, owner string, atMost int) (int, error) {
	return x.countMembers(ctx, layout.TenantKey(layout.KeyThreads, owner), atMost)
}

// CountOpenInterrupts returns how many interrupts of a tenant are open, or atMost if more
// are.
func (x *Reader) CountOpenInterrupts(ctx context.Context, owner string, atMost int) (int, error) {
	return x.countMembers(ctx, layout.TenantKey(layout.KeyOpenInterrupts, owner), atMost)
}

// countMembers counts the members of a list in all partitions, which Redis knows without
// looking at them.
func (x *Reader) countMembers(ctx context.Context, name string, atMost int) (int, error) {
	keys := make([]string, x.keys.PartitionCount())
	for p := range keys {
		keys[p] = x.keys.PartitionKey(p, name)
	}
	n, err := x.runner.CountMembers(ctx, keys)
	return int(min(n, int64(atMost))), err
}
