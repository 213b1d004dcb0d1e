// Package index lists threads, interrupts and due threads over all partitions.
package index

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/threads"
)

// Reader reads indexes over all threads: it reads every partition and merges the
// replies.
type Reader struct {
	database *setup.Database
	threads  *threads.Reader
	scripts  *script.Set
	runner   *script.Runner
	keys     *layout.Keys
}

// NewReader makes the reader of the indexes of a store. records reads the records that
// the indexes name.
func NewReader(d *setup.Database, records *threads.Reader) *Reader {
	return &Reader{database: d, threads: records, scripts: d.Scripts, runner: d.Runner, keys: &d.Keys}
}

// indexEntry is a member of an index with its place in the order of all partitions.
type indexEntry struct {
	position   string
	thread, id string
	change     uint64 // of an interrupt, when listed by change
}

// indexPage is a page of an index over all partitions, in order. It is complete up to a
// position: a partition may have further entries behind it.
type indexPage struct {
	entries []indexEntry
	until   string // "" = everything
}

// mergePages merges pages of partitions in order, up to where all of them are complete.
func mergePages(parts [][]indexEntry, size int) indexPage {
	var p indexPage
	for _, part := range parts {
		if len(part) >= size {
			if last := part[len(part)-1].position; p.until == "" || last < p.until {
				p.until = last
			}
		}
		p.entries = append(p.entries, part...)
	}
	if p.until != "" {
		p.entries = slices.DeleteFunc(p.entries, func(e indexEntry) bool { return e.position > p.until })
	}
	slices.SortFunc(p.entries, func(a, b indexEntry) int { return strings.Compare(a.position, b.position) })
	return p
}

// pageSize is the number of members in a read of a partition, at most.
const pageSize = 256

// readSizes are the numbers of members that the reads of a list take from each partition.
type readSizes struct{ next, most int }

// takeSize returns the size of the next read. Reads grow, since a page that the first does not
// fill finds little of what it looks at.
func (s *readSizes) takeSize() int {
	size := s.next
	s.next = min(s.most, 4*size)
	return size
}

// sizeReads returns the sizes for a page of limit entries, 0 = all. isSelected says that a read may
// find less than it looks at.
func (x *Reader) sizeReads(limit, most int, isSelected bool) readSizes {
	if limit <= 0 {
		return readSizes{most, most}
	}
	share := x.shareOfPage(limit)
	if isSelected {
		return readSizes{min(most, 4*share), most}
	}
	most = min(most, limit)
	return readSizes{min(most, share), most}
}

// shareOfPage returns how many entries of each partition nearly always suffice for a page. The
// entries are spread over the partitions by chance: their share, and four deviations. Where
// they are not, the reads after the first take more.
func (x *Reader) shareOfPage(limit int) int {
	share := float64(limit) / float64(x.keys.PartitionCount())
	return int(math.Ceil(share + 4*math.Sqrt(share)))
}

// walkIndex reads an index from a place on until enough was found. read counts the
// records that it finds, and ends where the portion does.
func walkIndex[T any](
	limit int, from string, next func(from string) (indexPage, error), read func([]indexEntry, *checkpoint.Portion) ([]T, error),
) (out []T, err error) {
	portion := &checkpoint.Portion{Limit: limit}
	size := pageSize
	if limit > 0 {
		size = min(size, max(limit, 16))
	}
	for {
		p, err := next(from)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(p.entries, size) {
			found, err := read(chunk, portion)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			if portion.Full() {
				return out, nil
			}
		}
		if p.until == "" {
			return out, nil
		}
		from = p.until
	}
}

// ListDue lists due threads, longest due first, and returns the time when the next thread
// is due (zero = none known).
func (x *Reader) ListDue(ctx context.Context, limit int) (due []string, next time.Time, err error) {
	ask := -1
	if limit > 0 {
		ask = limit + 1
	}
	parts, err := x.runner.RunOnPartitions(ctx, x.scripts.Due, x.keys.AllPartitions(), []string{layout.KeyDue}, ask)
	if err != nil {
		return nil, time.Time{}, err
	}
	due, next = mergeDue(parts, limit)
	return due, next, nil
}

// mergeDue merges the lists of due threads of the partitions.
func mergeDue(parts []script.Reply, limit int) (due []string, next time.Time) {
	var passed, coming []string
	for _, r := range parts {
		members := r.ListAt(0)
		for i := range members {
			passed = append(passed, members.TextAt(i))
		}
		if next := r.TextAt(1); next != "" {
			coming = append(coming, next)
		}
	}
	slices.Sort(passed)
	if limit > 0 && len(passed) > limit {
		passed, coming = passed[:limit], passed[limit:limit+1]
	}
	for _, m := range passed {
		_, thread, ok := layout.ParseDueMember(m)
		if !ok {
			continue // reading the thread by name returns the error
		}
		due = append(due, thread)
	}
	if len(coming) > 0 {
		next, _, _ = layout.ParseDueMember(slices.Min(coming))
	}
	return due, next
}

// readMembers reads a page of an index that consists of some keys per tenant and partition.
func (x *Reader) readMembers(
	ctx context.Context, owners, keys []string, from string, size int, parse func(member string) (indexEntry, bool),
) (indexPage, error) {
	begin := "-"
	if from != "" {
		begin = "(" + from
	}
	replies, err := x.runner.RunInputs(ctx, x.scripts.Members, x.tenantInputs(owners, func(owner string) (names []string) {
		for _, key := range keys {
			names = append(names, layout.TenantKey(key, owner))
		}
		return names
	}, begin, size))
	if err != nil {
		return indexPage{}, err
	}
	var parts [][]indexEntry
	skip := map[string]bool{}
	for _, r := range replies {
		for k := range keys {
			var part []indexEntry
			list := r.ListAt(k + 1)
			for i := range list {
				e, ok := parse(list.TextAt(i))
				e.position = list.TextAt(i)
				skip[e.position] = !ok
				part = append(part, e)
			}
			parts = append(parts, part)
		}
	}
	p := mergePages(parts, size)
	p.entries = slices.DeleteFunc(p.entries, func(e indexEntry) bool { return skip[e.position] })
	return p, nil
}

// changePosition returns the position of a change in the order of changes.
func changePosition(change uint64) string { return fmt.Sprintf("%020d", change) }
