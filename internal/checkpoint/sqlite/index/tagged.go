package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/tags"
)

// taggedPageSize is the number of rows of tags in one read.
const taggedPageSize = 256

// taggedKey is a row of tags: the place of an interrupt in the order of a query.
type taggedKey struct {
	at         int64
	thread, id string
}

// listTagged lists open interrupts by their tags: rows of the rarest tag, and of those the
// records that match. Errors are those of Interrupts.
func (x *Index) listTagged(ctx context.Context, q *checkpoint.InterruptQuery) (out []checkpoint.Interrupt, err error) {
	chosen, others, err := q.ChooseTags(ctx, x)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		chosen = []string{tags.AnyDue}
	}
	after := firstKey(q)
	portion := checkpoint.Portion{Limit: q.Limit}
	size := taggedPageSize
	if q.Limit > 0 {
		size = min(size, max(q.Limit, 16))
	}
	for {
		keys, err := x.readKeys(ctx, q, chosen, others, after, size)
		if err != nil {
			return nil, err
		}
		err = x.readInterrupts(ctx, keys, func(k taggedKey, in *checkpoint.Interrupt) (more bool) {
			if !q.MatchesInterrupt(in) || *newKey(q.PositionOf(in)) != k {
				return true // one that has moved since its row was read comes at its new place
			}
			portion.Take(in.Size())
			out = append(out, *in)
			return !portion.Full()
		})
		if err != nil {
			return nil, err
		}
		if portion.Full() || len(keys) < size {
			return out, nil
		}
		after = &keys[len(keys)-1]
	}
}

// firstKey returns the place after which a list begins, nil = the start.
func firstKey(q *checkpoint.InterruptQuery) *taggedKey {
	if q.After == (checkpoint.InterruptPosition{}) {
		return nil
	}
	return newKey(q.After)
}

func newKey(p checkpoint.InterruptPosition) *taggedKey {
	return &taggedKey{layout.ToUnixNanos(p.Time()), p.Thread, p.ID}
}

func compareKeys(a, b taggedKey) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.thread, b.thread), strings.Compare(a.id, b.id))
}

// maxQueryTags is the number of stored tags in one statement: SQLite merges at most 500.
const maxQueryTags = 400

// readKeys reads rows of the chosen tags, in order and each interrupt once.
func (x *Index) readKeys(
	ctx context.Context, q *checkpoint.InterruptQuery, chosen []string, others [][]string, after *taggedKey, size int,
) (keys []taggedKey, err error) {
	for forms := range slices.Chunk(x.storedForms(chosen), maxQueryTags) {
		statement, args := x.buildTaggedQuery(q, forms, others, after, size)
		rows, err := x.db.QueryContext(ctx, statement, args...)
		if err != nil {
			return nil, layout.ToContractError(err)
		}
		some, err := layout.CollectRows(rows, func() (k taggedKey, err error) {
			err = rows.Scan(&k.at, &k.thread, &k.id)
			return k, err
		})
		if err != nil {
			return nil, layout.ToContractError(err)
		}
		keys = append(keys, some...)
	}
	slices.SortFunc(keys, compareKeys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), size)], nil
}

// readInterrupts reads the interrupts at some keys, in order, until take wants no more. It leaves
// out those that are gone or can't be read.
func (x *Index) readInterrupts(ctx context.Context, keys []taggedKey, take func(k taggedKey, in *checkpoint.Interrupt) (more bool)) error {
	names := make([][2]string, len(keys))
	for i, k := range keys {
		names[i] = [2]string{k.thread, k.id}
	}
	rows, err := x.interrupts.QueryContext(ctx, formatList(names))
	if err != nil {
		return layout.ToContractError(err)
	}
	for rows.Next() {
		in, err := layout.ScanInterrupt(x.box, rows)
		switch {
		case errors.Is(err, checkpoint.ErrCorrupt):
			continue
		case err != nil:
			return layout.ToContractError(errors.Join(err, rows.Close()))
		}
		at := slices.IndexFunc(keys, func(k taggedKey) bool { return k.thread == in.Thread && k.id == in.ID })
		if at < 0 {
			continue
		}
		k := keys[at]
		keys = keys[at+1:] // rows come in the order of the keys
		if !take(k, &in) {
			break
		}
	}
	return layout.ToContractError(errors.Join(rows.Err(), rows.Close()))
}

// storedForms returns all forms in which some tags may be stored.
func (x *Index) storedForms(list []string) (forms []string) {
	for _, tag := range list {
		if tag == tags.AnyDue {
			forms = append(forms, tag)
			continue
		}
		forms = append(forms, x.box.TagForms(tag)...)
	}
	return forms
}

// buildTaggedQuery returns the statement that reads rows of stored tags, in order and each
// interrupt once. SQLite merges the parts, which its indexes have in order.
func (x *Index) buildTaggedQuery(
	q *checkpoint.InterruptQuery, chosenForms []string, others [][]string, after *taggedKey, size int,
) (statement string, args []any) {
	column := "created"
	if q.ByDue {
		column = "due"
	}
	var parts []string
	for _, form := range chosenForms {
		var f queryBuilder
		f.addEqual("t.tenant", q.Tenant)
		f.addCondition("t.tag = ?", form)
		if q.ByDue {
			f.addCondition("t.due IS NOT NULL")
			if !q.DueBefore.IsZero() {
				f.addCondition("t.due < ?", layout.ToUnixNanos(q.DueBefore))
			}
		}
		if after != nil {
			f.addCondition("(t."+column+", t.thread, t.id) > (?, ?, ?)", after.at, after.thread, after.id)
		}
		for _, one := range others {
			f.addCondition(`EXISTS (SELECT 1 FROM interrupt_tags AS o WHERE o.tenant = t.tenant AND o.tag IN (SELECT value FROM json_each(?))
				AND o.created = t.created AND o.thread = t.thread AND o.id = t.id)`, formatList(x.storedForms(one)))
		}
		parts = append(parts, "SELECT t."+column+" AS at, t.thread, t.id FROM interrupt_tags AS t WHERE "+strings.Join(f.conditions, " AND "))
		args = append(args, f.args...)
	}
	return strings.Join(parts, " UNION ") + " ORDER BY 1, 2, 3 LIMIT ?", append(args, size)
}

// formatList returns texts, or lists of them, as one argument.
func formatList[T string | [2]string](texts []T) string {
	list, err := json.Marshal(texts)
	if err != nil {
		return "[]" // can't be: they are texts
	}
	return string(list)
}

// CountTags returns how many open interrupts of a tenant have each of some tags. Errors wrap
// ErrUnavailable, or ErrCorrupt for a damaged file.
func (x *Index) CountTags(ctx context.Context, owner string, list []string) ([]int, error) {
	counts := make([]int, len(list))
	for i, tag := range list {
		forms := []string{tag}
		if tag != checkpoint.OpenTag {
			forms = x.box.TagForms(tag)
		}
		for _, form := range forms {
			var n int
			err := x.tagCount.QueryRowContext(ctx, owner, form).Scan(&n)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, layout.ToContractError(err)
			}
			counts[i] += n
		}
	}
	return counts, nil
}
