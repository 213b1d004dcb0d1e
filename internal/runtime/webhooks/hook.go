// Package webhooks keeps the addresses that are told when a run stops, and sends to each of them
// at least once, over any crash.
//
// A webhook is a thread that no client can name. It is due when the run may have stopped, and when
// an attempt to send is to be repeated, so every server that shares the store attends to it.
package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// prefix begins the tenants of webhooks. No tenant may have such a name.
const prefix = "~run-webhooks:"

// hiddenTenant is the tenant of the webhooks of a tenant.
func hiddenTenant(owner string) string { return prefix + owner }

// threadName returns the thread of a webhook. Ids have no slash.
func threadName(thread, id string) string {
	owner, own := tenant.Split(thread)
	return hiddenTenant(owner) + string(tenant.Separator) + own + "/" + id
}

// IsWebhook reports whether a thread is a webhook.
func IsWebhook(thread string) bool { return strings.HasPrefix(thread, prefix) }

// hook is a webhook as it is stored, in a channel of its only checkpoint. The URL may have a secret
// in it. The run of a webhook that was kept before its run began stands in the head, once it is known.
type hook struct {
	Thread string `json:"thread"`
	Run    string `json:"run,omitempty"`
	ID     string `json:"id"`
	After  uint64 `json:"after,omitempty"`
	URL    string `json:"url"`
	Digest string `json:"digest,omitempty"` // of the request that begins the run
}

// channelHook is the channel.
const channelHook = "webhook"

// Keys of the metadata of the head.
const (
	keyAttempts = "attempts"
	keyRun      = "run"   // of a webhook that was kept before its run began
	keyAfter    = "after" // event after which a stop of that run counts
	keyAsked    = "asked" // when the request that begins the run has come last, and which call it was
)

// newCheckpoint returns the checkpoint that has a webhook.
func newCheckpoint(w *hook, now time.Time) (*checkpoint.Checkpoint, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encoding a webhook: %w", err)
	}
	return &checkpoint.Checkpoint{
		ID: "1", Seq: 1, Source: checkpoint.SourceUpdate, Time: now,
		Channels: []checkpoint.Channel{{Name: channelHook, Version: 1, Stored: 1, Value: payload.JSON(text)}},
	}, nil
}

// readHook reads the webhook of a thread. Errors: those of the store.
func (k *Keeper) readHook(ctx context.Context, head *checkpoint.Head) (*hook, error) {
	cp, err := k.opts.Store.Checkpoint(ctx, head.Thread, "", head.Checkpoint)
	if err != nil {
		return nil, err
	}
	w := &hook{}
	for i := range cp.Channels {
		if cp.Channels[i].Name == channelHook {
			err = json.Unmarshal([]byte(cp.Channels[i].Value), w)
		}
	}
	if run := head.Metadata[keyRun]; run != "" && err == nil {
		w.Run = run
		w.After, err = strconv.ParseUint(head.Metadata[keyAfter], 10, 64)
	}
	if err != nil || w.URL == "" {
		return nil, fmt.Errorf("%w: a webhook of a run can't be read", checkpoint.ErrCorrupt)
	}
	return w, nil
}

// setLabel sets a key of the metadata of a head that is changed.
func setLabel(t *commit.Tx, key, value string) {
	labels := map[string]string{key: value}
	for other, text := range t.Head.Metadata { // the map that was read stays as it is
		if other != key {
			labels[other] = text
		}
	}
	t.Head.Metadata = labels
}

// setRun notes the run of a webhook that was kept before in its head.
func (w *hook) setRun(t *commit.Tx) {
	if w.Digest == "" {
		return
	}
	setLabel(t, keyRun, w.Run)
	setLabel(t, keyAfter, strconv.FormatUint(w.After, 10))
}

// countAttempts returns how often a webhook was called.
func countAttempts(head *checkpoint.Head) int {
	n, _ := strconv.Atoi(head.Metadata[keyAttempts]) // none is 0
	return n
}
