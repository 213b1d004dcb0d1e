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
		page.addPage(next, max(size, maxPageEntries))
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

// addPage adds a page of other tenants from the same place on. It keeps at most that many
// entries, those that come first.
func (p *indexPage) addPage(other indexPage, most int) {
	p.entries = append(p.entries, other.entries...)
	slices.SortFunc(p.entries, func(a, b indexEntry) int { return strings.Compare(a.position, b.position) })
	if p.until == "" || other.until != "" && other.until < p.until {
		p.until = other.until
	}
	if len(p.entries) > most {
		if last := p.entries[most-1].position; p.until == "" || last < p.until {
			p.until = last
		}
	}
	if p.until != "" {
		p.entries = slices.DeleteFunc(p.entries, func(e indexEntry) bool { return e.position > p.until })
	}
}
