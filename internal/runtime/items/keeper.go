// Package items keeps items: values under namespaces and keys, which outlive threads.
//
// An item is a thread that no client can name. Its only checkpoint has the value, and its labels
// have the prefixes of the namespace, so that the indexes of threads find items.
package items

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// Counts counts the threads of tenants, for all servers.
type Counts interface {
	// AddThread takes one of the threads that a tenant may have. done is called once, with whether
	// the thread was made. Errors: QUOTA_EXCEEDED, and those of the store.
	AddThread(ctx context.Context, thread string) (done func(isMade bool), err error)
	// NoteRemoved notes that a thread was removed.
	NoteRemoved(thread string)
}

// Options are the collaborators and limits of a Keeper.
type Options struct {
	Store     *commit.StoreClient
	Committer *commit.Committer
	Counts    Counts
	Limit     int // items of a tenant, as Counts knows it
	Searched  int // items that one search looks at
	// ReserveMemory reserves bytes for what is found, in the memory of a call. It waits for other
	// calls. The error is the cause of ctx.
	ReserveMemory func(ctx context.Context, memory *runtime.CallMemory, bytes int) error
}

// Keeper keeps items.
type Keeper struct{ opts Options }

// New makes a Keeper.
func New(opts Options) *Keeper { return &Keeper{opts: opts} }

// checkpointReader reads checkpoints, from the store or from what was read with a head.
type checkpointReader interface {
	Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error)
}

// PutItem puts an item, in place of the one with its namespace and key, and returns it with its
// times. The errors are *Error: TOO_MANY_ITEMS, and those of the store.
func (k *Keeper) PutItem(ctx context.Context, item runtime.Item) (runtime.Item, error) {
	if err := k.opts.Store.SyncClock(ctx); err != nil {
		return item, runtime.TranslateStoreError(err)
	}
	thread := threadName(item.Tenant, item.Namespace, item.Key)
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Item, error) {
		found, err := k.opts.Store.Head(ctx, thread)
		switch {
		case errors.Is(err, checkpoint.ErrThreadNotFound):
			return k.createItem(ctx, thread, item)
		case err != nil:
			return item, runtime.TranslateStoreError(err)
		case isExpired(&found):
			if err := k.removeThread(ctx, found); err != nil {
				return item, err
			}
			return k.createItem(ctx, thread, item)
		}
		*head = found
		return k.changeItem(ctx, found, item)
	})
}

// createItem makes the thread of an item. Errors: those of PutItem, and ErrConflict when another call
// has made it meanwhile.
func (k *Keeper) createItem(ctx context.Context, thread string, item runtime.Item) (runtime.Item, error) {
	done, err := k.opts.Counts.AddThread(ctx, thread)
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonQuotaExceeded}) {
		if _, err := k.opts.Store.Head(ctx, thread); err == nil { // another call has made it, and counts
			return item, checkpoint.ErrConflict
		}
		return item, k.newTooManyError()
	}
	if err != nil {
		return item, err
	}
	made, err := k.changeItem(ctx, checkpoint.Head{
		Thread: thread, LogID: uuid.NewString()[:8], State: checkpoint.ThreadIdle, Keep: checkpoint.KeepAll,
	}, item)
	done(err == nil)
	return made, err
}

func (k *Keeper) newTooManyError() error {
	return runtime.Errorf(runtime.ReasonTooManyItems, "there are %d items, as many as the server keeps (--items); delete some, or put items with a ttl", k.opts.Limit).
		WithLimit("items", int64(k.opts.Limit), int64(k.opts.Limit)+1)
}

func (k *Keeper) changeItem(ctx context.Context, head checkpoint.Head, item runtime.Item) (runtime.Item, error) {
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		putValue(t, &item)
		return nil
	})
	return item, err
}

// isExpired reports whether the time of an item is over. The item is removed some time later.
func isExpired(head *checkpoint.Head) bool {
	at := commit.ExpiryTime(head)
	return !at.IsZero() && !at.After(head.Now)
}

// GetItem returns an item. With refresh it lives for its TTL from now on. The errors are *Error:
// ITEM_NOT_FOUND, and those of the store.
func (k *Keeper) GetItem(ctx context.Context, owner string, namespace []string, key string, refresh bool) (runtime.Item, error) {
	item, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Item, error) {
		view, err := k.opts.Store.ViewThread(ctx, threadName(owner, namespace, key), "", head)
		if errors.Is(err, checkpoint.ErrThreadNotFound) || err == nil && isExpired(head) {
			return runtime.Item{}, newNotFoundError(namespace, key)
		}
		if err != nil {
			return runtime.Item{}, runtime.TranslateStoreError(err)
		}
		var reader checkpointReader = k.opts.Store
		if view != nil {
			reader = view
		}
		item, err := readItem(ctx, reader, head)
		if err == nil && refresh {
			k.refreshItem(ctx, head, &item)
		}
		return item, runtime.TranslateStoreError(err)
	})
	return item, err
}

func newNotFoundError(namespace []string, key string) error {
	return runtime.Errorf(runtime.ReasonItemNotFound, "there is no item %.200q in the namespace %.200q", key, strings.Join(namespace, ".")).With("key", key)
}

// refreshDivisor is the part of a TTL that has to have passed before a read changes when an item
// expires: an item that is read often is changed seldom.
const refreshDivisor = 16

// refreshItem lets an item that was read live for its TTL from now on. When the change fails, the
// item was read all the same, and expires when it would have.
func (k *Keeper) refreshItem(ctx context.Context, head *checkpoint.Head, item *runtime.Item) {
	if left := item.Expires.Sub(head.Now); item.TTL <= 0 || left > item.TTL-item.TTL/refreshDivisor {
		return
	}
	refreshed := *item
	_, err := k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		setExpiry(t, &refreshed)
		return nil
	})
	if err == nil {
		item.Expires = refreshed.Expires
	}
}

// DeleteItem deletes an item, if there is one. Errors: those of the store.
func (k *Keeper) DeleteItem(ctx context.Context, owner string, namespace []string, key string) error {
	thread := threadName(owner, namespace, key)
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (none struct{}, err error) {
		*head, err = k.opts.Store.Head(ctx, thread)
		switch {
		case errors.Is(err, checkpoint.ErrThreadNotFound):
			return none, nil
		case err != nil:
			return none, runtime.TranslateStoreError(err)
		}
		return none, k.removeThread(ctx, *head)
	})
	return err
}

// removeThread removes the thread of an item. Errors: ErrConflict, and those of the store.
func (k *Keeper) removeThread(ctx context.Context, head checkpoint.Head) error {
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Delete = true
		return nil
	})
	if err == nil {
		k.opts.Counts.NoteRemoved(head.Thread)
	}
	return err
}

// TenantLimit is the number of items that each tenant may have, for what counts them.
type TenantLimit int

// FindTenantLimit returns the limit of threads of any tenant: those of items are counted alone.
func (l TenantLimit) FindTenantLimit(_ string, of runtime.Holding) int64 {
	if of != runtime.HoldingThreads {
		return runtime.NoTenantLimit
	}
	return int64(l)
}
