package index

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// ListInterrupts lists interrupts over all threads. Without a tenant it lists those of all,
// and each page reads the lists of every tenant.
func (x *Reader) ListInterrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) (out []checkpoint.Interrupt, err error) {
	switch {
	case q.Thread != "" && !tenant.Contains(q.Tenant, q.Thread):
		return nil, nil
	case q.Thread != "":
		out, err = x.listThreadInterrupts(ctx, &q)
	case q.ByChange:
		out, err = x.listInterruptsByChange(ctx, &q)
	case q.UsesTags():
		if out, err = x.listTagged(ctx, &q); err == nil {
			err = x.database.CheckMark(ctx)
		}
	default:
		if out, err = x.listInterruptsByAge(ctx, &q); err == nil {
			err = x.database.CheckMark(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listThreadInterrupts lists the interrupts of a thread. Where they lie in the
// order of changes is final: only numbers of other threads may still be smaller.
func (x *Reader) listThreadInterrupts(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	partition := x.keys.PartitionOf(q.Thread)
	keys := append(x.keys.ThreadKeys(q.Thread, layout.KeyInterrupts), x.keys.PartitionKey(partition, layout.KeyStoreMark))
	large := math.MaxInt
	if q.Limit > 0 {
		large = checkpoint.ReadBytes
	}
	r, err := x.runner.RunScript(ctx, x.scripts.Interrupts, keys, large)
	if err = script.ToContractError(ctx, err); errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, nil // reading an interrupt by name returns the error
	}
	switch {
	case err != nil:
		return nil, err
	case !r.HasValue(0):
		return x.largeQuestionsOf(ctx, q, r.ListAt(1))
	}
	var out []checkpoint.Interrupt
	all := r.ListAt(0)
	if len(all) == 0 && r.TextAt(2) != x.database.Mark {
		return nil, x.database.OtherStoreError(partition, r.TextAt(2)) // they are lost, rather than never asked
	}
	for i := 0; i+1 < len(all); i += 2 {
		id, ok := strings.CutPrefix(all.TextAt(i), "r")
		if !ok {
			continue
		}
		in, err := x.threads.DecodeInterrupt(q.Thread, id, all.TextAt(i+1))
		if err == nil && q.MatchesInterrupt(&in) && q.IsAfterCursor(&in) {
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b checkpoint.Interrupt) int {
		if q.ByChange {
			return cmp.Compare(a.Change, b.Change)
		}
		return strings.Compare(layout.InterruptMember(&a), layout.InterruptMember(&b))
	})
	portion := checkpoint.Portion{Limit: q.Limit}
	for i := range out {
		if portion.Full() {
			return out[:i:i], nil
		}
		portion.Take(out[i].Size())
	}
	return out, nil
}

// largeQuestionsOf lists the interrupts of a thread that are too large to be read
// all at once. standing is where each stands.
func (x *Reader) largeQuestionsOf(
	ctx context.Context, q *checkpoint.InterruptQuery, standing script.Reply,
) (out []checkpoint.Interrupt, err error) {
	var list []indexEntry
	after := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		after = layout.InterruptPosition(q.After.Created, q.After.Thread, q.After.ID)
	}
	for i := 0; i+3 < len(standing); i += 4 {
		n, err := standing.UintAt(i + 1)
		if err != nil {
			continue
		}
		id := standing.TextAt(i)
		e := indexEntry{thread: q.Thread, id: id, change: x.threads.GlobalChangeNumber(n, x.keys.PartitionOf(q.Thread))}
		e.position = standing.TextAt(i+2) + q.Thread + "\x00" + id
		if q.ByChange && e.change > q.After.Change || !q.ByChange && e.position > after {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b indexEntry) int {
		if q.ByChange {
			return cmp.Compare(a.change, b.change)
		}
		return strings.Compare(a.position, b.position)
	})
	return walkIndex(q.Limit, "", func(string) (indexPage, error) { return indexPage{entries: list}, nil },
		func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
			return x.readInterrupts(ctx, q, list, portion, func(*checkpoint.Interrupt) bool { return true })
		})
}

func (x *Reader) listInterruptsByAge(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	from := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		from = layout.InterruptPosition(q.After.Created, q.After.Thread, q.After.ID) + "\x00\xff"
	}
	keys := []string{layout.KeyOpenInterrupts, layout.KeyClosedInterrupts}
	switch others := slices.DeleteFunc(slices.Clone(q.States), isOpenState); {
	case len(q.States) > 0 && len(others) == 0:
		keys = keys[:1]
	case len(q.States) > 0 && len(others) == len(q.States):
		keys = keys[1:]
	}
	sizes := x.sizeReads(q.Limit, pageSize, hasConditions(q))
	return walkIndex(q.Limit, from, func(from string) (indexPage, error) {
		ask := sizes.takeSize()
		return x.readTenants(ctx, q.Tenant, ask, func(owners []string) (indexPage, error) {
			return x.readMembers(ctx, owners, keys, from, ask, parseInterruptEntry)
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return x.readInterrupts(ctx, q, list, portion, func(*checkpoint.Interrupt) bool { return true })
	})
}

func parseInterruptEntry(member string) (indexEntry, bool) {
	thread, id, ok := layout.ParseMember(member)
	return indexEntry{thread: thread, id: id}, ok
}

// hasConditions reports whether a query may refuse interrupts of the lists that it reads.
func hasConditions(q *checkpoint.InterruptQuery) bool {
	return q.Run != "" || q.Node != "" || q.Reason != "" || len(q.States) > 1 || len(q.Tags)+len(q.AnyTag) > 0
}

func isOpenState(st checkpoint.InterruptState) bool { return st == checkpoint.InterruptOpen }

// listInterruptsByChange lists interrupts up to the last change that any partition
// knows. Partitions that are behind are raised to it first, so that nothing
// can appear later at a place that was read.
func (x *Reader) listInterruptsByChange(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	end, err := x.alignChangeCounts(ctx)
	if err != nil {
		return nil, err
	}
	from := ""
	if q.After.Change > 0 {
		from = changePosition(q.After.Change)
	}
	return walkIndex(q.Limit, from, func(from string) (indexPage, error) {
		return x.readTenants(ctx, q.Tenant, pageSize, func(owners []string) (indexPage, error) {
			return x.readChangePage(ctx, owners, from, end)
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return x.readInterrupts(ctx, q, list, portion, func(in *checkpoint.Interrupt) bool {
			// An interrupt that was changed meanwhile comes at its new place.
			_, listed := slices.BinarySearchFunc(list, in.Change, func(e indexEntry, change uint64) int {
				return cmp.Compare(e.change, change)
			})
			return listed
		})
	})
}

// LatestChange returns a number that every later change of an interrupt exceeds, in all
// partitions.
func (x *Reader) LatestChange(ctx context.Context) (uint64, error) {
	end, err := x.alignChangeCounts(ctx)
	if err != nil {
		return 0, err
	}
	return x.threads.GlobalChangeNumber(end, x.keys.PartitionCount()-1), nil
}

// alignChangeCounts raises all partitions to the greatest number and returns it.
func (x *Reader) alignChangeCounts(ctx context.Context) (uint64, error) {
	counts, err := x.readChangeCounts(ctx, x.keys.AllPartitions(), "")
	if err != nil {
		return 0, err
	}
	end := slices.Max(counts)
	behind := slices.DeleteFunc(x.keys.AllPartitions(), func(p int) bool { return counts[p] >= end })
	if len(behind) > 0 {
		_, err = x.readChangeCounts(ctx, behind, strconv.FormatUint(end, 10))
	}
	return end, err
}

func changeCountKeys(owner string) []string {
	return []string{layout.TenantKey(layout.KeyChangedInterrupts, owner), layout.KeyChangeCount, layout.KeyStoreMark}
}

func (x *Reader) readChangeCounts(ctx context.Context, partitions []int, raise string) ([]uint64, error) {
	replies, err := x.runner.RunOnPartitions(ctx, x.scripts.Changes, partitions, changeCountKeys(tenant.Default), "+inf", 0, raise, x.database.Mark)
	if err != nil {
		return nil, err
	}
	counts := make([]uint64, len(replies))
	for i, r := range replies {
		if counts[i], err = r.UintAt(0); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// readChangePage reads a page of the interrupts of some tenants in the order of their last
// change, up to the number end.
func (x *Reader) readChangePage(ctx context.Context, owners []string, from string, end uint64) (indexPage, error) {
	var after uint64
	if from != "" {
		var err error
		if after, err = strconv.ParseUint(from, 10, 64); err != nil {
			return indexPage{}, layout.CorruptError("%q is no place", from)
		}
	}
	start := strconv.FormatUint(after/uint64(x.keys.PartitionCount()), 10)
	replies, err := x.runner.RunInputs(ctx, x.scripts.Changes,
		x.tenantInputs(owners, changeCountKeys, start, pageSize, "", x.database.Mark))
	if err != nil {
		return indexPage{}, err
	}
	parts := make([][]indexEntry, len(replies))
	for p, r := range replies {
		partition := p % x.keys.PartitionCount()
		for i := 1; i+1 < len(r); i += 2 {
			n, err := r.UintAt(i + 1)
			if err != nil {
				return indexPage{}, err
			}
			thread, id, ok := layout.ParseMember(r.TextAt(i))
			e := indexEntry{thread: thread, id: id, change: x.threads.GlobalChangeNumber(n, partition)}
			e.position = changePosition(e.change)
			if n > end {
				break
			}
			if ok || len(r) > 2*pageSize { // a full page must stay full
				parts[p] = append(parts[p], e)
			}
		}
	}
	pg := mergePages(parts, pageSize)
	pg.entries = slices.DeleteFunc(pg.entries, func(e indexEntry) bool { return e.change <= after })
	return pg, nil
}

// largeQuestion is the size in bytes from which on an interrupt is read in an exchange of
// its own, so that a page of questions does not hold too much memory.
const largeQuestion = 32 << 10

// readInterrupts reads the interrupts of index entries until the portion is full. It
// leaves out interrupts that are gone, that can't be read, that do not match q, or that
// listed refuses: a corrupt record must not hide all others.
func (x *Reader) readInterrupts(
	ctx context.Context, q *checkpoint.InterruptQuery, list []indexEntry, portion *checkpoint.Portion,
	listed func(*checkpoint.Interrupt) bool,
) ([]checkpoint.Interrupt, error) {
	inputs := make([]script.Input, len(list))
	for i, e := range list {
		inputs[i].Keys = x.keys.ThreadKeys(e.thread, layout.KeyInterrupts)
		inputs[i].Args = []any{"r" + e.id, largeQuestion}
	}
	replies, err := x.runner.RunPerThread(ctx, x.scripts.Interrupt, inputs)
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Interrupt
	for i, r := range replies {
		if portion.Full() {
			break
		}
		record, err := x.completeRecord(ctx, inputs[i].Keys[0], list[i].id, r)
		if err != nil {
			return nil, err
		}
		if record == "" {
			continue
		}
		in, err := x.threads.DecodeInterrupt(list[i].thread, list[i].id, record)
		if err == nil && q.MatchesInterrupt(&in) && listed(&in) {
			portion.Take(in.Size())
			out = append(out, in)
		}
	}
	return out, nil
}

// completeRecord returns the record of an interrupt, "" when it is gone or can't be read.
// r has its size, and the record unless it is large.
func (x *Reader) completeRecord(ctx context.Context, key, id string, r script.Reply) (string, error) {
	if n, _ := r.IntAt(0); n < largeQuestion {
		return r.TextAt(1), nil
	}
	large, err := x.runner.ReadFields(ctx, key, "r"+id)
	if err = script.ToContractError(ctx, err); err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
		return "", err
	}
	return large.TextAt(0), nil
}
