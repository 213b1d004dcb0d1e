package transport

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is what a kind of message takes in memory, as far as that can be told
// beforehand.
type shape struct {
	empty  int // bytes of a message without fields
	fields map[protowire.Number]fieldShape
}

type fieldShape struct {
	message protoreflect.MessageDescriptor // nil = none
	each    int                            // bytes of a value besides its text
	packed  int                            // bytes of a number in a list
}

// shapes are those of the messages that came so far. Its zero value is ready.
type shapes struct {
	mu  sync.RWMutex
	all map[protoreflect.MessageDescriptor]*shape
}

// What Go takes for parts of a message.
const (
	bookkeeping = 40
	textHeader  = 16
	listHeader  = 24
	word        = 8
	mapEntry    = 64
)

func (k *shapes) of(d protoreflect.MessageDescriptor) *shape {
	k.mu.RLock()
	known := k.all[d]
	k.mu.RUnlock()
	if known != nil {
		return known
	}
	known = shapeOf(d)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = make(map[protoreflect.MessageDescriptor]*shape)
	}
	k.all[d] = known
	return known
}

func shapeOf(d protoreflect.MessageDescriptor) *shape {
	all := d.Fields()
	s := &shape{empty: bookkeeping, fields: make(map[protowire.Number]fieldShape, all.Len())}
	for i := range all.Len() {
		f := all.Get(i)
		part := fieldShape{message: f.Message(), each: word, packed: packedSize(f.Kind())}
		switch {
		case f.IsMap():
			part.each = mapEntry
			s.empty += word
		case f.IsList():
			s.empty += listHeader
		case f.Kind() == protoreflect.StringKind:
			s.empty += textHeader
		case f.Kind() == protoreflect.BytesKind:
			s.empty += listHeader
		default:
			s.empty += word
		}
		if f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind || f.ContainingOneof() != nil {
			part.each = listHeader
		}
		s.fields[f.Number()] = part
	}
	if d.IsMapEntry() {
		s.empty = 0 // only what is in it is kept
	}
	return s
}

func packedSize(k protoreflect.Kind) int {
	if k == protoreflect.BoolKind {
		return 1
	}
	if slices.Contains(halfWords(), k) {
		return word / 2
	}
	return word
}

func halfWords() []protoreflect.Kind {
	return []protoreflect.Kind{
		protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind,
		protoreflect.Sfixed32Kind, protoreflect.Fixed32Kind, protoreflect.FloatKind,
	}
}

// maxNested is how deep messages may lie in one another.
const maxNested = 64

// decodedSize is about how many bytes of memory an encoded message takes once it
// is decoded; it stops counting beyond most. A part of two bytes may take
// hundreds.
func (k *shapes) decodedSize(d protoreflect.MessageDescriptor, bytes []byte, most int) int {
	return k.decodedWithin(d, bytes, most, maxNested)
}

func (k *shapes) decodedWithin(d protoreflect.MessageDescriptor, bytes []byte, most, levels int) int {
	if levels == 0 {
		return most + 1
	}
	s := k.of(d)
	size := s.empty
	for len(bytes) > 0 && size <= most {
		number, kind, n := protowire.ConsumeTag(bytes)
		if n < 0 {
			return size // decoding says what is wrong
		}
		bytes = bytes[n:]
		if n = protowire.ConsumeFieldValue(number, kind, bytes); n < 0 {
			return size
		}
		field, known := s.fields[number]
		switch {
		case !known:
			size += n + word // it is kept as it is
		case kind != protowire.BytesType:
			size += field.each
		case field.message != nil:
			inside, _ := protowire.ConsumeBytes(bytes)
			size += field.each + k.decodedWithin(field.message, inside, most-size, levels-1)
		case field.each == listHeader:
			size += field.each + n
		default: // numbers, packed
			size += n * field.packed
		}
		bytes = bytes[n:]
	}
	return size
}
