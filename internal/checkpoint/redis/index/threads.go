package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// ListThreads lists heads by update time, or with conditions by creation time, newest first.
// Without a tenant it lists those of all, and each page reads the lists of every tenant.
func (x *Reader) ListThreads(ctx context.Context, q checkpoint.ThreadQuery) (out []checkpoint.Head, err error) {
	if q.HasConditions() {
		out, err = x.listTaggedThreads(ctx, &q)
	} else {
		out, err = x.listAllThreads(ctx, &q)
	}
	if err == nil {
		err = x.database.CheckMark(ctx)
	}
	if err != nil {
		return nil, err
	}
	// A thread that was changed while it was listed stands where it is now.
	slices.SortStableFunc(out, func(a, b checkpoint.Head) int {
		return cmp.Or(q.PositionOf(&b).Time().Compare(q.PositionOf(&a).Time()), strings.Compare(a.Thread, b.Thread))
	})
	return out, nil
}

// placeAfter returns where a list of threads begins, "" = at the start.
func placeAfter(q *checkpoint.ThreadQuery) string {
	if q.Before == (checkpoint.ThreadPosition{}) {
		return ""
	}
	return layout.ThreadPosition(q.Before.Time(), q.Before.Thread) + "\x00\xff"
}

// listAllThreads lists threads by update time.
func (x *Reader) listAllThreads(ctx context.Context, q *checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	size := pageSize
	if q.Limit > 0 {
		size = min(size, q.Limit)
	}
	return walkIndex(q.Limit, placeAfter(q), func(from string) (indexPage, error) {
		return x.readTenants(ctx, q.Tenant, size, func(owners []string) (indexPage, error) {
			return x.readMembers(ctx, owners, []string{layout.KeyThreads}, from, size, func(member string) (indexEntry, bool) {
				thread, _, _, ok := layout.ParseThreadMember(member)
				return indexEntry{thread: thread}, ok && q.MatchesID(thread)
			})
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Head, error) {
		return x.readHeads(ctx, list, portion, func(*checkpoint.Head, *indexEntry) bool { return true })
	})
}

// listTaggedThreads lists the threads that meet the conditions of a query: members of the condition
// that the fewest threads meet, which meet the others.
func (x *Reader) listTaggedThreads(ctx context.Context, q *checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	l, err := x.newThreadList(ctx, q)
	if err != nil {
		return nil, err
	}
	sizes := x.sizeTaggedReads(l, q.Limit, false)
	return walkIndex(q.Limit, placeAfter(q), func(from string) (indexPage, error) {
		ask := sizes.takeSize()
		return x.readTenants(ctx, q.Tenant, ask, func(owners []string) (indexPage, error) {
			page, err := x.readTagged(ctx, l, owners, from, ask)
			page.entries = slices.DeleteFunc(page.entries, func(e indexEntry) bool { return !q.MatchesID(e.thread) })
			return page, err
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Head, error) {
		return x.readHeads(ctx, list, portion, func(h *checkpoint.Head, at *indexEntry) bool {
			return q.MatchesThread(h) && layout.CreatedMember(h) == at.position
		})
	})
}

// newThreadList chooses which condition of a query is read, and which are looked up.
func (x *Reader) newThreadList(ctx context.Context, q *checkpoint.ThreadQuery) (*taggedList, error) {
	l := &taggedList{key: layout.KeyThreadTags}
	for _, c := range q.Conditions() {
		l.others = append(l.others, layout.ConditionForms(x.database.Box, c))
	}
	at := 0
	if len(l.others) > 1 && q.Tenant != "" {
		counts, err := x.countForms(ctx, layout.TenantKey(l.key, q.Tenant), l.order, l.others)
		if err != nil {
			return nil, err
		}
		at = slices.Index(counts, slices.Min(counts))
	}
	l.chosen = l.others[at]
	l.others = slices.Delete(l.others, at, at+1)
	return l, nil
}

// readHeads reads the heads of index entries until the portion is full. It leaves out heads that
// are gone, that can't be read, or that are not wanted at their entries.
func (x *Reader) readHeads(
	ctx context.Context, list []indexEntry, portion *checkpoint.Portion, isWanted func(h *checkpoint.Head, at *indexEntry) bool,
) ([]checkpoint.Head, error) {
	inputs := make([]script.Input, len(list))
	for i, e := range list {
		inputs[i].Keys = x.keys.ThreadKeys(e.thread, layout.KeyHead)
	}
	replies, err := x.runner.RunPerThread(ctx, x.scripts.Head, inputs)
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Head
	for i, r := range replies {
		if portion.Full() {
			break
		}
		if !r.HasValue(1) {
			continue
		}
		h, err := x.threads.DecodeHead(list[i].thread, r)
		if err == nil && isWanted(&h, &list[i]) {
			portion.Take(h.Size())
			out = append(out, h)
		}
	}
	return out, nil
}
