package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// copiedCheckpoints is how many of a thread's newest checkpoints a copy gets,
// besides what it needs to go on: all of it is one change.
const copiedCheckpoints = 1000

// CopyThread makes a thread that is what another one is: its state and history,
// its runs, and its questions, which are answered apart from the other's. Ids
// within the thread stay the same. What waits in the queue is not copied, nor
// are request ids. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_EXISTS, REQUEST_ID_CONFLICT, CHANGE_TOO_LARGE, and those of the store.
//
// A copy is one change, which is held as a whole: its size is bounded, and others
// wait until it is made.
func (e *Engine) CopyThread(ctx context.Context, req CopyRequest) (checkpoint.Head, error) {
	if req.Thread == "" {
		req.Thread = newThreadID(req.RequestID)
	}
	same := NewThread{Thread: req.Thread, RequestID: req.RequestID, Digest: req.Digest}
	switch _, err := e.store.Head(ctx, req.Thread); {
	case err == nil:
		return e.existing(ctx, same)
	case !errors.Is(err, checkpoint.ErrThreadNotFound):
		return checkpoint.Head{}, storeError(err)
	}
	select {
	case e.copying <- struct{}{}:
		defer func() { <-e.copying }()
	case <-ctx.Done():
		return checkpoint.Head{}, context.Cause(ctx)
	}
	for {
		source, err := e.Thread(ctx, req.Source)
		if err != nil {
			return source, err
		}
		if atWork(&source) {
			return source, Errorf(ReasonThreadBusy, "run %q of the thread is active; copy it when that has ended or waits", source.Run).
				With("activeRunId", source.Run)
		}
		c := copier{engine: e, ctx: ctx, source: source, t: newTx(e.twin(&source, req), e.now())}
		err = c.read()
		if now, again := e.Thread(ctx, req.Source); again != nil {
			return source, again
		} else if now.Revision != source.Revision || now.LogID != source.LogID {
			continue // it has changed meanwhile
		}
		if err != nil {
			return source, err
		}
		made, err := e.tryChange(ctx, c.t.Head, func(t *tx) error {
			*t = *c.t
			t.remember(req.RequestID, req.Digest, "")
			t.due(expiry(&t.Head))
			return nil
		})
		if errors.Is(err, checkpoint.ErrConflict) {
			return e.existing(ctx, same)
		}
		if err == nil {
			e.nudge()
		}
		return made, err
	}
}

// atWork reports whether a run goes on or is about to.
func atWork(h *checkpoint.Head) bool {
	return h.State == checkpoint.ThreadBusy || awake(h) || (h.State != checkpoint.ThreadInterrupted && len(h.Queue) > 0)
}

// twin is the head of a copy.
func (e *Engine) twin(source *checkpoint.Head, req CopyRequest) checkpoint.Head {
	h := e.draft(req.Thread)
	h.Graph, h.Version, h.Metadata = source.Graph, source.Version, source.Metadata
	h.TTL, h.Expires, h.Keep, h.State = source.TTL, source.Expires, source.Keep, source.State
	h.Checkpoint, h.Branched, h.Seq, h.FirstSeq = source.Checkpoint, source.Branched, source.Seq, source.FirstSeq
	h.Run, h.Open, h.Answered, h.Hold, h.Due = source.Run, source.Open, source.Answered, source.Hold, source.Due
	if req.Metadata != nil {
		h.Metadata = req.Metadata
	}
	return h
}

// copier reads what belongs to a thread into a change that makes a copy.
type copier struct {
	engine *Engine
	ctx    context.Context //nolint:containedctx // of the one call it is made for
	source checkpoint.Head
	t      *tx
	shift  uint64 // what is taken off the numbers of events
	bytes  int    // that were read
}

func (c *copier) read() error {
	for _, part := range []func() error{c.runs, c.questions, c.checkpoints, c.progress, c.events} {
		err := part()
		if own, ok := errors.AsType[*Error](err); ok {
			return own
		}
		if err != nil {
			return storeError(err)
		}
	}
	return nil
}

// hold counts what is part of the copy, and refuses what is too much.
func (c *copier) hold(bytes int) error {
	c.bytes += bytes
	if most := c.engine.opts.CopyBytes; c.bytes > most {
		return Errorf(ReasonChangeTooLarge,
			"what there is to copy has more than %d bytes; prune the thread, or fork it at a checkpoint", most).
			Beyond("max-copy-bytes", int64(most), int64(c.bytes))
	}
	return nil
}

// runs reads the runs, all but those that wait in the queue.
func (c *copier) runs() error {
	for before := uint64(0); ; {
		runs, err := c.engine.store.Runs(c.ctx, c.source.Thread, before, copiedCheckpoints)
		if err != nil {
			return err
		}
		for i := range runs {
			r := runs[i]
			before = r.Order
			if r.State == checkpoint.RunQueued {
				continue
			}
			if err := c.hold(r.Size()); err != nil {
				return err
			}
			r.Thread, r.Revision = c.t.Thread, 0
			c.t.Runs = append(c.t.Runs, r)
		}
		if !checkpoint.IsPart(runs, copiedCheckpoints, (*checkpoint.Run).Size) {
			return nil
		}
	}
}

func (c *copier) questions() error {
	var full error
	err := c.engine.eachInterrupt(c.ctx, checkpoint.InterruptQuery{Thread: c.source.Thread}, func(q *checkpoint.Interrupt) {
		if full == nil {
			full = c.hold(q.Size())
			c.t.Interrupts = append(c.t.Interrupts, *q)
		}
	})
	c.t.Interrupts = c.own(c.t.Interrupts)
	return cmp.Or(err, full)
}

// own makes questions those of the copy.
func (c *copier) own(list []checkpoint.Interrupt) []checkpoint.Interrupt {
	list = slices.Clone(list)
	for i := range list {
		list[i].Thread, list[i].Change, list[i].Revision = c.t.Thread, 0, 0
	}
	return list
}

// checkpoints reads the newest ones, and older ones that are needed.
func (c *copier) checkpoints() error {
	needed := map[string]bool{c.source.Checkpoint: true}
	limit := copiedCheckpoints
	for i := range c.t.Runs {
		r := &c.t.Runs[i]
		if r.ID != c.source.Run {
			continue
		}
		needed[r.Base], needed[r.Result] = true, true
		if r.Request.From != "" && c.source.State == checkpoint.ThreadInterrupted {
			limit = int(c.source.Seq) // it goes through the past, and may need any of it
		}
	}
	for i := range c.t.Interrupts {
		needed[c.t.Interrupts[i].Checkpoint] = true
	}
	newest, pool := map[string]bool{}, newCopyPool()
	for before := uint64(0); ; {
		list, err := c.engine.store.Checkpoints(c.ctx, checkpoint.CheckpointQuery{
			Thread: c.source.Thread, Everywhere: true, Before: before, Limit: copiedCheckpoints,
		})
		if err != nil {
			return err
		}
		portion := checkpoint.Portion{Limit: copiedCheckpoints}
		for _, cp := range list {
			portion.Take(cp.Size())
			before = cp.Seq
			lasts := !strings.Contains(cp.Namespace, ":") && !newest[cp.Namespace]
			newest[cp.Namespace] = true
			if within := len(c.t.Checkpoints) < limit; within || lasts || needed[cp.ID] {
				cp, bytes := pool.share(cp)
				if err := c.hold(bytes); err != nil {
					return err
				}
				c.t.Checkpoints = append(c.t.Checkpoints, cp)
				if within {
					c.t.Head.FirstSeq = max(c.source.FirstSeq, cp.Seq)
				}
			}
		}
		if !portion.Full() {
			break
		}
	}
	if c.source.Seq <= uint64(limit) {
		c.t.Head.FirstSeq = c.source.FirstSeq
	}
	slices.Reverse(c.t.Checkpoints)
	c.t.Whole = true
	return nil
}

// progress reads what is known of the supersteps that the thread is in.
func (c *copier) progress() error {
	var asked []checkpoint.Interrupt
	for _, cp := range c.t.Checkpoints {
		p, err := c.engine.store.Pending(c.ctx, c.source.Thread, cp.ID)
		if err != nil {
			return err
		}
		if err := c.hold(sizeOfProgress(&p)); err != nil {
			return err
		}
		c.t.Tasks = append(c.t.Tasks, p.Tasks...)
		c.t.Memos = append(c.t.Memos, p.Memos...)
		asked = append(asked, p.Interrupts...)
	}
	// Those of a superstep keep the order in which they were asked.
	place := make(map[string]int, len(asked))
	for i := range asked {
		place[asked[i].ID] = i + 1 // others come first
	}
	slices.SortStableFunc(c.t.Interrupts, func(a, b checkpoint.Interrupt) int {
		return cmp.Compare(place[a.ID], place[b.ID])
	})
	return nil
}

// sizeOfProgress is about how many bytes tasks and memos hold.
func sizeOfProgress(p *checkpoint.Pending) (n int) {
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

// events reads the log since the oldest checkpoint, and numbers it anew.
func (c *copier) events() error {
	first := max(c.source.FirstEvent, 1)
	if c.t.Head.FirstSeq > c.source.FirstSeq {
		for _, cp := range c.t.Checkpoints {
			if cp.Seq >= c.t.Head.FirstSeq {
				first = max(first, cp.Event)
				break
			}
		}
	}
	c.shift = first - 1
	for after := c.shift; after < c.source.LastEvent; {
		list, err := c.engine.store.Events(c.ctx, c.source.Thread, after, readBatch)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		after = list[len(list)-1].Seq
		if err := c.hold(sizeOf(list)); err != nil {
			return err
		}
		for _, ev := range list {
			ev.Seq = c.renumbered(ev.Seq)
			ev.Interrupts = c.own(ev.Interrupts)
			c.t.live = append(c.t.live, ev)
		}
	}
	c.t.Head.FirstEvent, c.t.Head.LastEvent = 1, uint64(len(c.t.live))
	for i, cp := range c.t.Checkpoints {
		own := *cp
		own.Event = c.renumbered(cp.Event)
		c.t.Checkpoints[i] = &own
	}
	for i := range c.t.Runs {
		r := &c.t.Runs[i]
		r.FirstEvent, r.LastEvent = c.renumbered(r.FirstEvent), c.renumbered(r.LastEvent)
	}
	return nil
}

// renumbered is the number of an event in the copy, 0 when it is not there.
func (c *copier) renumbered(n uint64) uint64 {
	if n <= c.shift {
		return 0
	}
	return n - c.shift
}
