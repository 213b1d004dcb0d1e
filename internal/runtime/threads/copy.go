package threads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/trail"
)

// maxCopiedCheckpoints is the number of a thread's newest checkpoints that a
// copy gets, in addition to those that it needs to continue. A copy is one
// change.
const maxCopiedCheckpoints = 1000

// CopyThread makes a copy of a thread: its state and history, its runs, and its
// interrupts, which need their own answers. Ids within the thread stay the
// same. Queued runs and request ids are not copied. The errors are *Error:
// THREAD_NOT_FOUND, THREAD_BUSY, THREAD_EXISTS, REQUEST_ID_CONFLICT,
// CHANGE_TOO_LARGE, QUOTA_EXCEEDED, and those of the store.
//
// A copy is one change in memory. So its size is bounded, and other copies wait
// until it is made.
func (m *Manager) CopyThread(ctx context.Context, req runtime.CopyRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = newIDBeside(req.Source, req.RequestID)
	}
	same := runtime.CreateThreadRequest{Thread: req.Thread, RequestID: req.RequestID, Digest: req.Digest}
	switch _, err := m.opts.Store.Head(ctx, req.Thread); {
	case err == nil:
		return m.answerDuplicate(ctx, same)
	case !errors.Is(err, checkpoint.ErrThreadNotFound):
		return checkpoint.Head{}, runtime.TranslateStoreError(err)
	}
	select {
	case m.copySlot <- struct{}{}:
		defer func() { <-m.copySlot }()
	case <-ctx.Done():
		return checkpoint.Head{}, context.Cause(ctx)
	}
	for {
		source, err := m.opts.Reader.Thread(ctx, req.Source)
		if err != nil {
			return source, err
		}
		if isActive(&source) {
			return source, runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active; copy it when that has ended or waits", source.Run).
				With("activeRunId", source.Run)
		}
		if unused := source.Answered + source.Retractable; unused > 0 {
			return source, runtime.Errorf(runtime.ReasonThreadBusy,
				"no node has used %d answers of the thread yet, and a copy would use them once more; copy it when its run has gone on", unused).
				With("activeRunId", source.Run)
		}
		if source.Open > 0 {
			if err := m.opts.Holdings.CheckQuestions(ctx, req.Thread); err != nil {
				return source, err
			}
		}
		copied := m.newCopyHead(&source, req)
		c := threadCopier{manager: m, ctx: ctx, source: source, by: req.By, change: commit.NewTx(&copied, m.opts.Now())}
		err = c.readAll()
		if now, again := m.opts.Reader.Thread(ctx, req.Source); again != nil {
			return source, again
		} else if now.Revision != source.Revision || now.LogID != source.LogID {
			continue // it has changed meanwhile
		}
		if err != nil {
			return source, err
		}
		made, err := m.storeThread(ctx, c.change.Head, same, func(t *commit.Tx) error {
			*t = *c.change
			t.RecordRequest(req.RequestID, req.Digest, "")
			t.ScheduleBy(commit.ExpiryTime(&t.Head))
			return nil
		})
		if err == nil {
			m.opts.WakeScheduler()
		}
		return made, err
	}
}

// isActive reports whether a run is driven or about to be.
func isActive(h *checkpoint.Head) bool {
	return h.State == checkpoint.ThreadBusy || query.CanResume(h) || (h.State != checkpoint.ThreadInterrupted && len(h.Queue) > 0)
}

// newCopyHead returns the head of a copy.
func (m *Manager) newCopyHead(source *checkpoint.Head, req runtime.CopyRequest) checkpoint.Head {
	h := m.NewHead(req.Thread)
	h.Graph, h.Version, h.Metadata = source.Graph, source.Version, source.Metadata
	h.TTL, h.Expires, h.Keep, h.State = source.TTL, source.Expires, source.Keep, source.State
	h.Checkpoint, h.Branched, h.Seq, h.FirstSeq = source.Checkpoint, source.Branched, source.Seq, source.FirstSeq
	h.Run, h.Open, h.Retractable, h.Answered = source.Run, source.Open, source.Retractable, source.Answered
	h.NeedsAllAnswers, h.Due, h.Editors = source.NeedsAllAnswers, source.Due, source.Editors
	if req.Metadata != nil {
		h.Metadata = req.Metadata
	}
	return h
}

// threadCopier reads the records of a thread into a change that makes a copy.
type threadCopier struct {
	manager     *Manager
	ctx         context.Context //nolint:containedctx // of the one call it is made for
	source      checkpoint.Head
	change      *commit.Tx
	by          runtime.Actor
	eventOffset uint64 // subtracted from the numbers of events
	readBytes   int    // that were read
}

func (c *threadCopier) readAll() error {
	for _, part := range []func() error{c.readRuns, c.readInterrupts, c.readCheckpoints, c.readProgress, c.readEvents} {
		err := part()
		if own, ok := errors.AsType[*runtime.Error](err); ok {
			return own
		}
		if err != nil {
			return runtime.TranslateStoreError(err)
		}
	}
	return nil
}

// addBytes counts the bytes of the copy and refuses a copy that is too large.
func (c *threadCopier) addBytes(bytes int) error {
	c.readBytes += bytes
	if most := c.manager.opts.MaxCopyBytes; c.readBytes > most {
		return runtime.Errorf(runtime.ReasonChangeTooLarge,
			"what there is to copy has more than %d bytes; prune the thread, or fork it at a checkpoint", most).
			WithLimit("max-copy-bytes", int64(most), int64(c.readBytes))
	}
	return nil
}

// readRuns reads the runs, all but those that wait in the queue.
func (c *threadCopier) readRuns() error {
	for before := uint64(0); ; {
		runs, err := c.manager.opts.Store.Runs(c.ctx, c.source.Thread, before, maxCopiedCheckpoints)
		if err != nil {
			return err
		}
		for i := range runs {
			r := runs[i]
			before = r.Order
			if r.State == checkpoint.RunQueued {
				continue
			}
			if err := c.addBytes(r.Size()); err != nil {
				return err
			}
			r.Thread, r.Revision = c.change.Thread, 0
			c.change.Runs = append(c.change.Runs, r)
		}
		if !checkpoint.IsPart(runs, maxCopiedCheckpoints, (*checkpoint.Run).Size) {
			return nil
		}
	}
}

func (c *threadCopier) readInterrupts() error {
	var full error
	err := c.manager.opts.Reader.EachInterrupt(c.ctx, checkpoint.InterruptQuery{Thread: c.source.Thread}, func(q *checkpoint.Interrupt) {
		if full == nil {
			full = c.addBytes(q.Size())
			c.change.Interrupts = append(c.change.Interrupts, *q)
		}
	})
	c.change.Interrupts = c.adoptInterrupts(c.change.Interrupts)
	for i := range c.change.Interrupts {
		if q := &c.change.Interrupts[i]; !q.Trail.IsEmpty() {
			q.AppendTrail(trail.Entry{
				Time: c.change.Now, Kind: trail.Copied, Principal: c.by.Name, How: c.by.How, Method: c.by.Method, From: tenant.ClientName(c.source.Thread),
			})
		}
	}
	return cmp.Or(err, full)
}

// adoptInterrupts returns the interrupts as those of the copy.
func (c *threadCopier) adoptInterrupts(list []checkpoint.Interrupt) []checkpoint.Interrupt {
	list = slices.Clone(list)
	for i := range list {
		list[i].Thread, list[i].Change, list[i].Revision = c.change.Thread, 0, 0
	}
	return list
}

// readCheckpoints reads the newest checkpoints, and older checkpoints that the copy
// needs.
func (c *threadCopier) readCheckpoints() error {
	needed := map[string]bool{c.source.Checkpoint: true}
	limit := maxCopiedCheckpoints
	for i := range c.change.Runs {
		r := &c.change.Runs[i]
		if r.ID != c.source.Run {
			continue
		}
		needed[r.Base], needed[r.Result] = true, true
		if r.Request.From != "" && c.source.State == checkpoint.ThreadInterrupted {
			limit = int(c.source.Seq) // a replay may need any checkpoint
		}
	}
	for i := range c.change.Interrupts {
		needed[c.change.Interrupts[i].Checkpoint] = true
	}
	newest, pool := map[string]bool{}, newCopyPool()
	for before := uint64(0); ; {
		list, err := c.manager.opts.Store.Checkpoints(c.ctx, checkpoint.CheckpointQuery{
			Thread: c.source.Thread, AllNamespaces: true, Before: before, Limit: maxCopiedCheckpoints,
		})
		if err != nil {
			return err
		}
		portion := checkpoint.Portion{Limit: maxCopiedCheckpoints}
		for _, cp := range list {
			portion.Take(cp.Size())
			before = cp.Seq
			lasts := !strings.Contains(cp.Namespace, ":") && !newest[cp.Namespace]
			newest[cp.Namespace] = true
			if within := len(c.change.Checkpoints) < limit; within || lasts || needed[cp.ID] {
				cp, bytes := pool.shareCheckpoint(cp)
				if err := c.addBytes(bytes); err != nil {
					return err
				}
				c.change.Checkpoints = append(c.change.Checkpoints, cp)
				if within {
					c.change.Head.FirstSeq = max(c.source.FirstSeq, cp.Seq)
				}
			}
		}
		if !portion.Full() {
			break
		}
	}
	if c.source.Seq <= uint64(limit) {
		c.change.Head.FirstSeq = c.source.FirstSeq
	}
	slices.Reverse(c.change.Checkpoints)
	c.change.IsCopy = true
	return nil
}

// readProgress reads the progress of the thread's present supersteps.
func (c *threadCopier) readProgress() error {
	var asked []checkpoint.Interrupt
	for _, cp := range c.change.Checkpoints {
		p, err := c.manager.opts.Store.Pending(c.ctx, c.source.Thread, cp.ID)
		if err != nil {
			return err
		}
		if err := c.addBytes(progressBytes(&p)); err != nil {
			return err
		}
		c.change.Tasks = append(c.change.Tasks, p.Tasks...)
		c.change.Memos = append(c.change.Memos, p.Memos...)
		asked = append(asked, p.Interrupts...)
	}
	// Those of a superstep keep the order in which they were asked.
	place := make(map[string]int, len(asked))
	for i := range asked {
		place[asked[i].ID] = i + 1 // others come first
	}
	slices.SortStableFunc(c.change.Interrupts, func(a, b checkpoint.Interrupt) int {
		return cmp.Compare(place[a.ID], place[b.ID])
	})
	return nil
}

// progressBytes estimates the bytes that tasks and memos hold.
func progressBytes(p *checkpoint.Pending) (n int) {
	for i := range p.Tasks {
		n += len(p.Tasks[i].Update)
		for _, w := range p.Tasks[i].Writes {
			n += len(w.Value)
		}
	}
	for i := range p.Memos {
		n += len(p.Memos[i].Value)
	}
	return n
}

// readEvents reads the log since the oldest checkpoint, and numbers it anew.
func (c *threadCopier) readEvents() error {
	first := max(c.source.FirstEvent, 1)
	if c.change.Head.FirstSeq > c.source.FirstSeq {
		for _, cp := range c.change.Checkpoints {
			if cp.Seq >= c.change.Head.FirstSeq {
				first = max(first, cp.Event)
				break
			}
		}
	}
	c.eventOffset = first - 1
	for after := c.eventOffset; after < c.source.LastEvent; {
		list, err := c.manager.opts.Store.Events(c.ctx, c.source.Thread, after, query.EventPageSize)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		after = list[len(list)-1].Seq
		if err := c.addBytes(feed.EventBytes(list)); err != nil {
			return err
		}
		for _, ev := range list {
			ev.Seq = c.renumberEvent(ev.Seq)
			ev.Interrupts = c.adoptInterrupts(ev.Interrupts)
			c.change.LiveEvents = append(c.change.LiveEvents, ev)
		}
	}
	c.change.Head.FirstEvent, c.change.Head.LastEvent = 1, uint64(len(c.change.LiveEvents))
	for i, cp := range c.change.Checkpoints {
		own := *cp
		own.Event = c.renumberEvent(cp.Event)
		c.change.Checkpoints[i] = &own
	}
	for i := range c.change.Runs {
		r := &c.change.Runs[i]
		r.FirstEvent, r.LastEvent = c.renumberEvent(r.FirstEvent), c.renumberEvent(r.LastEvent)
	}
	return nil
}

// renumberEvent returns the number of an event in the copy, 0 when the copy
// does not have it.
func (c *threadCopier) renumberEvent(n uint64) uint64 {
	if n <= c.eventOffset {
		return 0
	}
	return n - c.eventOffset
}
