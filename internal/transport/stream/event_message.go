package stream

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// sendLogEvent sends one event. After a large event it waits until the client has
// taken it, so that streams hold nothing while they wait for their clients.
func (a *activeStream) sendLogEvent(ctx context.Context, e *checkpoint.Event) error {
	if a.lastLargeSize > 0 {
		if err := a.sender.waitReady(ctx, a.lastLargeSize); err != nil {
			return err
		}
	}
	a.memory.RefusesReads = true // the stream holds the events after this event
	f, err := a.encodeEvent(ctx, e)
	a.memory.RefusesReads = false
	switch {
	case runtime.IsMemoryRefused(err):
		return err
	case err != nil:
		return a.withResumePosition(err)
	}
	if a.lastLargeSize = 0; f.IsLarge() {
		a.lastLargeSize = f.SendSize()
	}
	err = a.sender.OfferMessage(ctx, f)
	a.memory.Release()
	return err
}

// encodedEventKey identifies an encoded form of an event. Events are shared by all
// followers of a thread and never change.
type encodedEventKey struct {
	event               *checkpoint.Event
	mark                uint32 // in the cursor
	hasCheckpointValues bool   // whether checkpoints come with values
}

// encodeEvent returns the encoded message of an event.
func (a *activeStream) encodeEvent(ctx context.Context, e *checkpoint.Event) (*flow.EncodedMessage, error) {
	if !a.isShared() {
		out, err := a.newEventMessage(ctx, e)
		if err != nil {
			return nil, err
		}
		return flow.EncodeMessage(out)
	}
	k := encodedEventKey{event: e, hasCheckpointValues: a.HasCheckpointValues}
	if e.Seq == a.lastSeq {
		k.mark = a.mark
	}
	if f := a.encoded.FindMessage(k); f != nil {
		return f, nil
	}
	out, err := a.newEventMessage(ctx, e)
	if err != nil {
		return nil, err
	}
	f, err := flow.EncodeMessage(out)
	if err != nil {
		return nil, err
	}
	a.encoded.AddMessage(k, f)
	return f, nil
}

// isShared reports whether other streams follow the thread here as well.
func (a *activeStream) isShared() bool {
	f, ok := a.follower.(interface{ IsShared() bool })
	return ok && a.encoded != nil && f.IsShared()
}

// newEventMessage returns the message of an event.
func (a *activeStream) newEventMessage(ctx context.Context, e *checkpoint.Event) (*graphdv1.Event, error) {
	size := largePartsSize(e)
	if size >= flow.LargeMessageBytes {
		if err := a.reserveMemory(ctx, size); err != nil {
			return nil, err
		}
	}
	values, err := a.readValues(ctx, e)
	if err != nil {
		return nil, err
	}
	size += len(values)
	out := wire.EventToProto(e, a.head.Thread, a.head.LogID, values)
	if e.Seq == a.lastSeq {
		out.Cursor = a.currentCursor()
	}
	return a.omitLargeValue(out, size), nil
}

// largePartsSize returns the number of bytes of those parts of an event that may be
// large.
func largePartsSize(e *checkpoint.Event) int {
	size := len(e.Value)
	return size + largeInterruptPartsSize(e.Interrupts)
}

// largeInterruptPartsSize is how many bytes questions have that may be many.
func largeInterruptPartsSize(questions []checkpoint.Interrupt) int {
	size := 0
	for i := range questions {
		q := &questions[i]
		size += len(q.Message) + len(q.Value) + len(q.Schema) + len(q.Default) + len(q.Response)
	}
	return size
}

// reserveMemory reserves memory for a large event until it is sent. An event that
// streams share is encoded for each of them.
func (a *activeStream) reserveMemory(ctx context.Context, size int) error {
	if f, ok := a.follower.(interface {
		ReserveMemory(ctx context.Context, memory *runtime.CallMemory, bytes int) error
	}); ok {
		return f.ReserveMemory(ctx, a.memory, size)
	}
	return nil
}

// readValues returns the state or the input that an event shows. The log keeps only
// a reference to it.
func (a *activeStream) readValues(ctx context.Context, e *checkpoint.Event) (payload.JSON, error) {
	if e.Kind == checkpoint.EventCheckpoint && !a.HasCheckpointValues {
		return "", nil
	}
	if e.Value != "" || e.Checkpoint == "" {
		return e.Value, nil
	}
	var values payload.JSON
	var err error
	switch {
	case e.Kind == checkpoint.EventValues, e.Kind == checkpoint.EventCheckpoint && a.HasCheckpointValues:
		values, err = a.Engine.ValuesAt(ctx, a.memory, a.head.Thread, e.Namespace, e.Checkpoint)
	case e.Kind == checkpoint.EventTask:
		values, err = a.Engine.InputAt(ctx, a.memory, a.head.Thread, e.Namespace, e.Checkpoint, e.Node)
	}
	if errors.Is(err, checkpoint.ErrCheckpointNotFound) ||
		errors.Is(err, &runtime.Error{Reason: runtime.ReasonCheckpointNotFound}) {
		return "", nil // the run was rolled back
	}
	return values, err
}

// omitLargeValue removes the value from a message that is too large. size is the
// size of the value, so that small messages, nearly all, are not measured.
func (r *Registry) omitLargeValue(e *graphdv1.Event, size int) *graphdv1.Event {
	const spare = 64 << 10
	if size+spare <= r.MaxMessageBytes || proto.Size(e) <= r.MaxMessageBytes {
		return e
	}
	wire.OmitValue(e)
	if proto.Size(e) > r.MaxMessageBytes {
		wire.OmitInterruptValues(e)
	}
	return e
}
