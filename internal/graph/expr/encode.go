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

// encodeResult writes a result as JSON text. Carried values keep their text; bytes
// become base64, timestamps and durations their usual strings. Errors are
// *graph.LimitError, or problems in words.
func encodeResult(m *meter, v ref.Val) (payload.JSON, error) {
	if c, ok := v.(textCarrier); ok {
		text, err := encodeCarried(m, c)
		if text != "" || err != nil {
			return text, err
		}
	}
	w := &encoder{meter: m}
	if err := w.writeValue(v, 1); err != nil {
		return "", err
	}
	return payload.JSON(w.out.String()), nil
}

// encodeCarried returns the text of a value that is a result as it was read. It makes
// the text of a whole state.
func encodeCarried(m *meter, c textCarrier) (payload.JSON, error) {
	if s, ok := c.(*stateMap); ok {
		if n := estimateState(s); n > m.limits.MaxResult {
			return "", newLimitError(LimitResult, m.limits.MaxResult, n)
		}
	}
	text := c.sourceText()
	if n := int64(len(text)); n > m.limits.MaxResult {
		return "", newLimitError(LimitResult, m.limits.MaxResult, n)
	}
	return text, nil
}

// encoder appends values to a text. It looks at the limit before the text grows:
// by reference a small value may be a very long text.
type encoder struct {
	meter *meter
	out   strings.Builder
}

func (e *encoder) checkLength(n int) error {
	if need := int64(e.out.Len()) + int64(n); need > e.meter.limits.MaxResult {
		return newLimitError(LimitResult, e.meter.limits.MaxResult, need)
	}
	return nil
}

func (e *encoder) writeText(text string) error {
	if err := e.checkLength(len(text)); err != nil {
		return err
	}
	e.out.WriteString(text)
	return nil
}

func (e *encoder) writeQuoted(text string) error {
	if err := e.checkLength(len(text) + 2); err != nil {
		return err
	}
	payload.WriteQuoted(&e.out, text)
	return e.checkLength(0)
}

// writeSourceText writes text that was read. Its levels add to those around it.
func (e *encoder) writeSourceText(text payload.JSON, level int) error {
	// Each level has two brackets: a short text cannot be deep.
	if deepest := e.meter.limits.MaxDepth - level + 1; level > 1 && len(text) >= 2*deepest && payload.Depth(text) > deepest {
		return e.depthError()
	}
	return e.writeText(string(text))
}

func (e *encoder) depthError() error {
	return newLimitError(LimitDepth, int64(e.meter.limits.MaxDepth), 0)
}

// writeValue writes a value that is nested level deep, from 1.
func (e *encoder) writeValue(v ref.Val, level int) error {
	if c, ok := v.(textCarrier); ok {
		if text := c.sourceText(); text != "" {
			return e.writeSourceText(text, level)
		}
	}
	switch v := v.(type) {
	case types.Null:
		return e.writeText("null")
	case types.Bool:
		return e.writeText(strconv.FormatBool(bool(v)))
	case types.Int:
		return e.writeText(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return e.writeText(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("the result %g is not a JSON number", f)
		}
		return e.writeText(string(formatDouble(float64(v))))
	case types.String:
		return e.writeQuoted(string(v))
	case types.Bytes:
		if err := e.checkLength(base64.StdEncoding.EncodedLen(len(v))); err != nil {
			return err
		}
		return e.writeQuoted(base64.StdEncoding.EncodeToString(v))
	case *types.Optional:
		if !v.HasValue() {
			return errors.New("the result is an absent value; say what to use instead with .orValue(…)")
		}
		return e.writeValue(v.GetValue(), level)
	}
	return e.writeNested(v, level)
}

// writeNested writes values with elements, and values with a form of their own.
func (e *encoder) writeNested(v ref.Val, level int) error {
	_, isList := v.(traits.Lister)
	_, isMap := v.(traits.Mapper)
	if (isList || isMap) && level > e.meter.limits.MaxDepth {
		return e.depthError()
	}
	switch v := v.(type) {
	case *jsonObject:
		return e.writeObject(v, level)
	case traits.Lister:
		return e.writeList(v, level)
	case traits.Mapper:
		return e.writeMap(v, level)
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok && v.Type() != types.TypeType {
		return e.writeQuoted(string(s))
	}
	return fmt.Errorf("the result of type %s has no JSON form", v.Type().TypeName())
}

func (e *encoder) writeObject(o *jsonObject, level int) error {
	e.out.WriteByte('{')
	for i := range o.entries {
		if err := e.writeEntry(i, o.entries[i].key, o.entryValue(i), level); err != nil {
			return err
		}
	}
	return e.writeText("}")
}

func (e *encoder) writeEntry(i int, key string, value ref.Val, level int) error {
	if i > 0 {
		e.out.WriteByte(',')
	}
	if err := e.writeQuoted(key); err != nil {
		return err
	}
	e.out.WriteByte(':')
	return e.writeValue(value, level+1)
}

func (e *encoder) writeList(l traits.Lister, level int) error {
	e.out.WriteByte('[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.writeValue(it.Next(), level+1); err != nil {
			return err
		}
	}
	return e.writeText("]")
}

// writeMap writes a map of CEL's own, which has no order, by its keys.
func (e *encoder) writeMap(m traits.Mapper, level int) error {
	type named struct {
		name string
		key  ref.Val
	}
	e.meter.chargeBytes(elementCount(m), 32)
	names := make([]named, 0, elementCount(m))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := keyName(key)
		if !ok {
			return fmt.Errorf("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
		}
		names = append(names, named{name: name, key: key})
	}
	slices.SortFunc(names, func(x, y named) int { return cmp.Compare(x.name, y.name) })
	e.out.WriteByte('{')
	for i, n := range names {
		if err := e.writeEntry(i, n.name, m.Get(n.key), level); err != nil {
			return err
		}
	}
	return e.writeText("}")
}
