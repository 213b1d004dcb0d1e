package index

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// taggedList is a list of open interrupts, or of threads, by their tags.
type taggedList struct {
	key    string     // of the list of tags
	order  string     // of the members, "" = there is one
	before time.Time  // of members by due time
	chosen []string   // stored tags whose members are read
	others [][]string // stored tags that are looked up for each of them: one of each list
}

// listTagged lists open interrupts by their tags: members of the rarest tag that have the
// others, and the records of those.
func (x *Reader) listTagged(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	l, err := x.newTaggedList(ctx, q)
	if err != nil {
		return nil, err
	}
	from := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		from = layout.InterruptPosition(q.After.Time(), q.After.Thread, q.After.ID) + "\x00\xff"
	}
	sizes := x.sizeTaggedReads(l, q.Limit, q.Run != "" || q.Node != "" || q.Reason != "")
	return walkIndex(q.Limit, from, func(from string) (indexPage, error) {
		ask := sizes.takeSize()
		return x.readTenants(ctx, q.Tenant, ask, func(owners []string) (indexPage, error) {
			return x.readTagged(ctx, l, owners, from, ask)
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return x.readInterrupts(ctx, q, list, portion, func(in *checkpoint.Interrupt) bool {
			// One that has moved since the index was read comes at its new place.
			_, isListed := slices.BinarySearchFunc(list, layout.MemberAt(q.PositionOf(in)), func(e indexEntry, place string) int {
				return strings.Compare(e.position, place)
			})
			return isListed
		})
	})
}

// sizeTaggedReads returns the sizes of the reads of a list. isSelected says that not all of its
// entries are wanted.
func (x *Reader) sizeTaggedReads(l *taggedList, limit int, isSelected bool) readSizes {
	most := min(pageSize, max(16, maxLookups/max(1, countLookups(l.others))))
	return x.sizeReads(limit, most, isSelected || len(l.others) > 0)
}

// maxLookups bounds how many tags a script looks up for a page of one partition.
const maxLookups = 1 << 14

func countLookups(others [][]string) (n int) {
	for _, forms := range others {
		n += len(forms)
	}
	return n
}

// newTaggedList chooses which tags of a query are read, and which are looked up.
func (x *Reader) newTaggedList(ctx context.Context, q *checkpoint.InterruptQuery) (*taggedList, error) {
	rarest, others, err := q.ChooseTags(ctx, x)
	if err != nil {
		return nil, err
	}
	l := &taggedList{key: layout.KeyTags, order: layout.TagByCreated, before: q.DueBefore, chosen: x.storedForms(rarest)}
	if q.ByDue {
		l.order = layout.TagByDue
	}
	if len(rarest) == 0 {
		l.chosen = []string{layout.AnyDue}
	}
	for _, tags := range others {
		l.others = append(l.others, x.storedForms(tags))
	}
	return l, nil
}

// storedForms returns all forms in which some tags may be stored.
func (x *Reader) storedForms(tags []string) (forms []string) {
	for _, tag := range tags {
		forms = append(forms, x.database.Box.TagForms(tag)...)
	}
	return forms
}

// readTagged reads a page of a list: each interrupt or thread once.
func (x *Reader) readTagged(
	ctx context.Context, l *taggedList, owners []string, from string, size int,
) (indexPage, error) {
	args := []any{l.order, size, len(l.chosen)}
	for _, form := range l.chosen {
		r := layout.NewTagRange(l.order, form, from, l.before)
		args = append(args, r.Begin, r.End)
	}
	args = append(args, len(l.others))
	for _, forms := range l.others {
		args = append(args, len(forms))
		for _, form := range forms {
			args = append(args, form)
		}
	}
	replies, err := x.runner.RunInputs(ctx, x.scripts.Tagged, x.tenantInputs(owners, func(owner string) []string {
		return []string{layout.TenantKey(l.key, owner)}
	}, args...))
	if err != nil {
		return indexPage{}, err
	}
	parts := make([]indexPage, len(replies))
	for i, r := range replies {
		parts[i].until = r.TextAt(0)
		for k := 1; k < len(r); k++ {
			position := r.TextAt(k)
			if thread, id, ok := layout.ParseMember(position); ok {
				parts[i].entries = append(parts[i].entries, indexEntry{position: position, thread: thread, id: id})
			}
		}
	}
	return joinPages(parts, maxPageEntries), nil
}
