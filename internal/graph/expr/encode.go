package expr

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/graphd-dev/graphd/internal/payload"
)

// encode writes a result as JSON text. What was carried keeps its text; bytes
// become base64, timestamps and durations their usual strings.
func encode(v ref.Val) (payload.JSON, error) {
	if c, ok := v.(carrier); ok {
		if text := c.carried(); text != "" {
			return text, nil
		}
	}
	switch v := v.(type) {
	case types.Null:
		return payload.Null, nil
	case types.Bool:
		return payload.JSON(strconv.FormatBool(bool(v))), nil
	case types.Int:
		return payload.JSON(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return payload.JSON(strconv.FormatUint(uint64(v), 10)), nil
	case types.Double:
		if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
			return "", fmt.Errorf("the result %g is not a JSON number", f)
		}
		return spell(float64(v)), nil
	case types.String:
		return payload.Quote(string(v)), nil
	case types.Bytes:
		return payload.Quote(base64.StdEncoding.EncodeToString(v)), nil
	case *types.Optional:
		if !v.HasValue() {
			return "", errors.New("the result is an absent value; say what to use instead with .orValue(…)")
		}
		return encode(v.GetValue())
	case *object:
		return encodeObject(v)
	case traits.Lister:
		return encodeList(v)
	case traits.Mapper:
		return encodeMap(v)
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok && v.Type() != types.TypeType {
		return payload.Quote(string(s)), nil
	}
	return "", fmt.Errorf("the result of type %s has no JSON form", v.Type().TypeName())
}

func encodeObject(o *object) (payload.JSON, error) {
	fields := make([]payload.Field, 0, len(o.entries))
	for i := range o.entries {
		text, err := encode(o.at(i))
		if err != nil {
			return "", err
		}
		fields = append(fields, payload.Field{Key: o.entries[i].key, Value: text})
	}
	return payload.Object(fields), nil
}

func encodeList(l traits.Lister) (payload.JSON, error) {
	var items []payload.JSON
	for it := l.Iterator(); it.HasNext() == types.True; {
		text, err := encode(it.Next())
		if err != nil {
			return "", err
		}
		items = append(items, text)
	}
	return payload.Array(items), nil
}

// encodeMap writes a map of CEL's own, which has no order, by its keys.
func encodeMap(m traits.Mapper) (payload.JSON, error) {
	var fields []payload.Field
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := keyName(key)
		if !ok {
			return "", fmt.Errorf("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
		}
		text, err := encode(m.Get(key))
		if err != nil {
			return "", err
		}
		fields = append(fields, payload.Field{Key: name, Value: text})
	}
	slices.SortFunc(fields, func(x, y payload.Field) int { return cmp.Compare(x.Key, y.Key) })
	return payload.Object(fields), nil
}
