// Package assistants keeps assistants: graphs with a configuration, and their versions.
//
// An assistant is a thread that no client can name. Its checkpoints are the versions, its head
// names the active one and has the labels, so that the indexes of threads find assistants.
package assistants

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// MaxVersions is how many versions an assistant keeps.
const MaxVersions = 100

// Graphs finds graphs.
type Graphs interface {
	// FindGraph returns a version of a graph, the newest without one. Errors: GRAPH_NOT_FOUND.
	FindGraph(name, version string) (*graph.Graph, error)
}

// Requests finds the requests that a thread remembers.
type Requests interface {
	// FindRequest returns nil when the thread has no such request. Errors: REQUEST_ID_CONFLICT.
	FindRequest(ctx context.Context, thread, id, digest string) (*checkpoint.Request, error)
}

// Options are the collaborators and limits of a Keeper.
type Options struct {
	Store     *commit.StoreClient
	Committer *commit.Committer
	Graphs    Graphs
	Requests  Requests
	Limit     int // assistants of a tenant
	MaxBytes  int // of one version
}

// Keeper keeps assistants.
type Keeper struct{ opts Options }

// New makes a Keeper.
func New(opts Options) *Keeper { return &Keeper{opts: opts} }

// hiddenTenant is the tenant of the assistants of a tenant. No tenant may have such a name.
func hiddenTenant(owner string) string { return "~assistants:" + owner }

func threadName(owner, id string) string { return hiddenTenant(owner) + string(tenant.Separator) + id }

// CreateAssistant makes an assistant. The errors are *Error: ASSISTANT_EXISTS, GRAPH_NOT_FOUND,
// PAYLOAD_TOO_LARGE, TOO_MANY_ASSISTANTS, REQUEST_ID_CONFLICT, and those of the store.
func (k *Keeper) CreateAssistant(ctx context.Context, req runtime.CreateAssistantRequest) (runtime.Assistant, error) {
	if req.Assistant.ID == "" {
		req.Assistant.ID = newID(req.Assistant.Tenant, req.RequestID)
	}
	if err := k.opts.Store.SyncClock(ctx); err != nil {
		return runtime.Assistant{}, runtime.TranslateStoreError(err)
	}
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Assistant, error) {
		if found, err := k.findCreated(ctx, &req, head); err != nil || found != nil {
			return derefAssistant(found), err
		}
		return k.tryCreate(ctx, &req)
	})
}

// tryCreate makes an assistant that there is not. Errors: those of CreateAssistant, and ErrConflict
// when another call has made it meanwhile.
func (k *Keeper) tryCreate(ctx context.Context, req *runtime.CreateAssistantRequest) (runtime.Assistant, error) {
	a := req.Assistant
	if _, err := k.opts.Graphs.FindGraph(a.Graph, ""); err != nil {
		return a, err
	}
	if err := k.checkSize(&a); err != nil {
		return a, err
	}
	if err := k.checkCount(ctx, a.Tenant); err != nil {
		return a, err
	}
	head := checkpoint.Head{
		Thread: threadName(a.Tenant, a.ID), LogID: uuid.NewString()[:8], Created: k.opts.Store.CurrentTime(), State: checkpoint.ThreadIdle, Keep: checkpoint.KeepAll,
	}
	made, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.RecordRequest(req.RequestID, req.Digest, "")
		return putVersion(t, &a)
	})
	a.Revision = made.Revision
	return a, err
}

// newID returns the id of a new assistant. The same request makes the same one.
func newID(owner, request string) string {
	if request == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("assistant\x00"+owner+"\x00"+request)).String()
}

// findCreated returns the assistant that a repeated request has made, nil when there is none. One of
// another request is refused.
func (k *Keeper) findCreated(ctx context.Context, req *runtime.CreateAssistantRequest, head *checkpoint.Head) (found *runtime.Assistant, err error) {
	id, thread := req.Assistant.ID, threadName(req.Assistant.Tenant, req.Assistant.ID)
	*head, err = k.opts.Store.Head(ctx, thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	if req.RequestID != "" {
		old, err := k.opts.Requests.FindRequest(ctx, thread, req.RequestID, req.Digest)
		if err != nil {
			return nil, err
		}
		if old != nil {
			found, err := k.readVersion(ctx, head, head.Checkpoint)
			return &found, err
		}
	}
	return nil, runtime.Errorf(runtime.ReasonAssistantExists, "assistant %q exists", id).With("assistantId", id)
}

func derefAssistant(a *runtime.Assistant) runtime.Assistant {
	if a == nil {
		return runtime.Assistant{}
	}
	return *a
}

// checkCount refuses an assistant beyond the limit.
func (k *Keeper) checkCount(ctx context.Context, owner string) error {
	n, err := k.opts.Store.CountThreads(ctx, hiddenTenant(owner), k.opts.Limit)
	switch {
	case err != nil:
		return runtime.TranslateStoreError(err)
	case n >= k.opts.Limit:
		return runtime.Errorf(runtime.ReasonTooManyAssistants, "there are %d assistants, as many as the server keeps (--assistants); delete some that are not used", n).
			WithLimit("assistants", int64(k.opts.Limit), int64(k.opts.Limit)+1)
	}
	return nil
}

// checkSize refuses a version that is too large. The error names the largest of its fields.
func (k *Keeper) checkSize(a *runtime.Assistant) error {
	labels := 0
	for key, value := range a.Metadata {
		labels += len(key) + len(value)
	}
	parts := []struct {
		field string
		size  int
	}{
		{"context", len(a.Context)}, {"config", len(a.Config)}, {"metadata", labels}, {"description", len(a.Description)}, {"name", len(a.Name)},
	}
	all, largest := 0, parts[0]
	for _, part := range parts {
		if all += part.size; part.size > largest.size {
			largest = part
		}
	}
	if all <= k.opts.MaxBytes {
		return nil
	}
	field := "assistant." + largest.field
	return runtime.Errorf(runtime.ReasonPayloadTooLarge,
		"%s has %d of the %d bytes of the assistant; context, config, metadata, name and description may have %d together (--max-assistant-bytes)",
		field, largest.size, all, k.opts.MaxBytes).
		With("field", field).With("sizeBytes", strconv.Itoa(all)).With("limitBytes", strconv.Itoa(k.opts.MaxBytes)).
		WithLimit("max-assistant-bytes", int64(k.opts.MaxBytes), int64(all))
}

// GetAssistant returns a version of an assistant, 0 = the active one. The errors are *Error:
// ASSISTANT_NOT_FOUND, and those of the store.
func (k *Keeper) GetAssistant(ctx context.Context, owner, id string, version int) (runtime.Assistant, error) {
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (runtime.Assistant, error) {
		if err := k.readHead(ctx, owner, id, head); err != nil {
			return runtime.Assistant{}, err
		}
		chosen, err := chooseVersion(head, version)
		if err != nil {
			return runtime.Assistant{}, err
		}
		return k.readVersion(ctx, head, chosen)
	})
}

func (k *Keeper) readHead(ctx context.Context, owner, id string, head *checkpoint.Head) (err error) {
	if *head, err = k.opts.Store.Head(ctx, threadName(owner, id)); errors.Is(err, checkpoint.ErrThreadNotFound) {
		return runtime.NewAssistantNotFoundError(id)
	}
	return runtime.TranslateStoreError(err)
}

// chooseVersion returns the id of the checkpoint of a version, 0 = the active one.
func chooseVersion(head *checkpoint.Head, version int) (string, error) {
	switch {
	case version == 0:
		return head.Checkpoint, nil
	case version < 0 || uint64(version) > head.Seq || uint64(version) < head.FirstSeq:
		_, id := tenant.Split(head.Thread)
		return "", runtime.Errorf(runtime.ReasonAssistantNotFound, "assistant %q has no version %d: it has %d to %d", id, version, max(head.FirstSeq, 1), head.Seq).
			With("assistantId", id)
	}
	return checkpointID(version), nil
}

// ListAssistants lists assistants in their active versions, the newest first. more reports that
// others follow. Errors: those of the store.
func (k *Keeper) ListAssistants(ctx context.Context, q runtime.AssistantQuery) (list []runtime.Assistant, more bool, err error) {
	heads, err := k.opts.Store.Threads(ctx, newThreadQuery(&q))
	if err != nil {
		return nil, false, runtime.TranslateStoreError(err)
	}
	held := 0
	for i := range heads {
		if len(list) == q.Limit || held > q.MaxBytes {
			return list, true, nil
		}
		a, err := k.readListed(ctx, &heads[i], q.IsBasic)
		switch {
		case errors.Is(err, checkpoint.ErrCheckpointNotFound): // it was deleted meanwhile
		case err != nil:
			return nil, false, err
		default:
			held += a.Size()
			list = append(list, a)
		}
	}
	return list, checkpoint.IsPart(heads, q.Limit+1, (*checkpoint.Head).Size), nil
}

func (k *Keeper) readListed(ctx context.Context, head *checkpoint.Head, isBasic bool) (runtime.Assistant, error) {
	if isBasic {
		a, err := parseHead(head)
		return a, runtime.TranslateStoreError(err)
	}
	return k.readVersion(ctx, head, head.Checkpoint)
}

// newThreadQuery returns the query of the threads of assistants, in the order of their creation.
func newThreadQuery(q *runtime.AssistantQuery) checkpoint.ThreadQuery {
	threads := checkpoint.ThreadQuery{
		Tenant: hiddenTenant(q.Tenant), State: checkpoint.ThreadIdle, Graph: q.Graph, Metadata: q.Metadata, Limit: q.Limit + 1,
	}
	if q.After.ID != "" {
		threads.Before = checkpoint.ThreadPosition{Created: q.After.Created, Thread: threadName(q.Tenant, q.After.ID)}
	}
	return threads
}

// ListVersions lists versions of an assistant, the newest first. more reports that others follow. The
// errors are *Error: ASSISTANT_NOT_FOUND, and those of the store.
func (k *Keeper) ListVersions(ctx context.Context, q runtime.AssistantVersionQuery) (list []runtime.Assistant, more bool, err error) {
	list, err = commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) ([]runtime.Assistant, error) {
		if err := k.readHead(ctx, q.Tenant, q.ID, head); err != nil {
			return nil, err
		}
		newest, oldest := int(head.Seq), int(max(head.FirstSeq, 1))
		if q.Before > 0 {
			newest = min(newest, q.Before-1)
		}
		var list []runtime.Assistant
		for held := 0; newest >= oldest; newest-- {
			if len(list) == q.Limit || held > q.MaxBytes {
				more = true
				return list, nil
			}
			a, err := k.readVersion(ctx, head, checkpointID(newest))
			if err != nil {
				return nil, err
			}
			held += a.Size()
			list = append(list, a)
		}
		more = false
		return list, nil
	})
	return list, more, err
}

// UpdateAssistant adds a version to an assistant and makes it the active one. The errors are *Error:
// ASSISTANT_NOT_FOUND, GRAPH_NOT_FOUND, PAYLOAD_TOO_LARGE, ETAG_MISMATCH, and those of the store and
// of Admits.
func (k *Keeper) UpdateAssistant(ctx context.Context, req runtime.UpdateAssistantRequest) (runtime.Assistant, error) {
	updated, err := k.changeAssistant(ctx, req.Tenant, req.ID, func(t *commit.Tx, active *runtime.Assistant) error {
		if err := admitGraph(req.Admits, active.Graph); err != nil {
			return err
		}
		if err := checkRevision(t.Expect, req.Etag); err != nil {
			return err
		}
		if req.Graph != nil {
			if _, err := k.opts.Graphs.FindGraph(*req.Graph, ""); err != nil {
				return err
			}
		}
		if err := applyUpdate(active, &req); err != nil {
			return err
		}
		if err := k.checkSize(active); err != nil {
			return err
		}
		return putVersion(t, active)
	})
	if err == nil {
		k.dropOldVersions(ctx, &updated)
	}
	return updated, err
}

// admitGraph refuses what admits refuses. It comes first, for what else is wrong would tell a caller
// of assistants that it may not see.
func admitGraph(admits func(name string) error, name string) error {
	if admits == nil {
		return nil
	}
	return admits(name)
}

func checkRevision(is, want uint64) error {
	if want == 0 || want == is {
		return nil
	}
	return runtime.Errorf(runtime.ReasonEtagMismatch, "the assistant was changed; read it again").With("current", strconv.FormatUint(is, 10))
}

func applyUpdate(a *runtime.Assistant, req *runtime.UpdateAssistantRequest) (err error) {
	setIf(&a.Graph, req.Graph)
	setIf(&a.Name, req.Name)
	setIf(&a.Description, req.Description)
	setIf(&a.Context, req.Context)
	setIf(&a.Config, req.Config)
	a.Metadata, err = runtime.ChangeLabels("assistant.metadata", a.Metadata, req.Metadata, req.DropKeys, req.ReplaceMetadata)
	return err
}

func setIf[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

// ActivateVersion makes a version the active one. admits is that of an UpdateAssistantRequest, and is
// asked for the graphs of both versions. The errors are *Error: ASSISTANT_NOT_FOUND, and those of the
// store and of admits.
func (k *Keeper) ActivateVersion(ctx context.Context, owner, id string, version int, admits func(name string) error) (runtime.Assistant, error) {
	return k.changeAssistant(ctx, owner, id, func(t *commit.Tx, active *runtime.Assistant) error {
		if err := admitGraph(admits, active.Graph); err != nil {
			return err
		}
		chosen, err := chooseVersion(&t.Head, version)
		if err != nil {
			return err
		}
		next, err := k.readVersion(ctx, &t.Head, chosen)
		if err != nil {
			return err
		}
		if err := admitGraph(admits, next.Graph); err != nil {
			return err
		}
		setActive(t, chosen, &next)
		*active = next
		return nil
	})
}

// changeAssistant makes one change of an assistant, and returns it as build has left it.
func (k *Keeper) changeAssistant(
	ctx context.Context, owner, id string, build func(t *commit.Tx, active *runtime.Assistant) error,
) (runtime.Assistant, error) {
	return commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (active runtime.Assistant, err error) {
		if err := k.readHead(ctx, owner, id, head); err != nil {
			return active, err
		}
		if active, err = k.readVersion(ctx, head, head.Checkpoint); err != nil {
			return active, err
		}
		next, err := k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error { return build(t, &active) })
		active.Revision = next.Revision
		return active, err
	})
}

// dropOldVersions drops the oldest versions beyond MaxVersions of an assistant that was updated, if it
// was not changed since. A drop that fails is left to the next update: this one is done.
func (k *Keeper) dropOldVersions(ctx context.Context, updated *runtime.Assistant) {
	var head checkpoint.Head
	if err := k.readHead(ctx, updated.Tenant, updated.ID, &head); err != nil {
		return
	}
	if head.Revision != updated.Revision || head.Seq < max(head.FirstSeq, 1)+MaxVersions {
		return
	}
	next, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.DropBefore = t.Head.Seq - MaxVersions + 1
		t.Head.FirstSeq, t.Head.Updated = t.DropBefore, head.Updated
		return nil
	})
	if err == nil {
		updated.Revision = next.Revision
	}
}

// DeleteAssistant deletes an assistant with its versions. The errors are *Error:
// ASSISTANT_NOT_FOUND, ETAG_MISMATCH, and those of the store and of admits.
func (k *Keeper) DeleteAssistant(ctx context.Context, owner, id string, etag uint64, admits func(name string) error) error {
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (checkpoint.Head, error) {
		if err := k.readHead(ctx, owner, id, head); err != nil {
			return *head, err
		}
		return k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error {
			if err := admitGraph(admits, t.Head.Graph); err != nil {
				return err
			}
			t.Delete = true
			return checkRevision(t.Expect, etag)
		})
	})
	return err
}
