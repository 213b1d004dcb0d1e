package index

import (
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// taggedList is a list of open interrupts by their tags.
type taggedList struct {
	query  *checkpoint.InterruptQuery
	order  string     // of the members
	chosen []string   // stored tags whose members are read
	others [][]string // stored tags that are looked up for each of them: one of each list
}

// listTagged lists open interrupts by their tags: members of the rarest tag that have the
// others, and the records of those.
func (x *Reader) listTagged(ctx context.Context, q *checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	l := &taggedList{query: q, order: layout.TagByCreated}
	at := q.After.Created
	if q.ByDue {
		l.order, at = layout.TagByDue, q.After.Due
	}
	if err := x.chooseTags(ctx, l); err != nil {
		return nil, err
	}
	from := ""
	if q.After != (checkpoint.InterruptPosition{}) {
		from = layout.InterruptPosition(at, q.After.Thread, q.After.ID) + "\x00\xff"
	}
	size := pageSize
	if q.Limit > 0 && q.Run == "" && q.Node == "" && q.Reason == "" {
		size = min(size, q.Limit)
	}
	return walkIndex(q.Limit, from, func(from string) (indexPage, error) {
		return x.readTenants(ctx, q.Tenant, size, func(owners []string) (indexPage, error) {
			return x.readTagged(ctx, l, owners, from, size)
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]checkpoint.Interrupt, error) {
		return x.readInterrupts(ctx, q, list, portion, func(*checkpoint.Interrupt) bool { return true })
	})
}

// chooseTags decides which tags of the query are read, and which are looked up.
func (x *Reader) chooseTags(ctx context.Context, l *taggedList) error {
	q := l.query
	switch {
	case len(q.Tags) > 0:
		rarest := 0
		if len(q.Tags) > 1 {
			counts, err := x.CountTags(ctx, q.Tenant, q.Tags)
			if err != nil {
				return err
			}
			rarest = slices.Index(counts, slices.Min(counts))
		}
		for i, tag := range q.Tags {
			if forms := x.database.Box.TagForms(tag); i == rarest {
				l.chosen = forms
			} else {
				l.others = append(l.others, forms)
			}
		}
		if len(q.AnyTag) > 0 {
			l.others = append(l.others, x.storedForms(q.AnyTag))
		}
	case len(q.AnyTag) > 0:
		l.chosen = x.storedForms(q.AnyTag)
	default:
		l.chosen = []string{layout.AnyDue}
	}
	return nil
}

// storedForms returns all forms in which some tags may be stored.
func (x *Reader) storedForms(tags []string) (forms []string) {
	for _, tag := range tags {
		forms = append(forms, x.database.Box.TagForms(tag)...)
	}
	return forms
}

// readTagged reads a page of a list: each interrupt once.
func (x *Reader) readTagged(
	ctx context.Context, l *taggedList, owners []string, from string, size int,
) (indexPage, error) {
	args := []any{l.order, size, len(l.chosen)}
	for _, form := range l.chosen {
		r := layout.NewTagRange(l.order, form, from, l.query.DueBefore)
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
		return []string{layout.TenantKey(layout.KeyTags, owner)}
	}, args...))
	if err != nil {
		return indexPage{}, err
	}
	var page indexPage
	for _, r := range replies {
		for i := range r {
			page.addTagged(r.ListAt(i), size)
		}
	}
	if page.until != "" {
		page.entries = slices.DeleteFunc(page.entries, func(e indexEntry) bool { return e.position > page.until })
	}
	slices.SortFunc(page.entries, func(a, b indexEntry) int { return strings.Compare(a.position, b.position) })
	page.entries = slices.CompactFunc(page.entries, func(a, b indexEntry) bool { return a.position == b.position })
	return page, nil
}

// addTagged adds the reply of one range to a page.
func (p *indexPage) addTagged(r script.Reply, size int) {
	if n, _ := r.IntAt(0); n >= int64(size) {
		if last := r.TextAt(1); p.until == "" || last < p.until {
			p.until = last
		}
	}
	places := r.ListAt(2)
	for i := range places {
		position := places.TextAt(i)
		if thread, id, ok := layout.ParseMember(position); ok {
			p.entries = append(p.entries, indexEntry{position: position, thread: thread, id: id})
		}
	}
}
