package assistants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// record is a version of an assistant as it is stored, in a channel of its checkpoint.
type record struct {
	Graph       string            `json:"graph"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Channels of a version. Those with JSON of clients carry it as it came.
const (
	channelRecord  = "record"
	channelContext = "context"
	channelConfig  = "config"
)

// checkpointID returns the id of the checkpoint of a version.
func checkpointID(version int) string { return fmt.Sprintf("%010d", version) }

// putVersion adds a further version of an assistant to a change, and makes it the active one. It sets
// what the server knows of it.
func putVersion(t *commit.Tx, a *runtime.Assistant) error {
	t.Head.Seq++
	a.Version, a.Updated = int(t.Head.Seq), t.Now
	if a.Created.IsZero() {
		a.Created = t.Head.Created
	}
	text, err := json.Marshal(record{Graph: a.Graph, Name: a.Name, Description: a.Description, Metadata: a.Metadata})
	if err != nil {
		return fmt.Errorf("encoding an assistant: %w", err)
	}
	cp := &checkpoint.Checkpoint{
		ID: checkpointID(a.Version), Seq: t.Head.Seq, Parent: t.Head.Checkpoint, Graph: a.Graph, Source: checkpoint.SourceUpdate,
		Step: a.Version, Time: t.Now,
	}
	for _, part := range []struct {
		name  string
		value payload.JSON
	}{{channelRecord, payload.JSON(text)}, {channelContext, a.Context}, {channelConfig, a.Config}} {
		if part.value != "" {
			cp.Channels = append(cp.Channels, checkpoint.Channel{Name: part.name, Version: cp.Seq, Stored: cp.Seq, Value: part.value})
		}
	}
	t.Checkpoints = append(t.Checkpoints, cp)
	setActive(t, cp.ID, a)
	return nil
}

// nameLabel is the label with the name. Labels of clients have no such key.
const nameLabel = "\x00name"

// setActive makes a version the active one: the head has what lists show and select by. Its time is
// that of the version, as versions show it.
func setActive(t *commit.Tx, id string, a *runtime.Assistant) {
	labels := make(map[string]string, len(a.Metadata)+1)
	maps.Copy(labels, a.Metadata)
	labels[nameLabel] = a.Name
	t.Head.Checkpoint, t.Head.Graph, t.Head.Metadata, t.Head.Updated = id, a.Graph, labels, a.Updated
}

// parseHead returns what the head has of the active version.
func parseHead(head *checkpoint.Head) (runtime.Assistant, error) {
	a := newAssistant(head)
	version, err := strconv.Atoi(head.Checkpoint)
	if err != nil {
		return a, fmt.Errorf("%w: assistant %q has the version %q", checkpoint.ErrCorrupt, a.ID, head.Checkpoint)
	}
	a.Version, a.Updated, a.Graph, a.Name = version, head.Updated, head.Graph, head.Metadata[nameLabel]
	a.Metadata = maps.Clone(head.Metadata)
	delete(a.Metadata, nameLabel)
	return a, nil
}

// newAssistant returns what all versions have.
func newAssistant(head *checkpoint.Head) runtime.Assistant {
	held, id := tenant.Split(head.Thread)
	return runtime.Assistant{Tenant: strings.TrimPrefix(held, hiddenTenant("")), ID: id, Created: head.Created, Revision: head.Revision}
}

// readVersion reads the version of a checkpoint. Errors: those of runtime.TranslateStoreError.
func (k *Keeper) readVersion(ctx context.Context, head *checkpoint.Head, id string) (runtime.Assistant, error) {
	cp, err := k.opts.Store.Checkpoint(ctx, head.Thread, "", id)
	if err != nil {
		return runtime.Assistant{}, runtime.TranslateStoreError(err)
	}
	a, err := parseVersion(head, cp)
	return a, runtime.TranslateStoreError(err)
}

func parseVersion(head *checkpoint.Head, cp *checkpoint.Checkpoint) (runtime.Assistant, error) {
	a := newAssistant(head)
	a.Version, a.Updated = int(cp.Seq), cp.Time
	var r record
	for i := range cp.Channels {
		c := &cp.Channels[i]
		switch c.Name {
		case channelRecord:
			if err := json.Unmarshal([]byte(c.Value), &r); err != nil {
				return a, fmt.Errorf("%w: assistant %q, version %d: %w", checkpoint.ErrCorrupt, a.ID, a.Version, err)
			}
		case channelContext:
			a.Context = c.Value
		case channelConfig:
			a.Config = c.Value
		}
	}
	a.Graph, a.Name, a.Description, a.Metadata = r.Graph, r.Name, r.Description, r.Metadata
	return a, nil
}
