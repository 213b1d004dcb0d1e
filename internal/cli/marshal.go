package cli

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

// Marshal writes a message on one line as protojson does, except that a
// payload is the JSON value it carries, character by character: as a string in
// a string nobody could read it, and no query language could look inside.
func Marshal(m proto.Message) []byte {
	w := &writer{}
	w.message(m.ProtoReflect())
	return w.b.Bytes()
}

// marshalWhole is Marshal for a response that is a list: its lists are there
// when they are empty too, so that programs can count on them.
func marshalWhole(m proto.Message) []byte {
	w := &writer{}
	r := m.ProtoReflect()
	set := fieldsOf(r)
	all := r.Descriptor().Fields()
	for i := range all.Len() {
		if d := all.Get(i); d.IsList() && !r.Has(d) {
			set = append(set, field{d, r.Get(d)})
		}
	}
	w.fields(set)
	return w.b.Bytes()
}

// Indent breaks JSON text into lines. Numbers and the order of keys stay.
func Indent(text []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return text
	}
	return b.Bytes()
}

// Compact puts JSON text on one line. Numbers and the order of keys stay.
func Compact(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return text
	}
	return b.String()
}

// writer writes messages as JSON. Fields come in the order of the contract.
type writer struct{ b bytes.Buffer }

type field struct {
	d protoreflect.FieldDescriptor
	v protoreflect.Value
}

func (w *writer) message(m protoreflect.Message) {
	if p, ok := m.Interface().(*graphdv1.Payload); ok {
		w.payload(p)
		return
	}
	if m.Descriptor().ParentFile().Package() == "google.protobuf" {
		w.wellKnown(m)
		return
	}
	w.fields(fieldsOf(m))
}

func fieldsOf(m protoreflect.Message) []field {
	var fields []field
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		fields = append(fields, field{d, v})
		return true
	})
	return fields
}

func (w *writer) fields(fields []field) {
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.d.Index(), b.d.Index()) })
	w.b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.text(f.d.JSONName())
		w.b.WriteByte(':')
		w.value(f)
	}
	w.b.WriteByte('}')
}

func (w *writer) value(f field) {
	switch {
	case f.d.IsMap():
		w.object(f)
	case f.d.IsList():
		w.b.WriteByte('[')
		for i := range f.v.List().Len() {
			if i > 0 {
				w.b.WriteByte(',')
			}
			w.single(f.d, f.v.List().Get(i))
		}
		w.b.WriteByte(']')
	default:
		w.single(f.d, f.v)
	}
}

func (w *writer) object(f field) {
	type entry struct {
		key   string
		value protoreflect.Value
	}
	var entries []entry
	f.v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		entries = append(entries, entry{k.String(), v})
		return true
	})
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	w.b.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.text(e.key)
		w.b.WriteByte(':')
		w.single(f.d.MapValue(), e.value)
	}
	w.b.WriteByte('}')
}

func (w *writer) single(d protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch d.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.message(v.Message())
	case protoreflect.EnumKind:
		if known := d.Enum().Values().ByNumber(v.Enum()); known != nil {
			w.text(string(known.Name()))
			return
		}
		w.b.WriteString(strconv.Itoa(int(v.Enum())))
	case protoreflect.BytesKind:
		w.text(base64.StdEncoding.EncodeToString(v.Bytes()))
	case protoreflect.StringKind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.text(v.String())
	case protoreflect.BoolKind, protoreflect.FloatKind, protoreflect.DoubleKind,
		protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		w.b.WriteString(v.String())
	}
}

// payload writes what a payload carries; what is not JSON keeps its message.
func (w *writer) payload(p *graphdv1.Payload) {
	text, ok := p.GetBody().(*graphdv1.Payload_Json)
	if ok && json.Valid([]byte(text.Json)) {
		w.b.WriteString(Compact(text.Json))
		return
	}
	w.wellKnown(p.ProtoReflect())
}

// wellKnown leaves a message to protojson, whose spaces vary by design.
func (w *writer) wellKnown(m protoreflect.Message) {
	text, err := protojson.Marshal(m.Interface())
	if err != nil {
		w.text(err.Error())
		return
	}
	w.b.WriteString(Compact(string(text)))
}

func (w *writer) text(s string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return
	}
	w.b.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
