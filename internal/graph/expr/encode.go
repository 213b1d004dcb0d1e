package expr

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/graphd-dev/graphd/internal/payload"
)

// encode writes a result as JSON text. What was carried keeps its text; bytes
// become base64, timestamps and durations their usual strings. Errors are
// *graph.LimitError and what is wrong in words.
func encode(m *meter, v ref.Val) (payload.JSON, error) {
	if c, ok := v.(carrier); ok {
		text, err := carry(m, c)
		if text != "" || err != nil {
			return text, err
		}
	}
	w := &encoder{m: m}
	if err := w.value(v, 1); err != nil {
		return "", err
	}
	return payload.JSON(w.out.String()), nil
}

// carry is the text of a value that is a result as it was read. Of a whole
// state the text is made here.
func carry(m *meter, c carrier) (payload.JSON, error) {
	if s, ok := c.(*stateMap); ok {
		if n := weighState(s); n > m.limits.MaxResult {
			return "", beyond(LimitResult, m.limits.MaxResult, n)
		}
	}
	text := c.carried()
	if n := int64(len(text)); n > m.limits.MaxResult {
		return "", beyond(LimitResult, m.limits.MaxResult, n)
	}
	return text, nil
}

// encoder appends values to one text. It looks at the limit before the text
// grows: by reference a small value may be a very long text.
type encoder struct {
	m   *meter
	out strings.Builder
}

func (w *encoder) room(n int) error {
	if need := int64(w.out.Len()) + int64(n); need > w.m.limits.MaxResult {
		return beyond(LimitResult, w.m.limits.MaxResult, need)
	}
	return nil
}

func (w *encoder) text(text string) error {
	if err := w.room(len(text)); err != nil {
		return err
	}
	w.out.WriteString(text)
	return nil
}

func (w *encoder) quote(text string) error {
	if err := w.room(len(text) + 2); err != nil {
		return err
	}
	payload.WriteQuoted(&w.out, text)
	return w.room(0)
}

// carried writes text that was read. Its levels add to those around it.
func (w *encoder) carried(text payload.JSON, level int) error {
	// Each level has two brackets: what is short cannot be deep.
	if deepest := w.m.limits.MaxDepth - level + 1; level > 1 && len(text) >= 2*deepest && payload.Depth(text) > deepest {
		return w.tooDeep()
	}
	return w.text(string(text))
}

func (w *encoder) tooDeep() error {
	return beyond(LimitDepth, int64(w.m.limits.MaxDepth), 0)
}

// value writes a value that is nested level deep, from 1.
func (w *encoder) value(v ref.Val, level int) error {
	if c, ok := v.(carrier); ok {
		if text := c.carried(); text != "" {
			return w.carried(text, level)
		}
	}
	switch v := v.(type) {
	case types.Null:
		return w.text("null")
	case types.Bool:
		return w.text(strconv.FormatBool(bool(v)))
	case types.Int:
		return w.text(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return w.text(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("the result %g is not a JSON number", f)
		}
		return w.text(string(spell(float64(v))))
	case types.String:
		return w.quote(string(v))
	case types.Bytes:
		if err := w.room(base64.StdEncoding.EncodedLen(len(v))); err != nil {
			return err
		}
		return w.quote(base64.StdEncoding.EncodeToString(v))
	case *types.Optional:
		if !v.HasValue() {
			return errors.New("the result is an absent value; say what to use instead with .orValue(…)")
		}
		return w.value(v.GetValue(), level)
	}
	return w.nested(v, level)
}

// nested writes what has elements, and what has another form of its own.
func (w *encoder) nested(v ref.Val, level int) error {
	_, isList := v.(traits.Lister)
	_, isMap := v.(traits.Mapper)
	if (isList || isMap) && level > w.m.limits.MaxDepth {
		return w.tooDeep()
	}
	switch v := v.(type) {
	case *object:
		return w.object(v, level)
	case traits.Lister:
		return w.list(v, level)
	case traits.Mapper:
		return w.mapping(v, level)
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok && v.Type() != types.TypeType {
		return w.quote(string(s))
	}
	return fmt.Errorf("the result of type %s has no JSON form", v.Type().TypeName())
}

func (w *encoder) object(o *object, level int) error {
	w.out.WriteByte('{')
	for i := range o.entries {
		if err := w.entry(i, o.entries[i].key, o.at(i), level); err != nil {
			return err
		}
	}
	return w.text("}")
}

func (w *encoder) entry(i int, key string, value ref.Val, level int) error {
	if i > 0 {
		w.out.WriteByte(',')
	}
	if err := w.quote(key); err != nil {
		return err
	}
	w.out.WriteByte(':')
	return w.value(value, level+1)
}

func (w *encoder) list(l traits.Lister, level int) error {
	w.out.WriteByte('[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.value(it.Next(), level+1); err != nil {
			return err
		}
	}
	return w.text("]")
}

// mapping writes a map of CEL's own, which has no order, by its keys.
func (w *encoder) mapping(m traits.Mapper, level int) error {
	type named struct {
		name string
		key  ref.Val
	}
	w.m.alloc(count(m), 32)
	names := make([]named, 0, count(m))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := keyName(key)
		if !ok {
			return fmt.Errorf("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
		}
		names = append(names, named{name: name, key: key})
	}
	slices.SortFunc(names, func(x, y named) int { return cmp.Compare(x.name, y.name) })
	w.out.WriteByte('{')
	for i, n := range names {
		if err := w.entry(i, n.name, m.Get(n.key), level); err != nil {
			return err
		}
	}
	return w.text("}")
}
