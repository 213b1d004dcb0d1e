package payload

import (
	"fmt"
	"strings"
)

// Field is an entry of an object.
type Field struct {
	Key   string // unescaped
	Value JSON   // as written, without white space around it
}

// KindError says that a value is of another kind than the caller needs.
type KindError struct {
	Want Kind
	Got  Kind
}

// Error tells both kinds.
func (e *KindError) Error() string { return fmt.Sprintf("expected %s, got %s", e.Want, e.Got) }

// Fields splits an object into its entries, in order, a repeated key included.
// The inside of the values is skipped, not changed. The error is a *KindError, a
// *SyntaxError or a *LimitError.
func Fields(j JSON) ([]Field, error) {
	var fields []Field
	err := EachField(j, func(key string, value JSON) bool {
		fields = append(fields, Field{Key: key, Value: value})
		return true
	})
	if err != nil {
		return nil, err
	}
	return fields, nil
}

// EachField calls visit for the entries of an object, in order, until it
// returns false. Errors are those of Fields; text behind the place where visit
// stopped is not looked at.
func EachField(j JSON, visit func(key string, value JSON) bool) error {
	if KindOf(j) != ObjectKind {
		return &KindError{Want: ObjectKind, Got: KindOf(j)}
	}
	s := newScanner(string(j))
	s.skipSpace()
	if !s.openContainer() {
		return s.finishValue()
	}
	for {
		quoted, ok := s.readKey()
		if !ok {
			return s.problemError()
		}
		value, ok := s.scanRaw()
		if !ok {
			return s.problemError()
		}
		if !visit(unescapeString(quoted), value) {
			return nil
		}
		more, ok := s.nextElement('}')
		if !ok {
			return s.problemError()
		}
		if !more {
			return s.finishValue()
		}
	}
}

// Elements splits an array into its elements, in order, as written. Errors are
// those of Fields.
func Elements(j JSON) ([]JSON, error) {
	var items []JSON
	err := EachElement(j, func(value JSON) bool {
		items = append(items, value)
		return true
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// EachElement calls visit for the elements of an array, in order, until it
// returns false. Errors are those of Fields; text behind the place where visit
// stopped is not looked at.
func EachElement(j JSON, visit func(value JSON) bool) error {
	if KindOf(j) != ArrayKind {
		return &KindError{Want: ArrayKind, Got: KindOf(j)}
	}
	s := newScanner(string(j))
	s.skipSpace()
	if !s.openContainer() {
		return s.finishValue()
	}
	for {
		value, ok := s.scanRaw()
		if !ok {
			return s.problemError()
		}
		if !visit(value) {
			return nil
		}
		more, ok := s.nextElement(']')
		if !ok {
			return s.problemError()
		}
		if !more {
			return s.finishValue()
		}
	}
}

// Lookup returns the value of a key of an object; of a repeated key the last.
// It is false when the key is absent, and when j is not an object.
func Lookup(j JSON, key string) (JSON, bool) {
	var found JSON
	ok := false
	err := EachField(j, func(k string, value JSON) bool {
		if k == key {
			found, ok = value, true
		}
		return true
	})
	if err != nil {
		return "", false
	}
	return found, ok
}

// Object writes an object with the given entries in the given order. Keys are
// not checked for repetition.
func Object(fields []Field) JSON {
	size := 2
	for i := range fields {
		size += len(fields[i].Key) + len(fields[i].Value) + 4
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('{')
	for i := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		WriteQuoted(&b, fields[i].Key)
		b.WriteByte(':')
		b.WriteString(string(fields[i].Value))
	}
	b.WriteByte('}')
	return JSON(b.String())
}

// Array writes an array with the given elements.
func Array(items []JSON) JSON {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(item))
	}
	b.WriteByte(']')
	return JSON(b.String())
}

// scanRaw skips a value and returns its text.
func (s *scanner) scanRaw() (JSON, bool) {
	s.skipSpace()
	start := s.pos
	if !s.skipValue() {
		return "", false
	}
	return JSON(s.text[start:s.pos]), true
}

func (s *scanner) finishValue() error {
	if !s.expectEnd() {
		return s.problemError()
	}
	return nil
}
