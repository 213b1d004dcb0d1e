package engine

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// CreateThread makes an empty thread. The errors are *Error: THREAD_EXISTS,
// GRAPH_NOT_FOUND, REQUEST_ID_CONFLICT, and those of the store.
func (e *Engine) CreateThread(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = newThreadID(req.RequestID)
	}
	if err := e.storeClient.SyncClock(ctx); err != nil {
		return checkpoint.Head{}, runtime.TranslateStoreError(err)
	}
	head := e.newHead(req.Thread)
	head.Metadata = req.Metadata
	if req.Graph != "" {
		g, err := e.reader.FindGraph(req.Graph, req.Version)
		if err != nil {
			return head, err
		}
		head.Graph, head.Version = g.Name, g.Version
	}
	made, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		setExpiration(t, req.Expiration)
		t.Head.Keep = req.KeepCheckpoints
		t.RecordRequest(req.RequestID, req.Digest, "")
		return nil
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return e.answerDuplicate(ctx, req)
	}
	return made, err
}

// answerDuplicate answers a creation that came second: the same request gets what it
// made, any other is refused.
func (e *Engine) answerDuplicate(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error) {
	if req.RequestID != "" {
		old, err := e.reader.FindRequest(ctx, req.Thread, req.RequestID, req.Digest)
		if err != nil {
			return checkpoint.Head{}, err
		}
		if old != nil {
			return e.reader.Thread(ctx, req.Thread)
		}
	}
	return checkpoint.Head{}, runtime.Errorf(runtime.ReasonThreadExists, "thread %q exists", req.Thread).With("threadId", req.Thread)
}

// setExpiration sets when a thread is deleted.
func setExpiration(t *commit.Tx, x runtime.Expiration) {
	t.Head.Expires, t.Head.TTL = x.At, x.TTL
	t.ScheduleBy(commit.ExpiryTime(&t.Head))
}

// UpdateThread changes labels, expiry and how much history is kept. The errors are *Error:
// THREAD_NOT_FOUND, ETAG_MISMATCH, and those of the store.
func (e *Engine) UpdateThread(ctx context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error) {
	return e.changeThread(ctx, req.Thread, func(t *commit.Tx) error {
		if err := checkRevision(t.Expect, req.Etag); err != nil {
			return err
		}
		labels := maps.Clone(t.Head.Metadata)
		if req.ReplaceMetadata || labels == nil {
			labels = make(map[string]string, len(req.Metadata))
		}
		maps.Copy(labels, req.Metadata)
		for _, key := range req.DropKeys {
			delete(labels, key)
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

// DeleteThread removes a thread that is at the revision etag (0 = any) and not
// busy; when forced, whatever it does and even when it is damaged. The errors are *Error:
// THREAD_NOT_FOUND, THREAD_BUSY, ETAG_MISMATCH, and those of the store.
func (e *Engine) DeleteThread(ctx context.Context, thread string, etag uint64, force bool) error {
	for {
		head, err := e.store.Head(ctx, thread)
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
		err = e.removeLocalThread(ctx, head, etag == 0 && force)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return err
		}
	}
}

// removeLocalThread removes a thread and stops what is going on for it in this
// process. A live run commits all the time: when any revision will do, the
// removal takes its turn among the commits.
func (e *Engine) removeLocalThread(ctx context.Context, head checkpoint.Head, anyRevision bool) error {
	s := e.findSession(head.Thread)
	if s == nil {
		return e.removeThread(ctx, head)
	}
	if err := s.lockCommits(ctx); err != nil {
		return err
	}
	defer s.unlockCommits()
	if anyRevision && !s.isLost {
		head.Revision = s.head.Revision
	}
	err := e.removeThread(ctx, head)
	switch {
	case err == nil:
		s.loseLease()
	case errors.Is(err, checkpoint.ErrConflict) && !s.isLost:
		if again := s.reloadHead(ctx); again != nil && !errors.Is(again, errLeaseLost) {
			return again
		}
	}
	return err
}

// ForkThread makes a thread that begins with the state another one has, or had
// at a checkpoint. Interrupts are not copied: tasks that were waiting ask anew.
// The errors are *Error: THREAD_NOT_FOUND, THREAD_EXISTS,
// CHECKPOINT_NOT_FOUND, and those of the store.
func (e *Engine) ForkThread(ctx context.Context, req runtime.ForkRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = newThreadID(req.RequestID)
	}
	source, err := e.reader.Thread(ctx, req.Source)
	if err != nil {
		return source, err
	}
	head := e.newHead(req.Thread)
	head.Graph, head.Version, head.Metadata = source.Graph, source.Version, source.Metadata
	if req.Metadata != nil {
		head.Metadata = req.Metadata
	}
	var origin *pregel.State
	memory := e.readBudget.NewReservation()
	defer memory.ReleaseAll()
	if source.Checkpoint != "" || req.Checkpoint != "" {
		if origin, err = e.reader.LoadStateReserved(ctx, &memory, runtime.ReadWaitTimeout, &source, "", req.Checkpoint); err != nil {
			return source, err
		}
	}
	made, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.RecordRequest(req.RequestID, req.Digest, "")
		return putForkedState(t, origin)
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return e.answerDuplicate(ctx, runtime.CreateThreadRequest{Thread: req.Thread, RequestID: req.RequestID, Digest: req.Digest})
	}
	return made, err
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

// UpdateInterrupt changes who is asked and until when. The errors are *Error:
// INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, ETAG_MISMATCH, and those of
// the store.
func (e *Engine) UpdateInterrupt(ctx context.Context, c runtime.UpdateInterruptRequest) (checkpoint.Interrupt, error) {
	_, err := e.changeThread(ctx, c.Thread, func(t *commit.Tx) error {
		q, err := e.reader.Interrupt(ctx, c.Thread, c.Interrupt)
		if err != nil {
			return err
		}
		if err := checkRevision(q.Revision, c.Etag); err != nil {
			return err
		}
		if q.State != checkpoint.InterruptOpen {
			return resolvedError(&q)
		}
		if c.Assignees != nil {
			q.Assignees = *c.Assignees
		}
		if c.Expires != nil {
			q.Expires = *c.Expires
			t.ScheduleBy(q.Expires)
		}
		q.Updated = t.Now
		t.Interrupts = append(t.Interrupts, q)
		return nil
	})
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	e.wakeScheduler()
	return e.reader.Interrupt(ctx, c.Thread, c.Interrupt)
}
