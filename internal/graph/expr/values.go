package expr

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/graphd-dev/graphd/internal/payload"
)

// carrier is a CEL value that remembers the JSON text it was read from.
type carrier interface{ carried() payload.JSON }

// decoder reads JSON text as CEL values, one level at a time.
type decoder struct {
	e     *evaluation
	where string // how messages name the value that is read
	// plain gives up the spelling of numbers, for values that are computed
	// with and not carried.
	plain bool
}

// NativeToValue lets CEL's own list type hold undecoded elements.
func (d decoder) NativeToValue(value any) ref.Val {
	if text, ok := value.(payload.JSON); ok {
		return d.value(text)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

func (d decoder) plainly() decoder {
	d.plain = true
	return d
}

func (d decoder) value(text payload.JSON) ref.Val {
	text = payload.Trim(text)
	switch payload.KindOf(text) {
	case payload.None, payload.NullKind:
		return types.NullValue
	case payload.Bool:
		return types.Bool(text == "true")
	case payload.Number:
		return d.number(text)
	case payload.String:
		return d.text(text)
	case payload.ArrayKind:
		return d.list(text)
	case payload.ObjectKind:
		return d.object(text)
	}
	return types.NewErr("unreadable JSON value")
}

func (d decoder) meter() *meter {
	if d.e == nil {
		return nil
	}
	return &d.e.meter
}

func (d decoder) text(text payload.JSON) ref.Val {
	m := d.meter()
	m.read(int64(len(text)))
	if strings.IndexByte(string(text), '\\') >= 0 {
		m.alloc(int64(len(text)), 3)
	}
	s, err := payload.Unquote(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(s)
}

// list splits an array into its elements. What grows is charged before it does.
func (d decoder) list(text payload.JSON) ref.Val {
	m := d.meter()
	m.read(int64(len(text)))
	var items []payload.JSON
	err := payload.EachElement(text, func(item payload.JSON) bool {
		if len(items) == cap(items) {
			m.alloc(int64(2*cap(items)+1), 16)
		}
		items = append(items, item)
		return true
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return &list{Lister: types.NewList(d, items), text: text, d: d}
}

// entrySize is what one entry of an object costs, with its place.
const entrySize = 112

func (d decoder) object(text payload.JSON) ref.Val {
	m := d.meter()
	m.read(int64(len(text)))
	o := &object{d: d, text: text}
	err := payload.EachField(text, func(key string, value payload.JSON) bool {
		if len(o.entries) == cap(o.entries) {
			m.alloc(int64(2*cap(o.entries)+1), entrySize)
		}
		o.put(entry{key: key, text: value})
		return true
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return o
}

func (d decoder) number(text payload.JSON) ref.Val {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && text != "-0" {
		return types.Int(n)
	}
	f, _ := strconv.ParseFloat(string(text), 64) // beyond the range is ±Inf
	if d.plain || spell(f) == text {
		return types.Double(f)
	}
	return number{Double: types.Double(f), text: text}
}

// spell writes a fraction: the shortest digits that give it back, with a point
// so that it stays a fraction.
func spell(f float64) payload.JSON {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return payload.JSON(strconv.FormatFloat(f, 'e', -1, 64))
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return payload.JSON(s)
}

// number is a number that floating point cannot give back as it was written,
// like 1.50, 1e400 or 2^64. It computes as a double; carried on, it keeps its
// text.
type number struct {
	types.Double

	text payload.JSON
}

func (n number) carried() payload.JSON { return n.text }

// Equal compares as doubles do.
func (n number) Equal(other ref.Val) ref.Val { return n.Double.Equal(numeric(other)) }

// Compare compares as doubles do.
func (n number) Compare(other ref.Val) ref.Val { return n.Double.Compare(numeric(other)) }

// ConvertToType converts to a string without loss, else as a double.
func (n number) ConvertToType(t ref.Type) ref.Val {
	if t == types.StringType {
		return types.String(n.text)
	}
	return n.Double.ConvertToType(t)
}

// whole reports whether the number is written as an integer.
func (n number) whole() bool { return !strings.ContainsAny(string(n.text), ".eE") }

// plain gives up the spelling of numbers in a value, so that CEL's functions,
// which know CEL's own number types only, accept it.
func plain(m *meter, v, _ ref.Val, _ []ref.Val) ref.Val {
	switch v := v.(type) {
	case number:
		return v.Double
	case *list:
		return v.d.plainly().value(v.text)
	case *object:
		return v.plain(m)
	}
	return v
}

// list is a JSON array; its elements are decoded when asked for.
type list struct {
	traits.Lister

	text payload.JSON
	d    decoder
}

func (l *list) carried() payload.JSON { return l.text }

// Value returns the list itself, so that nobody takes its undecoded elements
// for strings.
func (l *list) Value() any { return l }

// entry is one entry of an object. Value is read when it is first asked for.
type entry struct {
	key   string
	text  payload.JSON
	value ref.Val
}

// object is a map with its entries in order: a JSON object, or a map literal
// of the expression.
type object struct {
	d       decoder
	text    payload.JSON // "" = built by the expression
	entries []entry
	places  map[string]int // for objects with many entries
}

// put adds an entry; as everywhere in JSON the last of a repeated key counts.
func (o *object) put(e entry) (repeated bool) {
	if i := o.place(e.key); i >= 0 {
		o.entries[i] = e
		return true
	}
	const few = 8
	o.entries = append(o.entries, e)
	if o.places != nil {
		o.places[e.key] = len(o.entries) - 1
	} else if len(o.entries) > few {
		o.places = make(map[string]int, 2*few)
		for i := range o.entries {
			o.places[o.entries[i].key] = i
		}
	}
	return false
}

func (o *object) place(key string) int {
	if o.places != nil {
		if i, ok := o.places[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.entries, func(e entry) bool { return e.key == key })
}

func (o *object) carried() payload.JSON { return o.text }

func (o *object) plain(m *meter) ref.Val {
	if o.text != "" {
		return o.d.plainly().value(o.text)
	}
	n := int64(len(o.entries))
	m.step(n + 1)
	m.alloc(n+1, entrySize)
	out := &object{d: o.d, entries: make([]entry, 0, n)}
	for _, e := range o.entries {
		out.put(entry{key: e.key, value: plain(m, e.value, nil, nil)})
	}
	return out
}

func (o *object) at(i int) ref.Val {
	e := &o.entries[i]
	if e.value != nil {
		return e.value
	}
	d := o.d
	d.where = path(d.where, e.key)
	return d.value(e.text)
}

func path(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

func (o *object) keys() []string {
	keys := make([]string, len(o.entries))
	for i := range o.entries {
		keys[i] = o.entries[i].key
	}
	return keys
}

// Find returns the value of a key.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if i := o.place(string(name)); i >= 0 {
		return o.at(i), true
	}
	o.d.e.missed(o.d.where, string(name), o)
	return nil, false
}

// Get returns the value of a key, or an error.
func (o *object) Get(key ref.Val) ref.Val { return get(o, key) }

func get(m traits.Mapper, key ref.Val) ref.Val {
	if v, ok := m.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key.Value())
}

// Contains reports whether a key exists.
func (o *object) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	return types.Bool(ok && o.place(string(name)) >= 0)
}

// Iterator goes over the keys in order.
func (o *object) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.keys()).Iterator()
}

// Fold goes over the entries in order.
func (o *object) Fold(f traits.Folder) {
	for i := range o.entries {
		if !f.FoldEntry(o.entries[i].key, o.at(i)) {
			return
		}
	}
}

// Size is the number of entries.
func (o *object) Size() ref.Val { return types.Int(len(o.entries)) }

// IsZeroValue reports whether there are no entries.
func (o *object) IsZeroValue() bool { return len(o.entries) == 0 }

// Equal compares with any map.
func (o *object) Equal(other ref.Val) ref.Val { return equalMaps(o, other) }

func equalMaps(m traits.Mapper, other ref.Val) ref.Val {
	n, ok := other.(traits.Mapper)
	if !ok || m.Size() != n.Size() {
		return types.False
	}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		x, _ := m.Find(key)
		y, found := n.Find(key)
		if !found || types.Equal(x, y) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative is not offered: results leave as JSON text.
func (*object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map cannot become %v here", t)
}

// ConvertToType converts to a map or to its type.
func (o *object) ConvertToType(t ref.Type) ref.Val { return convertMap(o, t) }

func convertMap(m traits.Mapper, t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map cannot become %s", t.TypeName())
}

// Type is the map type.
func (*object) Type() ref.Type { return types.MapType }

// Value returns the object itself; it has no native form.
func (o *object) Value() any { return o }
