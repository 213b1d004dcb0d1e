package web

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// memory bounds what messages of all clients together hold. The last quarter of it is for small
// ones, so that these go on while large ones hold the rest. No request waits for room: one that
// does not read or send would hold up others.
type memory struct {
	most int64

	mu   sync.Mutex
	held int64
}

// smallBytes is what a message may hold that counts as small.
const smallBytes = 64 << 10

// largest returns what large messages may hold together.
func (m *memory) largest() int64 { return m.most - m.most/4 }

// reserved is what one message holds of a memory.
type reserved struct {
	of   *memory
	held int64
}

// grow makes a message hold n bytes more. It reports whether there is room for them: there is for
// one message alone.
func (r *reserved) grow(n int64) bool {
	m := r.of
	m.mu.Lock()
	defer m.mu.Unlock()
	most := m.most
	if r.held+n > smallBytes {
		most = m.largest()
	}
	if isAlone := m.held == r.held; !isAlone && m.held+n > most {
		return false
	}
	r.held += n
	m.held += n
	return true
}

// release gives back what a message holds.
func (r *reserved) release() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.held -= r.held
	r.held = 0
}

// Memory of what has been decoded, at most: two bytes may become a message.
const (
	messageBytes = 768 // of a message without values
	valueBytes   = 64  // of a value besides its text
)

// estimateJSON returns how much memory the message of a JSON text takes at most.
func estimateJSON(text []byte, _ protoreflect.MessageDescriptor) int64 {
	size := int64(len(text))
	inText := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{':
			size += messageBytes
		case c == ',', c == '[':
			size += valueBytes
		}
	}
	return size
}

// maxNested is the depth of messages to which they are counted.
const maxNested = 64

// estimateProto returns how much memory an encoded message takes at most.
func estimateProto(text []byte, d protoreflect.MessageDescriptor) int64 {
	return int64(len(text)) + estimateFields(text, d, maxNested)
}

func estimateFields(text []byte, d protoreflect.MessageDescriptor, levels int) int64 {
	size := int64(messageBytes)
	if levels == 0 {
		return size + int64(len(text))*messageBytes/2 // each two bytes may be one more
	}
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return size // the decoder tells of it
		}
		text = text[n:]
		if n = protowire.ConsumeFieldValue(number, kind, text); n < 0 {
			return size
		}
		size += valueBytes
		field := d.Fields().ByNumber(number)
		switch {
		case field == nil || kind != protowire.BytesType:
		case field.Message() != nil:
			inside, _ := protowire.ConsumeBytes(text)
			size += estimateFields(inside, field.Message(), levels-1)
		case field.IsPacked():
			size += int64(n) * 8 // a number of one byte takes a word
		}
		text = text[n:]
	}
	return size
}
