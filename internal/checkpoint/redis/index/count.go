package index

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
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

// CountTags returns how many open interrupts of a tenant have each of some tags. Redis counts
// the members of a range without reading them.
func (x *Reader) CountTags(ctx context.Context, owner string, tags []string) ([]int, error) {
	forms := make([][]string, len(tags))
	for i, tag := range tags {
		if tag != checkpoint.OpenTag {
			forms[i] = x.database.Box.TagForms(tag)
		}
	}
	counts, err := x.countForms(ctx, layout.TenantKey(layout.KeyTags, owner), layout.TagByCreated, forms)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(tags, checkpoint.OpenTag); i >= 0 {
		if counts[i], err = x.CountOpenInterrupts(ctx, owner, math.MaxInt); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// countForms returns how many members of a list of tags have each of some tags, of which each may
// be stored in several forms.
func (x *Reader) countForms(ctx context.Context, key, order string, tags [][]string) ([]int, error) {
	counts := make([]int, len(tags))
	var args []any
	var of []int // which tag each range is of
	for i, forms := range tags {
		for _, form := range forms {
			r := layout.NewTagRange(order, form, "", time.Time{})
			args, of = append(args, r.Begin, r.End), append(of, i)
		}
	}
	if len(args) == 0 {
		return counts, nil
	}
	replies, err := x.runner.RunOnPartitions(ctx, x.scripts.TagCounts, x.keys.AllPartitions(), []string{key}, args...)
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		for k, i := range of {
			n, _ := r.IntAt(k)
			counts[i] += int(n)
		}
	}
	return counts, nil
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
