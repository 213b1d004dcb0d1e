package transport

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// show sends one event. After a large one the next is read when the client has taken
// it: while streams wait for their clients they hold nothing.
func (w *watching) show(ctx context.Context, e *checkpoint.Event) error {
	if w.large > 0 {
		if err := w.out.ready(ctx, w.large); err != nil {
			return err
		}
	}
	w.room.Refuses = true // the stream holds the events that come after this one
	f, err := w.frame(ctx, e)
	w.room.Refuses = false
	switch {
	case runtime.IsRefused(err):
		return err
	case err != nil:
		return w.broken(err)
	}
	if w.large = 0; f.isLarge() {
		w.large = f.size()
	}
	err = w.out.offer(ctx, f)
	w.room.End()
	return err
}

// frame is what is sent of an event, encoded.
func (w *watching) frame(ctx context.Context, e *checkpoint.Event) (*frame, error) {
	if !w.crowded() {
		out, err := w.message(ctx, e)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
	k := frameKey{event: e, debug: w.debug}
	if e.Seq == w.after {
		k.mark = w.mark
	}
	if f := w.frames.find(k); f != nil {
		return f, nil
	}
	out, err := w.message(ctx, e)
	if err != nil {
		return nil, err
	}
	f, err := encode(out)
	if err != nil {
		return nil, err
	}
	w.frames.keep(k, f)
	return f, nil
}

// crowded reports whether others follow the thread here as well.
func (w *watching) crowded() bool {
	f, ok := w.follower.(interface{ Crowded() bool })
	return ok && w.frames != nil && f.Crowded()
}

// message is what is sent of an event.
func (w *watching) message(ctx context.Context, e *checkpoint.Event) (*graphdv1.Event, error) {
	size := sizeOfEvent(e)
	if size >= largeFrame {
		if err := w.reserve(ctx, size); err != nil {
			return nil, err
		}
	}
	values, err := w.valuesOf(ctx, e)
	if err != nil {
		return nil, err
	}
	size += len(values)
	out := eventOut(e, w.head.Thread, w.head.LogID, values)
	if e.Seq == w.after {
		out.Cursor = w.cursor()
	}
	return w.fit(out, size), nil
}

// sizeOfEvent is how many bytes an event has that may be many.
func sizeOfEvent(e *checkpoint.Event) int {
	size := len(e.Value)
	for i := range e.Interrupts {
		size += len(e.Interrupts[i].Value) + len(e.Interrupts[i].Schema) + len(e.Interrupts[i].Response)
	}
	return size
}

// reserve takes room for what a large event holds until it is sent. What is shared with
// other streams is encoded for each of them.
func (w *watching) reserve(ctx context.Context, size int) error {
	if f, ok := w.follower.(interface {
		Reserve(ctx context.Context, bytes int) error
	}); ok {
		return f.Reserve(ctx, size)
	}
	return nil
}

// valuesOf finds the state an event shows. Logs keep a reference to it only.
func (w *watching) valuesOf(ctx context.Context, e *checkpoint.Event) (payload.JSON, error) {
	if e.Value != "" || e.Checkpoint == "" {
		return e.Value, nil
	}
	var values payload.JSON
	var err error
	switch {
	case e.Kind == checkpoint.EventValues, e.Kind == checkpoint.EventCheckpoint && w.debug:
		values, err = w.engine.StateAt(ctx, w.head.Thread, e.Namespace, e.Checkpoint)
	case e.Kind == checkpoint.EventTask:
		values, err = w.engine.InputAt(ctx, w.head.Thread, e.Namespace, e.Checkpoint, e.Node)
	}
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) ||
		errors.Is(err, &runtime.Error{Reason: runtime.ReasonCheckpointNotFound}) {
		return "", nil // the run was rolled back
	}
	return values, err
}

// fit takes the value out of a message that is too large. size is that of
// what it carries, so that small messages, nearly all, are not measured.
func (s *streams) fit(e *graphdv1.Event, size int) *graphdv1.Event {
	const spare = 64 << 10
	if size+spare > s.maxBytes && proto.Size(e) > s.maxBytes {
		omitValue(e)
	}
	return e
}

// maxOpenIDs bounds Run.open_interrupt_ids.
const maxOpenIDs = 500

// describe converts a run with the questions it waits for.
func (p *pump) describe(ctx context.Context, run checkpoint.Run, logID string) (*graphdv1.Run, error) {
	if run.State != checkpoint.RunInterrupted {
		return runOut(run, logID, nil), nil
	}
	ids, err := p.engine.OpenInterruptIDs(ctx, run.Thread, run.ID, maxOpenIDs)
	if err != nil {
		return nil, err
	}
	return runOut(run, logID, ids), nil
}
