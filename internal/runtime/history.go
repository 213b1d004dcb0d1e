package runtime

import (
	"context"
	"errors"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// readPage is how many bytes of checkpoints one page of a history reads at most,
// give or take one read of the store.
const readPage = 16 * checkpoint.ReadBytes

// States lists older states of a namespace, newest first: at most as many as the
// query says, and fewer when they are large. more says that there may be others.
// The states are read, put together and let go of one part after the other.
func (e *Engine) States(ctx context.Context, q HistoryQuery) (list []Snapshot, more bool, err error) {
	room := e.shownIn(ctx, q.Bytes)
	err = e.readLarge(ctx, room, loadPatience, func() error {
		list, more, err = e.readStates(ctx, q, room)
		return err
	})
	return list, more, err
}

func (e *Engine) readStates(ctx context.Context, q HistoryQuery, room *load) (list []Snapshot, more bool, err error) {
	head, err := e.Thread(ctx, q.Thread)
	if err != nil {
		return nil, false, err
	}
	h := &history{reader: reader{engine: e, ctx: ctx, head: &head, room: q.Bytes, load: room}, query: q}
	for {
		limit := 0
		if q.Limit > 0 {
			limit = q.Limit - len(h.list) + 1
		}
		part, err := e.store.Checkpoints(ctx, checkpoint.CheckpointQuery{
			Thread: q.Thread, Namespace: q.Namespace, Before: h.query.Before, Limit: limit, AnyTask: q.Namespace != "",
		})
		if err != nil {
			return nil, false, storeError(err)
		}
		portion := checkpoint.Portion{Limit: limit}
		for _, cp := range part {
			portion.Take(cp.Size())
			h.read += cp.Size()
		}
		if err := room.within(h.read); err != nil {
			return nil, false, err
		}
		done, err := h.add(part)
		if err != nil || done {
			return h.list, true, err
		}
		if !portion.Full() {
			return h.list, false, nil
		}
	}
}

// history is a page of a history that is being put together.
type history struct {
	reader

	query HistoryQuery // Before is where the page goes on
	list  []Snapshot
	bytes int  // that list holds
	read  int  // that were read for it
	alone bool // what was asked is read for each snapshot alone
}

// add adds snapshots of checkpoints, and reports whether the page ends before
// the last of them, or because enough was read.
func (h *history) add(part []*checkpoint.Checkpoint) (done bool, err error) {
	for len(part) > 0 {
		some, results, err := h.someResults(part)
		if err != nil {
			return false, err
		}
		h.show(some, nil)
		for _, cp := range some {
			if h.query.Limit > 0 && len(h.list) == h.query.Limit {
				return true, nil
			}
			if done, err := h.addOne(cp, results); err != nil || done {
				return done, err
			}
			h.query.Before = cp.Seq
		}
		part = part[len(some):]
	}
	return h.read >= readPage, nil
}

// someResults is what the tasks of the first of some checkpoints did: of as many
// of them as one answer takes.
func (h *history) someResults(part []*checkpoint.Checkpoint) ([]*checkpoint.Checkpoint, deeds, error) {
	for {
		results, err := h.results(part)
		switch {
		case !errors.Is(err, errManyResults):
			return part, results, err
		case len(part) == 1:
			return nil, nil, tooMuch(part[0], h.room)
		}
		part = part[:len(part)/2]
	}
}

// addOne adds a snapshot, unless it is too much beside those that are there.
func (h *history) addOne(cp *checkpoint.Checkpoint, results deeds) (done bool, err error) {
	g, err := h.engine.graphAt(h.head, cp)
	if err != nil {
		return false, err
	}
	snap, err := h.snapshot(pregel.Load(g, cp, true, pregel.Limits{}), results)
	bare := *cp // without the state: Values shows it
	bare.Channels = nil
	size := bare.Size() + len(snap.Values) + h.held
	over := errors.Is(err, errManyResults) || h.room > 0 && h.bytes+size > h.room
	switch {
	case over && len(h.list) > 0:
		return true, nil
	case over:
		return false, tooMuch(cp, h.room)
	case err != nil:
		return false, err
	}
	snap.Checkpoint = &bare
	snap.LastEvent, snap.LogID = h.head.LastEvent, h.head.LogID
	h.list = append(h.list, snap)
	h.bytes += size
	return false, nil
}

// snapshot is the snapshot of one state. What the subgraphs of all tasks on the
// page have asked is read together, unless that is too much.
func (h *history) snapshot(s *pregel.State, results deeds) (Snapshot, error) {
	one := []*checkpoint.Checkpoint{s.Checkpoint()}
	if h.alone {
		h.show(one, nil)
	}
	h.held = 0
	snap, err := h.past(s, results, h.query.Values)
	if errors.Is(err, errManyResults) && !h.alone {
		h.alone = true
		h.show(one, nil)
		h.held = 0
		snap, err = h.past(s, results, h.query.Values)
	}
	return snap, err
}

// tooMuch refuses a snapshot that no answer takes.
func tooMuch(cp *checkpoint.Checkpoint, room int) error {
	return Errorf(ReasonPayloadTooLarge,
		"the state at checkpoint %q has more than %d bytes, with what its tasks have returned and asked; "+
			"ask for it alone with GetState and a few keys, or for subgraphs by their namespaces", cp.ID, room).
		With("checkpointId", cp.ID).With("limitBytes", strconv.Itoa(room)).Beyond("max-message", int64(room), 0)
}
