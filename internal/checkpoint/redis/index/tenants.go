package index

import (
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Bounds of lists over all tenants.
const (
	tenantsPerExchange = 64
	// maxPageEntries is how many entries of all tenants a page keeps.
	maxPageEntries = 4096
)

// tenantInputs returns the inputs of a script that runs once for each tenant and partition, by
// tenant. names are the names of its keys in a partition.
func (x *Reader) tenantInputs(owners []string, names func(owner string) []string, args ...any) []script.Input {
	list := make([]script.Input, 0, len(owners)*x.keys.PartitionCount())
	for _, owner := range owners {
		names := names(owner)
		for _, p := range x.keys.AllPartitions() {
			in := script.Input{Keys: make([]string, len(names)), Args: args}
			for i, name := range names {
				in.Keys[i] = x.keys.PartitionKey(p, name)
			}
			list = append(list, in)
		}
	}
	return list
}

// readTenants reads a page of an index of one tenant, or for "" of all tenants: it reads
// some at a time, and keeps the first entries of them.
func (x *Reader) readTenants(
	ctx context.Context, owner string, size int, read func(owners []string) (indexPage, error),
) (indexPage, error) {
	if owner != "" {
		return read([]string{owner})
	}
	page, err := read([]string{tenant.Default})
	for after, more := "", true; more && err == nil; {
		var owners []string
		if owners, more, err = x.listTenants(ctx, after); err != nil || len(owners) == 0 {
			break
		}
		var next indexPage
		next, err = read(owners)
		page = joinPages([]indexPage{page, next}, max(size, maxPageEntries))
		after = owners[len(owners)-1]
	}
	return page, err
}

// listTenants lists the next tenants after one besides tenant.Default, in order, and reports
// whether there may be more.
func (x *Reader) listTenants(ctx context.Context, after string) (owners []string, more bool, err error) {
	begin := "-"
	if after != "" {
		begin = "(" + after
	}
	replies, err := x.runner.RunOnPartitions(ctx, x.scripts.Members, x.keys.AllPartitions(),
		[]string{layout.KeyTenants}, begin, tenantsPerExchange)
	if err != nil {
		return nil, false, err
	}
	parts := make([][]indexEntry, len(replies))
	for p, r := range replies {
		list := r.ListAt(1)
		for i := range list {
			parts[p] = append(parts[p], indexEntry{position: list.TextAt(i)})
		}
	}
	page := mergePages(parts, tenantsPerExchange)
	for _, e := range page.entries {
		owners = append(owners, e.position)
	}
	return slices.Compact(owners), page.until != "", nil
}

// joinPages joins pages of partitions, or of tenants, that begin at the same place. It keeps at most
// so many entries, those that come first.
func joinPages(pages []indexPage, most int) (joined indexPage) {
	count := 0
	for _, p := range pages {
		count += len(p.entries)
		if joined.until == "" || p.until != "" && p.until < joined.until {
			joined.until = p.until
		}
	}
	joined.entries = make([]indexEntry, 0, count)
	for _, p := range pages {
		for _, e := range p.entries {
			if joined.until == "" || e.position <= joined.until {
				joined.entries = append(joined.entries, e)
			}
		}
	}
	slices.SortFunc(joined.entries, func(a, b indexEntry) int { return strings.Compare(a.position, b.position) })
	if len(joined.entries) > most {
		joined.until = joined.entries[most-1].position
		joined.entries = slices.DeleteFunc(joined.entries, func(e indexEntry) bool { return e.position > joined.until })
	}
	return joined
}
