package flow

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// messageLayout holds the memory that a type of message takes, as far as its
// descriptor determines it.
type messageLayout struct {
	emptySize int // bytes of a message without fields
	fields    map[protowire.Number]fieldLayout
}

type fieldLayout struct {
	message    protoreflect.MessageDescriptor // nil = none
	valueSize  int                            // bytes of a value besides its text
	packedSize int                            // bytes of a number in a list
}

// layoutCache holds the layouts of the message types seen so far. Its zero value is
// ready.
type layoutCache struct {
	mu           sync.RWMutex
	byDescriptor map[protoreflect.MessageDescriptor]*messageLayout
}

// Sizes of the parts of a message in Go.
const (
	messageStateSize = 40
	stringHeaderSize = 16
	sliceHeaderSize  = 24
	wordSize         = 8
	mapEntrySize     = 64
)

func (l *layoutCache) layoutOf(d protoreflect.MessageDescriptor) *messageLayout {
	l.mu.RLock()
	known := l.byDescriptor[d]
	l.mu.RUnlock()
	if known != nil {
		return known
	}
	known = newMessageLayout(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byDescriptor == nil {
		l.byDescriptor = make(map[protoreflect.MessageDescriptor]*messageLayout)
	}
	l.byDescriptor[d] = known
	return known
}

func newMessageLayout(d protoreflect.MessageDescriptor) *messageLayout {
	all := d.Fields()
	s := &messageLayout{emptySize: messageStateSize, fields: make(map[protowire.Number]fieldLayout, all.Len())}
	for i := range all.Len() {
		f := all.Get(i)
		part := fieldLayout{message: f.Message(), valueSize: wordSize, packedSize: packedSize(f.Kind())}
		switch {
		case f.IsMap():
			part.valueSize = mapEntrySize
			s.emptySize += wordSize
		case f.IsList():
			s.emptySize += sliceHeaderSize
		case f.Kind() == protoreflect.StringKind:
			s.emptySize += stringHeaderSize
		case f.Kind() == protoreflect.BytesKind:
			s.emptySize += sliceHeaderSize
		default:
			s.emptySize += wordSize
		}
		if f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind || f.ContainingOneof() != nil {
			part.valueSize = sliceHeaderSize
		}
		s.fields[f.Number()] = part
	}
	if d.IsMapEntry() {
		s.emptySize = 0 // a map keeps only the key and the value
	}
	return s
}

func packedSize(k protoreflect.Kind) int {
	if k == protoreflect.BoolKind {
		return 1
	}
	if slices.Contains(fourByteKinds(), k) {
		return wordSize / 2
	}
	return wordSize
}

func fourByteKinds() []protoreflect.Kind {
	return []protoreflect.Kind{
		protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind,
		protoreflect.Sfixed32Kind, protoreflect.Fixed32Kind, protoreflect.FloatKind,
	}
}

// maxNested is the depth to which messages may be nested.
const maxNested = 64

// decodedSize estimates the bytes of memory that an encoded message takes once it
// is decoded. It stops counting beyond most. A part of two bytes may take hundreds.
func (l *layoutCache) decodedSize(d protoreflect.MessageDescriptor, bytes []byte, most int) int {
	return l.decodedSizeNested(d, bytes, most, maxNested)
}

func (l *layoutCache) decodedSizeNested(d protoreflect.MessageDescriptor, bytes []byte, most, levels int) int {
	if levels == 0 {
		return most + 1
	}
	s := l.layoutOf(d)
	size := s.emptySize
	for len(bytes) > 0 && size <= most {
		number, kind, n := protowire.ConsumeTag(bytes)
		if n < 0 {
			return size // the decoder reports the error
		}
		bytes = bytes[n:]
		if n = protowire.ConsumeFieldValue(number, kind, bytes); n < 0 {
			return size
		}
		field, known := s.fields[number]
		switch {
		case !known:
			size += n + wordSize // it is kept as it is
		case kind != protowire.BytesType:
			size += field.valueSize
		case field.message != nil:
			inside, _ := protowire.ConsumeBytes(bytes)
			size += field.valueSize + l.decodedSizeNested(field.message, inside, most-size, levels-1)
		case field.valueSize == sliceHeaderSize:
			size += field.valueSize + n
		default: // numbers, packed
			size += n * field.packedSize
		}
		bytes = bytes[n:]
	}
	return size
}
