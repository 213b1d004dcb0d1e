package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// changeBatch collects changes of interrupts for one message.
type changeBatch struct {
	limit int // of changes, 0 = one, in the fields of the message itself
	parts []*flow.EncodedMessage
	bytes int // of the parts
}

// Bounds of a message with changes. A message below flow.LargeMessageBytes is cheaper to send.
const (
	maxBatchChanges = 256
	maxBatchBytes   = flow.LargeMessageBytes / 2
)

// HasRoom reports whether one more change may be added.
func (b *changeBatch) HasRoom() bool {
	return len(b.parts) < max(b.limit, 1) && b.bytes < maxBatchBytes
}

// AddChange adds a change that encodeChange has encoded.
func (b *changeBatch) AddChange(part *flow.EncodedMessage) {
	b.parts, b.bytes = append(b.parts, part), b.bytes+len(part.Bytes)
}

// BuildMessage returns the message of the changes and a token. Encoded messages one after the
// other are the encoding of the message with the fields of all: so no change is encoded again.
func (b *changeBatch) BuildMessage(token string) (*flow.EncodedMessage, error) {
	if token == "" && len(b.parts) == 1 {
		return b.parts[0], nil
	}
	end, err := flow.EncodeMessage(&graphdv1.InterruptChange{ResumeToken: token})
	if err != nil {
		return nil, err
	}
	all := make([]byte, 0, b.bytes+len(end.Bytes))
	for _, part := range b.parts {
		all = append(all, part.Bytes...)
	}
	return flow.NewEncodedMessage(append(all, end.Bytes...)), nil
}

// encodedChangeKey identifies the encoded form of a change. The followers of a tenant share
// changes, which never change.
type encodedChangeKey struct {
	change   *checkpoint.Interrupt
	isGone   bool
	isListed bool // in InterruptChange.changes
	allowed  runtime.QuestionActions
}

// encodeChange encodes a change once for all watches whose callers may do the same with it.
func (w *interruptWatch) encodeChange(in *checkpoint.Interrupt, isGone bool, allowed runtime.QuestionActions) (*flow.EncodedMessage, error) {
	key := encodedChangeKey{change: in, isGone: isGone, isListed: w.maxChanges > 0, allowed: allowed}
	if m := w.encoded.FindMessage(key); m != nil {
		return m, nil
	}
	m, err := w.encodeAlone(in, isGone, allowed)
	if err == nil {
		w.encoded.AddMessage(key, m)
	}
	return m, err
}

// encodeAlone encodes an interrupt that no other watch has.
func (w *interruptWatch) encodeAlone(in *checkpoint.Interrupt, isGone bool, allowed runtime.QuestionActions) (*flow.EncodedMessage, error) {
	m := &graphdv1.InterruptChange{Interrupt: wire.InterruptToProto(*in), Gone: isGone}
	m.Interrupt.Allowed = wire.ActionsToProto(allowed)
	if w.maxChanges > 0 {
		m = &graphdv1.InterruptChange{Changes: []*graphdv1.InterruptChange{m}}
	}
	return flow.EncodeMessage(m)
}
