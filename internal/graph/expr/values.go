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

// textCarrier is a CEL value that remembers the JSON text it was read from.
type textCarrier interface{ sourceText() payload.JSON }

// decoder reads JSON text as CEL values, one level at a time.
type decoder struct {
	evaluation *evaluation
	where      string // how messages name the value that is read
	// isPlain gives up the spelling of numbers, for values that expressions compute
	// with and do not carry.
	isPlain bool
}

// NativeToValue lets CEL's own list type hold undecoded elements.
func (d decoder) NativeToValue(value any) ref.Val {
	if text, ok := value.(payload.JSON); ok {
		return d.decodeValue(text)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

func (d decoder) asPlain() decoder {
	d.isPlain = true
	return d
}

func (d decoder) decodeValue(text payload.JSON) ref.Val {
	text = payload.Trim(text)
	switch payload.KindOf(text) {
	case payload.None, payload.NullKind:
		return types.NullValue
	case payload.Bool:
		return types.Bool(text == "true")
	case payload.Number:
		return d.decodeNumber(text)
	case payload.String:
		return d.decodeText(text)
	case payload.ArrayKind:
		return d.decodeList(text)
	case payload.ObjectKind:
		return d.decodeObject(text)
	}
	return types.NewErr("unreadable JSON value")
}

func (d decoder) evaluationMeter() *meter {
	if d.evaluation == nil {
		return nil
	}
	return &d.evaluation.meter
}

func (d decoder) decodeText(text payload.JSON) ref.Val {
	m := d.evaluationMeter()
	m.chargeRead(int64(len(text)))
	if strings.IndexByte(string(text), '\\') >= 0 {
		m.chargeBytes(int64(len(text)), 3)
	}
	s, err := payload.Unquote(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(s)
}

// decodeList splits an array into its elements. Growth is charged before it happens.
func (d decoder) decodeList(text payload.JSON) ref.Val {
	m := d.evaluationMeter()
	m.chargeRead(int64(len(text)))
	var items []payload.JSON
	err := payload.EachElement(text, func(item payload.JSON) bool {
		if len(items) == cap(items) {
			m.chargeBytes(int64(2*cap(items)+1), 16)
		}
		items = append(items, item)
		return true
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return &jsonList{Lister: types.NewList(d, items), text: text, decoder: d}
}

// entryBytes is the size of an entry of an object, with its place.
const entryBytes = 112

func (d decoder) decodeObject(text payload.JSON) ref.Val {
	m := d.evaluationMeter()
	m.chargeRead(int64(len(text)))
	o := &jsonObject{decoder: d, text: text}
	err := payload.EachField(text, func(key string, value payload.JSON) bool {
		if len(o.entries) == cap(o.entries) {
			m.chargeBytes(int64(2*cap(o.entries)+1), entryBytes)
		}
		o.putEntry(objectEntry{key: key, text: value})
		return true
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return o
}

// decodeNumber returns an integer of 64 bits as an int, and every other number as a
// double. A number that a double cannot give back as it was written keeps its text,
// unless d is plain. A plain number beyond the range ends the evaluation.
func (d decoder) decodeNumber(text payload.JSON) ref.Val {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && text != "-0" { // an int has no -0
		return types.Int(n)
	}
	f, _ := strconv.ParseFloat(string(text), 64) // beyond the range is ±Inf
	if d.isPlain && math.IsInf(f, 0) {
		return d.evaluationMeter().refuseNumber(text)
	}
	if d.isPlain || formatDouble(f) == text {
		return types.Double(f)
	}
	return spelledNumber{Double: types.Double(f), text: text}
}

// formatDouble writes a fraction: the shortest digits that give it back, with a point
// so that it stays a fraction.
func formatDouble(f float64) payload.JSON {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return payload.JSON(strconv.FormatFloat(f, 'e', -1, 64))
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return payload.JSON(s)
}

// spelledNumber is a number that floating point cannot give back as it was written,
// like 1.50, 1e400 or 2^64. It computes as a double; carried on, it keeps its
// text.
type spelledNumber struct {
	types.Double

	text payload.JSON
}

func (n spelledNumber) sourceText() payload.JSON { return n.text }

// toPlain returns the number as a double; a number beyond the range ends the
// evaluation.
func (n spelledNumber) toPlain(m *meter) ref.Val {
	if math.IsInf(float64(n.Double), 0) {
		return m.refuseNumber(n.text)
	}
	return n.Double
}

// Equal compares as doubles do; beyond their range only the same text is equal.
func (n spelledNumber) Equal(other ref.Val) ref.Val {
	if o, ok := other.(spelledNumber); ok && math.IsInf(float64(n.Double), 0) {
		return types.Bool(n.text == o.text)
	}
	return n.Double.Equal(asDouble(other))
}

// Compare compares as doubles do.
func (n spelledNumber) Compare(other ref.Val) ref.Val { return n.Double.Compare(asDouble(other)) }

// ConvertToType converts to a string without loss, else as a double.
func (n spelledNumber) ConvertToType(t ref.Type) ref.Val {
	if t == types.StringType {
		return types.String(n.text)
	}
	return n.Double.ConvertToType(t)
}

// isWhole reports whether the number is written as an integer.
func (n spelledNumber) isWhole() bool { return !strings.ContainsAny(string(n.text), ".eE") }

// plainValue gives up the spelling of numbers in a value, so that CEL's functions,
// which know CEL's own number types only, accept it.
func plainValue(m *meter, v, _ ref.Val, _ []ref.Val) ref.Val {
	switch v := v.(type) {
	case spelledNumber:
		return v.toPlain(m)
	case *jsonList:
		return v.decoder.asPlain().decodeValue(v.text)
	case *jsonObject:
		return v.plainObject(m)
	}
	return v
}

// jsonList is a JSON array; its elements are decoded when asked for.
type jsonList struct {
	traits.Lister

	text    payload.JSON
	decoder decoder
}

func (l *jsonList) sourceText() payload.JSON { return l.text }

// Value returns the list itself, so that no caller takes its undecoded elements for
// strings.
func (l *jsonList) Value() any { return l }

// objectEntry is an entry of an object. Value is decoded on its first use.
type objectEntry struct {
	key   string
	text  payload.JSON
	value ref.Val
}

// jsonObject is a map with its entries in order: a JSON object, or a map literal
// of the expression.
type jsonObject struct {
	decoder    decoder
	text       payload.JSON // "" = built by the expression
	entries    []objectEntry
	entryIndex map[string]int // for objects with many entries
}

// putEntry adds an entry; as everywhere in JSON the last of a repeated key counts.
func (o *jsonObject) putEntry(e objectEntry) (repeated bool) {
	if i := o.findEntry(e.key); i >= 0 {
		o.entries[i] = e
		return true
	}
	const few = 8
	o.entries = append(o.entries, e)
	if o.entryIndex != nil {
		o.entryIndex[e.key] = len(o.entries) - 1
	} else if len(o.entries) > few {
		o.entryIndex = make(map[string]int, 2*few)
		for i := range o.entries {
			o.entryIndex[o.entries[i].key] = i
		}
	}
	return false
}

func (o *jsonObject) findEntry(key string) int {
	if o.entryIndex != nil {
		if i, ok := o.entryIndex[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.entries, func(e objectEntry) bool { return e.key == key })
}

func (o *jsonObject) sourceText() payload.JSON { return o.text }

func (o *jsonObject) plainObject(m *meter) ref.Val {
	if o.text != "" {
		return o.decoder.asPlain().decodeValue(o.text)
	}
	n := int64(len(o.entries))
	m.chargeSteps(n + 1)
	m.chargeBytes(n+1, entryBytes)
	out := &jsonObject{decoder: o.decoder, entries: make([]objectEntry, 0, n)}
	for _, e := range o.entries {
		out.putEntry(objectEntry{key: e.key, value: plainValue(m, e.value, nil, nil)})
	}
	return out
}

func (o *jsonObject) entryValue(i int) ref.Val {
	e := &o.entries[i]
	if e.value != nil {
		return e.value
	}
	d := o.decoder
	d.where = joinPath(d.where, e.key)
	return d.decodeValue(e.text)
}

func joinPath(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

func (o *jsonObject) listKeys() []string {
	keys := make([]string, len(o.entries))
	for i := range o.entries {
		keys[i] = o.entries[i].key
	}
	return keys
}

// Find returns the value of a key.
func (o *jsonObject) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if i := o.findEntry(string(name)); i >= 0 {
		return o.entryValue(i), true
	}
	o.decoder.evaluation.recordMiss(o.decoder.where, string(name), o)
	return nil, false
}

// Get returns the value of a key, or an error.
func (o *jsonObject) Get(key ref.Val) ref.Val { return getOrError(o, key) }

func getOrError(m traits.Mapper, key ref.Val) ref.Val {
	if v, ok := m.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key.Value())
}

// Contains reports whether a key exists.
func (o *jsonObject) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	return types.Bool(ok && o.findEntry(string(name)) >= 0)
}

// Iterator goes over the keys in order.
func (o *jsonObject) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.listKeys()).Iterator()
}

// Fold goes over the entries in order.
func (o *jsonObject) Fold(f traits.Folder) {
	for i := range o.entries {
		if !f.FoldEntry(o.entries[i].key, o.entryValue(i)) {
			return
		}
	}
}

// Size returns the number of entries.
func (o *jsonObject) Size() ref.Val { return types.Int(len(o.entries)) }

// IsZeroValue reports whether there are no entries.
func (o *jsonObject) IsZeroValue() bool { return len(o.entries) == 0 }

// Equal compares with any map.
func (o *jsonObject) Equal(other ref.Val) ref.Val { return equalMaps(o, other) }

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

// ConvertToNative returns an error: results leave as JSON text.
func (*jsonObject) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map cannot become %v here", t)
}

// ConvertToType converts to a map or to its type.
func (o *jsonObject) ConvertToType(t ref.Type) ref.Val { return convertMap(o, t) }

func convertMap(m traits.Mapper, t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map cannot become %s", t.TypeName())
}

// Type returns the map type.
func (*jsonObject) Type() ref.Type { return types.MapType }

// Value returns the object itself; it has no native form.
func (o *jsonObject) Value() any { return o }
