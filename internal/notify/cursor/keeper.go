// Package cursor keeps how far an endpoint is, and which server sends to it, in the head of a
// thread that no client can name.
package cursor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/notify"
)

// Store is the part of a store that keeps places.
type Store interface {
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error)
	LatestChange(ctx context.Context) (uint64, error)
}

// Options make a Keeper.
type Options struct {
	Store    Store
	Endpoint string        // name
	Server   string        // name of this process, which no other one has
	Hold     time.Duration // how long a silent server keeps the place
	IsShared bool          // other processes may use the store
}

// Keeper keeps the place of one endpoint. One goroutine uses it at a time. Each change is made of
// the head that the one before has left: so a server that was silent for too long finds that
// another one has changed it.
type Keeper struct {
	opts Options
	head checkpoint.Head
	read time.Time // when the call began that has given head
}

// New makes a Keeper.
func New(opts Options) *Keeper { return &Keeper{opts: opts} }

// ThreadName returns the thread of an endpoint. Its tenant has a name that no tenant may have,
// so no client can address, list or count it.
func ThreadName(endpoint string) string { return "~webhooks@" + endpoint }

// Keys of the metadata.
const (
	keyServer = "server"
	keyUntil  = "until"
	keyChange = "change"
	keyWhole  = "whole"
	keyDead   = "dead"
)

// CreatePlace stores the place of an endpoint that is new: it begins with what happens from now
// on. Of an endpoint that has a place the call changes nothing.
func CreatePlace(ctx context.Context, store Store, endpoint string) error {
	head, err := store.Head(ctx, ThreadName(endpoint))
	if !errors.Is(err, checkpoint.ErrThreadNotFound) {
		return err
	}
	latest, err := store.LatestChange(ctx)
	if err != nil {
		return err
	}
	k := Keeper{opts: Options{Store: store, Endpoint: endpoint}, head: newHead(endpoint, head.Now), read: time.Now()}
	err = k.replaceHead(ctx, notify.Place{Change: latest, Whole: k.head.Now}, "")
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // another server has stored it
	}
	return err
}

// TakePlace holds the place, unless another server does. An endpoint without a place begins with
// what happens from now on. Errors: notify.ErrHeld, and those of the store.
func (k *Keeper) TakePlace(ctx context.Context) (notify.Place, error) {
	began := time.Now()
	head, err := k.opts.Store.Head(ctx, ThreadName(k.opts.Endpoint))
	isNew := errors.Is(err, checkpoint.ErrThreadNotFound)
	switch {
	case isNew:
		head = newHead(k.opts.Endpoint, head.Now)
	case err != nil:
		return notify.Place{}, err
	case k.isHeldByOther(&head):
		return notify.Place{}, notify.ErrHeld
	}
	latest, err := k.opts.Store.LatestChange(ctx)
	if err != nil {
		return notify.Place{}, err
	}
	p := notify.Place{Change: latest, Whole: head.Now}
	if !isNew {
		if p, err = readPlace(&head); err != nil {
			return p, err
		}
		// A store that has lost its newest changes gives their numbers again.
		p.Change = min(p.Change, latest)
	}
	k.head, k.read = head, began
	return p, k.put(ctx, p, k.opts.Server)
}

// newHead returns the head of a thread that is not there yet. now is the time of the store, zero =
// not known.
func newHead(endpoint string, now time.Time) checkpoint.Head {
	if now.IsZero() {
		now = time.Now()
	}
	return checkpoint.Head{Thread: ThreadName(endpoint), LogID: rand.Text(), State: checkpoint.ThreadIdle, Created: now, Now: now}
}

// isHeldByOther reports whether another server holds the place.
func (k *Keeper) isHeldByOther(head *checkpoint.Head) bool {
	holder := head.Metadata[keyServer]
	until, _ := time.Parse(time.RFC3339Nano, head.Metadata[keyUntil]) // zero has ended
	return k.opts.IsShared && holder != "" && holder != k.opts.Server && until.After(head.Now)
}

// SavePlace stores the place. Errors: notify.ErrHeld, and those of the store.
func (k *Keeper) SavePlace(ctx context.Context, p notify.Place) error {
	return k.put(ctx, p, k.opts.Server)
}

// ReleasePlace stores the place and frees it. Errors: those of SavePlace.
func (k *Keeper) ReleasePlace(ctx context.Context, p notify.Place) error { return k.put(ctx, p, "") }

// put replaces the head, unless another server has done so since.
func (k *Keeper) put(ctx context.Context, p notify.Place, server string) error {
	err := k.replaceHead(ctx, p, server)
	if !errors.Is(err, checkpoint.ErrConflict) {
		return err
	}
	// An earlier change of this server, whose answer was lost, is no other server. A head from
	// before is one: the store has lost its newest changes, and the place is beyond it.
	began := time.Now()
	head, err := k.opts.Store.Head(ctx, k.head.Thread)
	switch {
	case errors.Is(err, checkpoint.ErrThreadNotFound):
		return notify.ErrHeld
	case err != nil:
		return err
	case head.LogID != k.head.LogID, head.Metadata[keyServer] != k.opts.Server, head.Revision < k.head.Revision:
		return notify.ErrHeld
	}
	k.head, k.read = head, began
	if err = k.replaceHead(ctx, p, server); errors.Is(err, checkpoint.ErrConflict) {
		return notify.ErrHeld
	}
	return err
}

// replaceHead makes one change of the head. It counts the time by the clock of the store, and
// rather holds the place too long than not long enough.
func (k *Keeper) replaceHead(ctx context.Context, p notify.Place, server string) error {
	began := time.Now()
	now := k.head.Now.Add(began.Sub(k.read))
	next := k.head
	next.Metadata = map[string]string{
		keyServer: server, keyUntil: formatTime(now.Add(k.opts.Hold)),
		keyChange: strconv.FormatUint(p.Change, 10), keyWhole: formatTime(p.Whole), keyDead: strconv.FormatBool(p.IsDead),
	}
	next.Updated = now
	receipt, err := k.opts.Store.Apply(ctx, &checkpoint.Change{
		Thread: next.Thread, LogID: next.LogID, Expect: next.Revision, Head: next, Op: rand.Text(),
	})
	if err != nil {
		return err
	}
	k.head, k.read = next, began
	k.head.Revision, k.head.Now = receipt.Revision, receipt.Now
	return nil
}

func readPlace(head *checkpoint.Head) (p notify.Place, err error) {
	if p.Change, err = strconv.ParseUint(head.Metadata[keyChange], 10, 64); err != nil {
		return p, fmt.Errorf("%w: the place of the endpoint in thread %q is %q", checkpoint.ErrCorrupt, head.Thread, head.Metadata[keyChange])
	}
	p.Whole, _ = time.Parse(time.RFC3339Nano, head.Metadata[keyWhole]) // zero sends more again
	p.IsDead = head.Metadata[keyDead] == "true"
	return p, nil
}

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
