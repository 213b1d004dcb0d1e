package expr

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// few is the weight of a value without content.
const few = 8

// weigh is about how many bytes a value has as text, what it shares counted as
// often as it is seen: a comparison looks at it that often. Values that were
// only carried are not decoded for it. The walk itself is charged.
func (m *meter) weigh(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v)) + 2
	case types.Bytes:
		return int64(len(v)) + 2
	case *list:
		return int64(len(v.text))
	case *object:
		return m.weighObject(v)
	case *stateMap:
		return weighState(v)
	case *types.Optional:
		if v.HasValue() {
			return m.weigh(v.GetValue())
		}
	case traits.Lister:
		return m.weighList(v)
	case traits.Mapper:
		return m.weighMap(v)
	}
	return few
}

func (m *meter) weighObject(o *object) int64 {
	if o.text != "" {
		return int64(len(o.text))
	}
	m.step(int64(len(o.entries)) + 1)
	sum := int64(few)
	for i := range o.entries {
		sum += int64(len(o.entries[i].key)) + m.weigh(o.entries[i].value)
	}
	return sum
}

func weighState(s *stateMap) int64 {
	sum := int64(few)
	for _, key := range s.reader.Keys() {
		if text, ok := s.reader.Lookup(key); ok {
			sum += int64(len(key) + len(text))
		}
	}
	return sum
}

func (m *meter) weighList(l traits.Lister) int64 {
	n := count(l)
	m.step(n + 1)
	sum := int64(few)
	for i := range n {
		sum += m.weigh(l.Get(types.Int(i)))
	}
	return sum
}

func (m *meter) weighMap(mapper traits.Mapper) int64 {
	n := count(mapper)
	m.step(n + 1)
	m.alloc(n+1, 64) // a list of its keys
	sum := int64(few)
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		value, _ := mapper.Find(key)
		sum += m.weigh(key) + m.weigh(value)
	}
	return sum
}

// count is the number of elements, 0 for what has none.
func count(v any) int64 {
	if s, ok := v.(traits.Sizer); ok {
		n, _ := s.Size().(types.Int)
		return int64(n)
	}
	return 0
}

// textLen is the length of a text or of bytes, 0 of anything else.
func textLen(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	}
	return 0
}

// whole is the value of a whole number.
func whole(v ref.Val) (int64, bool) {
	switch v := v.(type) {
	case types.Int:
		return int64(v), true
	case types.Uint:
		return int64(min(v, 1<<62)), true
	}
	return 0, false
}
