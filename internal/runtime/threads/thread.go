package threads

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// CreateThread makes an empty thread. The errors are *Error: THREAD_EXISTS,
// QUOTA_EXCEEDED, GRAPH_NOT_FOUND, REQUEST_ID_CONFLICT, and those of the store.
func (m *Manager) CreateThread(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = NewThreadID(req.Tenant, req.RequestID)
	}
	if err := m.opts.Store.SyncClock(ctx); err != nil {
		return checkpoint.Head{}, runtime.TranslateStoreError(err)
	}
	head := m.NewHead(req.Thread)
	head.Metadata = req.Metadata
	if req.Graph != "" {
		g, err := m.findVersion(req.Graph, req.Version)
		if err != nil {
			return head, err
		}
		head.Graph, head.Version = g.Name, g.Version
	}
	return m.storeThread(ctx, head, req, func(t *commit.Tx) error {
		setExpiration(t, req.Expiration)
		t.Head.Keep = req.KeepCheckpoints
		t.RecordRequest(req.RequestID, req.Digest, "")
		return nil
	})
}

// findVersion finds a version of a graph, or chooses one where none is named.
func (m *Manager) findVersion(name, version string) (*graph.Graph, error) {
	if version == "" {
		return m.opts.Versions.ChooseVersion(name)
	}
	return m.opts.Reader.FindGraph(name, version)
}

// storeThread stores a new thread, if its tenant may have another. A thread that exists is
// answered as a duplicate of the request.
func (m *Manager) storeThread(
	ctx context.Context, head checkpoint.Head, same runtime.CreateThreadRequest, b commit.Build,
) (made checkpoint.Head, err error) {
	done, err := m.opts.Holdings.AddThread(ctx, same.Thread)
	if err != nil {
		if _, absent := m.opts.Store.Head(ctx, same.Thread); absent == nil { // an earlier call was admitted
			return m.answerDuplicate(ctx, same)
		}
		return head, err
	}
	made, err = m.opts.Committer.TryChange(ctx, head, b)
	done(err == nil)
	if errors.Is(err, checkpoint.ErrConflict) {
		return m.answerDuplicate(ctx, same)
	}
	return made, err
}

// answerDuplicate answers a creation of an existing thread. The same request gets
// the thread; any other request is refused.
func (m *Manager) answerDuplicate(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	if req.RequestID != "" {
		old, err := m.opts.Reader.FindRequest(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return checkpoint.Head{}, err
		}
		if old != nil {
			return m.opts.Reader.Thread(ctx, req.Thread)
		}
	}
	return checkpoint.Head{}, runtime.Errorf(runtime.ReasonThreadExists, "thread %q exists", tenant.ClientName(req.Thread)).
		With("threadId", tenant.ClientName(req.Thread))
}

// setExpiration sets when a thread is deleted.
func setExpiration(t *commit.Tx, x runtime.Expiration) {
	t.Head.Expires, t.Head.TTL = x.At, x.TTL
	t.ScheduleBy(commit.RestDueTime(&t.Head))
}

// UpdateThread changes labels, expiry and the length of the history. The errors are
// *Error: THREAD_NOT_FOUND, ETAG_MISMATCH, and those of the store.
func (m *Manager) UpdateThread(ctx context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error) {
	return m.opts.Change(ctx, req.Thread, func(t *commit.Tx) error {
		if err := checkRevision(t.Expect, req.Etag); err != nil {
			return err
		}
		labels, err := runtime.ChangeLabels("thread.metadata", t.Head.Metadata, req.Metadata, req.DropKeys, req.ReplaceMetadata)
		if err != nil {
			return err
		}
		t.Head.Metadata = labels
		if req.Expiration != nil {
			setExpiration(t, *req.Expiration)
		}
		if req.KeepCheckpoints != nil {
			t.Head.Keep = *req.KeepCheckpoints
		}
		return nil
	})
}

func checkRevision(is, want uint64) error {
	if want == 0 || want == is {
		return nil
	}
	return runtime.Errorf(runtime.ReasonEtagMismatch, "the record was changed; read it again").With("current", strconv.FormatUint(is, 10))
}

// DeleteThread deletes a thread that is at the revision etag (0 = any) and not busy.
// With force it deletes a busy or damaged thread too. The errors are *Error:
// THREAD_NOT_FOUND, THREAD_BUSY, ETAG_MISMATCH, and those of the store.
func (m *Manager) DeleteThread(ctx context.Context, thread string, etag uint64, force bool) error {
	for {
		head, err := m.opts.Store.Head(ctx, thread)
		damaged := errors.Is(err, checkpoint.ErrCorrupt) && head.Revision > 0
		if err != nil && (!damaged || !force) {
			return runtime.TranslateThreadError(thread, err)
		}
		if err := checkRevision(head.Revision, etag); err != nil {
			return err
		}
		if head.State == checkpoint.ThreadBusy && !force {
			return runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active; cancel it, or force the deletion", head.Run).
				With("activeRunId", head.Run)
		}
		err = m.opts.Remove(ctx, head, etag == 0 && force)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return err
		}
	}
}

// ForkThread makes a thread that begins with the present state of another
// thread, or with its state at a checkpoint. Interrupts are not copied: waiting
// tasks ask again. The errors are *Error: THREAD_NOT_FOUND, THREAD_EXISTS,
// CHECKPOINT_NOT_FOUND, QUOTA_EXCEEDED, and those of the store.
func (m *Manager) ForkThread(ctx context.Context, req runtime.ForkRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = newIDBeside(req.Source, req.RequestID)
	}
	source, err := m.opts.Reader.Thread(ctx, req.Source)
	if err != nil {
		return source, err
	}
	head := m.NewHead(req.Thread)
	head.Graph, head.Version, head.Metadata = source.Graph, source.Version, source.Metadata
	if req.Metadata != nil {
		head.Metadata = req.Metadata
	}
	var origin *pregel.State
	memory := m.opts.Budget.NewReservation()
	defer memory.ReleaseAll()
	if source.Checkpoint != "" || req.Checkpoint != "" {
		if origin, err = m.opts.Reader.LoadStateReserved(ctx, &memory, runtime.ReadWaitTimeout, &source, "", req.Checkpoint); err != nil {
			return source, err
		}
	}
	same := runtime.CreateThreadRequest{Thread: req.Thread, RequestID: req.RequestID, Digest: req.Digest}
	return m.storeThread(ctx, head, same, func(t *commit.Tx) error {
		t.Actor = req.By.Name
		t.RecordRequest(req.RequestID, req.Digest, "")
		return putForkedState(t, origin)
	})
}

// putForkedState makes a state the first checkpoint of a new thread.
func putForkedState(t *commit.Tx, origin *pregel.State) error {
	if origin == nil {
		return nil
	}
	bare := *origin.Checkpoint()
	bare.ID = ""
	bare.Channels = make([]checkpoint.Channel, len(origin.Checkpoint().Channels))
	copy(bare.Channels, origin.Checkpoint().Channels)
	for i := range bare.Channels {
		c := &bare.Channels[i]
		c.Stored = 0
		if c.List != nil {
			c.List = &checkpoint.List{Items: c.List.Items}
		}
	}
	id, seq := t.NextCheckpointID()
	state := pregel.LoadState(origin.Graph(), &bare, false, pregel.Limits{}).CopyToCheckpoint(pregel.CheckpointInfo{
		ID: id, Seq: seq, Time: t.Now, Source: checkpoint.SourceFork, Step: bare.Step, Metadata: bare.Metadata,
	})
	tasks, err := state.PlanTasks()
	if err != nil {
		return err
	}
	cp := state.Checkpoint()
	cp.Next = pregel.NextTasks(tasks)
	t.Checkpoints = append(t.Checkpoints, cp)
	t.Head.Checkpoint, t.Head.Branched = cp.ID, false
	t.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventCheckpoint, Step: cp.Step, Checkpoint: cp.ID, Source: cp.Source, Next: cp.Next,
	})
	return nil
}

// NewThreadID makes the id of a thread of a tenant, "" = tenant.Default. The same request
// id yields the same thread id in a tenant, so that a repeated call finds its thread.
func NewThreadID(owner, request string) string {
	// It does not fail: the names of tenants are checked where calls come in.
	id, _ := tenant.Qualify(cmp.Or(owner, tenant.Default), NewID(request))
	return id
}

// newIDBeside makes the id of a thread of the tenant that has another thread.
func newIDBeside(thread, request string) string {
	owner, _ := tenant.Split(thread)
	return NewThreadID(owner, request)
}

// NewID makes an id. The same request makes the same id again, "" = none.
func NewID(request string) string {
	if request == "" {
		return uuid.Must(uuid.NewV7()).String()
	}
	sum := sha256.Sum256([]byte("thread\x00" + request))
	return hex.EncodeToString(sum[:16])
}

// NewHead returns the head of a thread that does not exist yet.
func (m *Manager) NewHead(thread string) checkpoint.Head {
	return checkpoint.Head{
		Thread: thread, LogID: uuid.NewString()[:8], Created: m.opts.Now(), State: checkpoint.ThreadIdle,
	}
}
