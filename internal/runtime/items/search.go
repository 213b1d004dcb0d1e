package items

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Bounds of what a search holds at a time.
const (
	headsAtOnce  = 256
	valuesAtOnce = 16 // read at the same time
	// A search that finds more than this reserves memory for as much as it may find: values that
	// were found are held until the answer is sent.
	unreservedBytes = 256 << 10
)

// SearchItems finds items, the newest first. The errors are *Error: INVALID_FIELD for the filter,
// ITEM_SEARCH_TOO_BROAD, PAYLOAD_TOO_LARGE, and those of the store.
func (k *Keeper) SearchItems(ctx context.Context, q runtime.ItemQuery) ([]runtime.Item, error) {
	wanted, err := parseFilter(q.Filter)
	if err != nil {
		return nil, err
	}
	s := &search{keeper: k, query: &q, filter: wanted, skip: q.Offset}
	threads := newThreadQuery(q.Tenant, q.Prefix)
	if wanted.isEmpty() {
		threads.Limit = min(q.Limit, headsAtOnce)
	}
	if wanted.isEmpty() && q.Offset > 0 { // an index passes over what is not shown
		s.skip = 0
		if threads.Before, err = k.opts.Store.SkipThreads(ctx, threads, q.Offset); err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
		if threads.Before == (checkpoint.ThreadPosition{}) {
			return nil, nil
		}
	}
	if err := k.visitHeads(ctx, threads, s.visitHeads); err != nil {
		return nil, err
	}
	return s.found, nil
}

// newThreadQuery returns the query of the threads of the items below a prefix. They come in the order
// of their creation.
func newThreadQuery(owner string, prefix []string) checkpoint.ThreadQuery {
	q := checkpoint.ThreadQuery{Tenant: hiddenTenant(owner), State: checkpoint.ThreadIdle}
	if len(prefix) > 0 {
		key, value := prefixCondition(prefix)
		q.State, q.Metadata = "", map[string]string{key: value}
	}
	return q
}

// visitHeads calls visit with the heads of items in portions of the limit of the query, until it wants
// no more. Errors: those of visit, ITEM_SEARCH_TOO_BROAD, and those of the store.
func (k *Keeper) visitHeads(ctx context.Context, q checkpoint.ThreadQuery, visit func(ctx context.Context, heads []checkpoint.Head) (more bool, err error)) error {
	portion := cmp.Or(q.Limit, headsAtOnce)
	for looked := 0; ; {
		q.Limit = min(portion, k.opts.Searched-looked+1)
		heads, err := k.opts.Store.Threads(ctx, q)
		if err != nil || len(heads) == 0 {
			return runtime.TranslateStoreError(err)
		}
		isLast := !checkpoint.IsPart(heads, q.Limit, (*checkpoint.Head).Size)
		q.Before = q.PositionOf(&heads[len(heads)-1])
		within := heads[:min(len(heads), k.opts.Searched-looked)]
		isTooBroad := len(within) < len(heads)
		looked += len(within)
		more, err := visit(ctx, slices.DeleteFunc(within, func(h checkpoint.Head) bool { return isExpired(&h) }))
		switch {
		case err != nil, !more:
			return err
		case isTooBroad:
			return k.newTooBroadError()
		case isLast:
			return nil
		}
	}
}

func (k *Keeper) newTooBroadError() error {
	return runtime.Errorf(runtime.ReasonItemSearchTooBroad,
		"the search looked at %d items, as many as one may (--items-searched), and has not found all that it wants; give a longer prefix of the namespace, or a smaller limit",
		k.opts.Searched).WithLimit("items-searched", int64(k.opts.Searched), 0)
}

// search is a search for items under way.
type search struct {
	keeper *Keeper
	query  *runtime.ItemQuery
	filter filter
	skip   int // items that match and are not shown
	found  []runtime.Item
	held   int // bytes of found
	// isReserved says that there is memory for all that may be found.
	isReserved bool
}

// visitHeads takes the items of some heads that are wanted. Errors: PAYLOAD_TOO_LARGE, those of
// the store, and the cause of ctx.
func (s *search) visitHeads(ctx context.Context, heads []checkpoint.Head) (more bool, err error) {
	for len(heads) > 0 && !s.isFull() {
		n := min(len(heads), valuesAtOnce)
		if s.filter.isEmpty() {
			n = min(n, s.query.Limit-len(s.found))
		}
		read, err := s.keeper.readItems(ctx, heads[:n])
		if err != nil {
			return false, err
		}
		for i := range read {
			if ctx.Err() != nil { // a filter takes its time with large values
				return false, context.Cause(ctx)
			}
			if err := s.takeItem(ctx, &heads[i], read[i]); err != nil {
				return false, err
			}
		}
		heads = heads[n:]
	}
	return !s.isFull(), nil
}

func (s *search) isFull() bool { return len(s.found) >= s.query.Limit }

// takeItem takes an item that is wanted, nil = it was deleted meanwhile.
func (s *search) takeItem(ctx context.Context, head *checkpoint.Head, item *runtime.Item) error {
	switch {
	case item == nil, s.isFull(), !s.filter.matches(item.Value):
		return nil
	case s.skip > 0:
		s.skip--
		return nil
	}
	if s.held += item.Size(); s.held > s.query.MaxBytes {
		return runtime.Errorf(runtime.ReasonPayloadTooLarge, "the items that were found have more than %d bytes together; ask for fewer with limit", s.query.MaxBytes).
			WithLimit("max-message", int64(s.query.MaxBytes), int64(s.held))
	}
	if s.held > unreservedBytes && !s.isReserved {
		if err := s.keeper.opts.ReserveMemory(ctx, s.query.Memory, s.query.MaxBytes); err != nil {
			return err
		}
		s.isReserved = true
	}
	if s.query.Refresh {
		s.keeper.refreshItem(ctx, head, item)
	}
	s.found = append(s.found, *item)
	return nil
}

// readItems reads the items of some heads at the same time, nil = it was deleted meanwhile. Errors:
// those of the store.
func (k *Keeper) readItems(ctx context.Context, heads []checkpoint.Head) ([]*runtime.Item, error) {
	read, failures := make([]*runtime.Item, len(heads)), make([]error, len(heads))
	var all sync.WaitGroup
	for i := range heads {
		all.Add(1)
		go contain.Func(func() {
			read[i], failures[i] = k.readListed(ctx, &heads[i])
			all.Done()
		}, func(p *contain.PanicError) {
			failures[i] = p
			all.Done()
		})()
	}
	all.Wait()
	return read, errors.Join(failures...)
}

// readListed reads an item whose head was listed, nil = it was deleted meanwhile. Errors: those of the
// store.
func (k *Keeper) readListed(ctx context.Context, listed *checkpoint.Head) (*runtime.Item, error) {
	for head := *listed; ; {
		item, err := readItem(ctx, k.opts.Store, &head)
		if err == nil {
			return &item, nil
		}
		if !k.opts.Committer.IsOutdated(ctx, &head, err) {
			return nil, runtime.TranslateStoreError(err)
		}
		if head, err = k.opts.Store.Head(ctx, listed.Thread); errors.Is(err, checkpoint.ErrThreadNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, runtime.TranslateStoreError(err)
		}
	}
}
