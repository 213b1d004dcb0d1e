package items

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// hiddenTenant is the tenant of the items of a tenant. No tenant may have such a name.
func hiddenTenant(owner string) string { return "~store:" + owner }

// threadName returns the thread of an item. It does not tell the namespace and the key, which have
// other lengths and bytes than names of threads.
func threadName(owner string, namespace []string, key string) string {
	return hiddenTenant(owner) + string(tenant.Separator) + digestTexts(append(append(make([]string, 0, len(namespace)+1), namespace...), key))
}

// digestTexts returns a text that different lists of texts do not share.
func digestTexts(texts []string) string {
	sum := sha256.Sum256([]byte(encodeTexts(texts)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// encodeTexts returns the JSON list of texts.
func encodeTexts(texts []string) string {
	list := make([]payload.JSON, len(texts))
	for i, text := range texts {
		list[i] = payload.Quote(text)
	}
	return string(payload.Array(list))
}

// Labels of the thread of an item.
const (
	// namespaceLabel has the namespace, so that namespaces are listed without reading values.
	namespaceLabel = "namespace"
	// prefixLabel, followed by a number, has the digest of so many first labels of the namespace.
	// The indexes of threads find by it what is below a prefix.
	prefixLabel = "prefix"
)

// prefixCondition returns the label of the items below a prefix that has labels.
func prefixCondition(prefix []string) (key, value string) {
	return prefixLabel + strconv.Itoa(len(prefix)), digestTexts(prefix)
}

// newLabels returns the labels of the items of a namespace.
func newLabels(namespace []string) map[string]string {
	labels := make(map[string]string, len(namespace)+1)
	labels[namespaceLabel] = encodeTexts(namespace)
	for n := range namespace {
		key, value := prefixCondition(namespace[:n+1])
		labels[key] = value
	}
	return labels
}

// parseNamespace returns the namespace of an item.
func parseNamespace(head *checkpoint.Head) (namespace []string, err error) {
	if err := json.Unmarshal([]byte(head.Metadata[namespaceLabel]), &namespace); err != nil || len(namespace) == 0 {
		return nil, fmt.Errorf("%w: item %q has the namespace %q", checkpoint.ErrCorrupt, tenant.ClientName(head.Thread), head.Metadata[namespaceLabel])
	}
	return namespace, nil
}

// Channels of the checkpoint of an item. The value is carried as it came.
const (
	channelKey   = "key"
	channelValue = "value"
)

// putValue makes the value of an item the only checkpoint of its thread.
func putValue(t *commit.Tx, item *runtime.Item) {
	t.Head.Seq++
	cp := &checkpoint.Checkpoint{
		ID: fmt.Sprintf("%010d", t.Head.Seq), Seq: t.Head.Seq, Source: checkpoint.SourceUpdate, Time: t.Now,
		Channels: []checkpoint.Channel{
			{Name: channelKey, Version: t.Head.Seq, Stored: t.Head.Seq, Value: payload.Quote(item.Key)},
			{Name: channelValue, Version: t.Head.Seq, Stored: t.Head.Seq, Value: item.Value},
		},
	}
	if t.Expect == 0 {
		t.Head.Created = t.Now
	} else {
		t.DropAfter = new(uint64) // all
	}
	t.Checkpoints = append(t.Checkpoints, cp)
	t.Head.Checkpoint, t.Head.FirstSeq, t.Head.Metadata = cp.ID, cp.Seq, newLabels(item.Namespace)
	setExpiry(t, item)
	item.Created, item.Updated = t.Head.Created, t.Now
}

// setExpiry lets an item live for its TTL from now on, 0 = for ever.
func setExpiry(t *commit.Tx, item *runtime.Item) {
	item.Expires = time.Time{}
	if item.TTL > 0 {
		item.Expires = t.Now.Add(item.TTL)
	}
	t.Head.TTL, t.Head.Expires, t.Head.Due = item.TTL, item.Expires, item.Expires
}

// readItem reads the item of a thread. Errors: those of the store.
func readItem(ctx context.Context, reader checkpointReader, head *checkpoint.Head) (runtime.Item, error) {
	cp, err := reader.Checkpoint(ctx, head.Thread, "", head.Checkpoint)
	if err != nil {
		return runtime.Item{}, err
	}
	return parseItem(head, cp)
}

// parseItem returns the item of a thread and its checkpoint. Errors: checkpoint.ErrCorrupt.
func parseItem(head *checkpoint.Head, cp *checkpoint.Checkpoint) (item runtime.Item, err error) {
	held, _ := tenant.Split(head.Thread)
	item = runtime.Item{
		Tenant: strings.TrimPrefix(held, hiddenTenant("")), Created: head.Created, Updated: cp.Time, TTL: head.TTL, Expires: head.Expires,
	}
	if item.Namespace, err = parseNamespace(head); err != nil {
		return item, err
	}
	for i := range cp.Channels {
		switch c := &cp.Channels[i]; c.Name {
		case channelKey:
			if item.Key, err = payload.Unquote(c.Value); err != nil {
				return item, fmt.Errorf("%w: item %q: %w", checkpoint.ErrCorrupt, tenant.ClientName(head.Thread), err)
			}
		case channelValue:
			item.Value = c.Value
		}
	}
	if item.Value == "" {
		return item, fmt.Errorf("%w: item %q has no value", checkpoint.ErrCorrupt, tenant.ClientName(head.Thread))
	}
	return item, nil
}
