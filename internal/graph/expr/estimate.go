package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// baseBytes is the estimate of a value without content.
const baseBytes = 8

// estimateBytes estimates how many bytes a value has as text. Shared parts count
// as often as they occur: a comparison reads them that often. Values that were
// only carried are not decoded for it. The walk itself is charged.
func (m *meter) estimateBytes(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v)) + 2
	case types.Bytes:
		return int64(len(v)) + 2
	case *jsonList:
		return int64(len(v.text))
	case *jsonObject:
		return m.estimateObject(v)
	case *stateMap:
		return estimateState(v)
	case *types.Optional:
		if v.HasValue() {
			return m.estimateBytes(v.GetValue())
		}
	case traits.Lister:
		return m.estimateList(v)
	case traits.Mapper:
		return m.estimateMap(v)
	}
	return baseBytes
}

func (m *meter) estimateObject(o *jsonObject) int64 {
	if o.text != "" {
		return int64(len(o.text))
	}
	m.chargeSteps(int64(len(o.entries)) + 1)
	sum := int64(baseBytes)
	for i := range o.entries {
		sum += int64(len(o.entries[i].key)) + m.estimateBytes(o.entries[i].value)
	}
	return sum
}

func estimateState(s *stateMap) int64 {
	sum := int64(baseBytes)
	for _, key := range s.reader.Keys() {
		if text, ok := s.reader.Lookup(key); ok {
			sum += int64(len(key) + len(text))
		}
	}
	return sum
}

func (m *meter) estimateList(l traits.Lister) int64 {
	n := elementCount(l)
	m.chargeSteps(n + 1)
	sum := int64(baseBytes)
	for i := range n {
		sum += m.estimateBytes(l.Get(types.Int(i)))
	}
	return sum
}

func (m *meter) estimateMap(mapper traits.Mapper) int64 {
	n := elementCount(mapper)
	m.chargeSteps(n + 1)
	m.chargeBytes(n+1, 64) // a list of its keys
	sum := int64(baseBytes)
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		value, _ := mapper.Find(key)
		sum += m.estimateBytes(key) + m.estimateBytes(value)
	}
	return sum
}

// elementCount returns the number of elements, 0 for a value without elements.
func elementCount(v any) int64 {
	if s, ok := v.(traits.Sizer); ok {
		n, _ := s.Size().(types.Int)
		return int64(n)
	}
	return 0
}

// textLen returns the length of a text or of bytes, 0 for other values.
func textLen(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	}
	return 0
}

// wholeNumber returns the value of a whole number.
func wholeNumber(v ref.Val) (int64, bool) {
	switch v := v.(type) {
	case types.Int:
		return int64(v), true
	case types.Uint:
		return int64(min(v, 1<<62)), true
	}
	return 0, false
}
