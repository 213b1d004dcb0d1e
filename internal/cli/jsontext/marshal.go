package jsontext

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// MarshalMessage writes a message on one line as protojson does, except that a
// payload is written as its JSON value, character by character. As a string in a
// string it would not be readable, and query tools could not look inside.
func MarshalMessage(m proto.Message) []byte {
	w := &writer{}
	w.writeMessage(m.ProtoReflect())
	return w.buf.Bytes()
}

// MarshalList is MarshalMessage for a response that is a list. It writes empty
// lists too, so that programs can rely on them.
func MarshalList(m proto.Message) []byte {
	w := &writer{}
	r := m.ProtoReflect()
	set := presentFields(r)
	all := r.Descriptor().Fields()
	for i := range all.Len() {
		if d := all.Get(i); d.IsList() && !r.Has(d) {
			set = append(set, protoField{d, r.Get(d)})
		}
	}
	w.writeFields(set)
	return w.buf.Bytes()
}

// IndentText breaks JSON text into lines. Numbers and the order of keys stay
// unchanged. It returns text that is not JSON as it is.
func IndentText(text []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return text
	}
	return b.Bytes()
}

// CompactText puts JSON text on a single line. Numbers and the order of keys stay
// unchanged. It returns text that is not JSON as it is.
func CompactText(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return text
	}
	return b.String()
}

// writer writes messages as JSON, with the fields in the order of the contract.
type writer struct{ buf bytes.Buffer }

type protoField struct {
	descriptor protoreflect.FieldDescriptor
	value      protoreflect.Value
}

func (w *writer) writeMessage(m protoreflect.Message) {
	if p, ok := m.Interface().(*graphdv1.Payload); ok {
		w.writePayload(p)
		return
	}
	if m.Descriptor().ParentFile().Package() == "google.protobuf" {
		w.writeWellKnown(m)
		return
	}
	w.writeFields(presentFields(m))
}

func presentFields(m protoreflect.Message) []protoField {
	var fields []protoField
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		fields = append(fields, protoField{d, v})
		return true
	})
	return fields
}

func (w *writer) writeFields(fields []protoField) {
	slices.SortFunc(fields, func(a, b protoField) int { return cmp.Compare(a.descriptor.Index(), b.descriptor.Index()) })
	w.buf.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.writeString(f.descriptor.JSONName())
		w.buf.WriteByte(':')
		w.writeValue(f)
	}
	w.buf.WriteByte('}')
}

func (w *writer) writeValue(f protoField) {
	switch {
	case f.descriptor.IsMap():
		w.writeMap(f)
	case f.descriptor.IsList():
		w.buf.WriteByte('[')
		for i := range f.value.List().Len() {
			if i > 0 {
				w.buf.WriteByte(',')
			}
			w.writeSingular(f.descriptor, f.value.List().Get(i))
		}
		w.buf.WriteByte(']')
	default:
		w.writeSingular(f.descriptor, f.value)
	}
}

func (w *writer) writeMap(f protoField) {
	type entry struct {
		key   string
		value protoreflect.Value
	}
	var entries []entry
	f.value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		entries = append(entries, entry{k.String(), v})
		return true
	})
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	w.buf.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.writeString(e.key)
		w.buf.WriteByte(':')
		w.writeSingular(f.descriptor.MapValue(), e.value)
	}
	w.buf.WriteByte('}')
}

func (w *writer) writeSingular(d protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch d.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.writeMessage(v.Message())
	case protoreflect.EnumKind:
		if known := d.Enum().Values().ByNumber(v.Enum()); known != nil {
			w.writeString(string(known.Name()))
			return
		}
		w.buf.WriteString(strconv.Itoa(int(v.Enum())))
	case protoreflect.BytesKind:
		w.writeString(base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.StringKind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.writeString(v.String())
	case protoreflect.BoolKind, protoreflect.FloatKind, protoreflect.DoubleKind,
		protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		w.buf.WriteString(v.String())
	}
}

// writePayload writes the value of a payload. A payload that is not JSON keeps its
// message.
func (w *writer) writePayload(p *graphdv1.Payload) {
	text, ok := p.GetBody().(*graphdv1.Payload_Json)
	if ok && json.Valid([]byte(text.Json)) {
		w.buf.WriteString(CompactText(text.Json))
		return
	}
	w.writeWellKnown(p.ProtoReflect())
}

// writeWellKnown writes a well-known type with protojson, and removes its spaces,
// which vary by design.
func (w *writer) writeWellKnown(m protoreflect.Message) {
	text, err := protojson.Marshal(m.Interface())
	if err != nil {
		w.writeString(err.Error())
		return
	}
	w.buf.WriteString(CompactText(string(text)))
}

func (w *writer) writeString(s string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return
	}
	w.buf.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
