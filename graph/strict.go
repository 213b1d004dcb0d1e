package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Strict makes a function refuse JSON that has keys which its types do not know, where encoding/json
// drops them: in a value that was sent to its node, in values of channels, and in answers of [Ask].
// Then [State.Unmarshal] and [State.Decode] fail with an [*UnknownKeyError] for each such key, and the
// schema of a question without one of its own has the fields of its type, and permits no others: a
// question is another one when its type changes. A node that an edge has reached may know a part of
// the channels. [Builder.Strict] has all functions of a graph do so.
func Strict(f Func) Func {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, s State) (any, error) {
		s.strictness = strictChannels
		if TaskInfo(ctx).Input != "" {
			s.strictness = strictValue
		}
		return f(context.WithValue(ctx, strictKey{}, true), s)
	}
}

type strictKey struct{}

func isStrict(ctx context.Context) bool {
	is, _ := ctx.Value(strictKey{}).(bool)
	return is
}

// strictness says which keys of a state a type must know.
type strictness int

const (
	notStrict      strictness = iota
	strictChannels            // those in the values of channels
	strictValue               // all
)

// UnknownKeyError says that JSON has a key that the Go type it is decoded into does not know.
type UnknownKeyError struct {
	Key   string   // a JSON pointer from the whole value on, like "/items/0/prise"
	Known []string // the keys that the type has there
}

// Error names the key and those that are known.
func (e *UnknownKeyError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("unknown key %q: none is known there", e.Key)
	}
	return fmt.Sprintf("unknown key %q: want %s", e.Key, strings.Join(e.Known, ", "))
}

// checkKeys returns an UnknownKeyError for each key of a JSON text that the type of v does not know.
// At the top of a state that is read in part, keys are not checked. The text was decoded before.
func checkKeys(text []byte, v any, in strictness) error {
	t := reflect.TypeOf(v)
	if in == notStrict || t == nil {
		return nil
	}
	var value any
	if err := decodeJSON(text, &value); err != nil {
		return err
	}
	c := &keyChecker{}
	if object, ok := value.(map[string]any); ok && in == strictChannels && elementOf(t).Kind() == reflect.Struct {
		c.checkStruct(elementOf(t), object, "", true)
	} else {
		c.checkValue(t, value, "")
	}
	return errors.Join(c.unknown...)
}

// keyChecker finds keys that types do not know.
type keyChecker struct{ unknown []error }

func (c *keyChecker) checkValue(t reflect.Type, value any, at string) {
	t = elementOf(t)
	if decodesItself(t) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct {
			c.checkStruct(t, value, at, false)
		}
		if t.Kind() == reflect.Map {
			for _, key := range slices.Sorted(maps.Keys(value)) {
				c.checkValue(t.Elem(), value[key], at+"/"+escapePointer(key))
			}
		}
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i := range value {
				c.checkValue(t.Elem(), value[i], at+"/"+strconv.Itoa(i))
			}
		}
	}
}

func (c *keyChecker) checkStruct(t reflect.Type, object map[string]any, at string, isPart bool) {
	if decodesItself(t) {
		return
	}
	fields := jsonFields(t)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		i := slices.IndexFunc(fields, func(f jsonField) bool { return strings.EqualFold(f.name, key) })
		switch {
		case i >= 0:
			c.checkValue(fields[i].Type, object[key], at+"/"+escapePointer(key))
		case !isPart:
			known := make([]string, len(fields))
			for k := range fields {
				known[k] = fields[k].name
			}
			c.unknown = append(c.unknown, &UnknownKeyError{Key: at + "/" + escapePointer(key), Known: known})
		}
	}
}

// escapePointer writes a key as JSON pointers have it.
func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// decodeAnswer reads an answer, in a strict function without unknown keys.
func decodeAnswer(ctx context.Context, text json.RawMessage, v any) error {
	if err := decodeJSON(text, v); err != nil {
		return err
	}
	if !isStrict(ctx) {
		return nil
	}
	return checkKeys(text, v, strictValue)
}

// unknownKeysType gives an error for unknown keys a type for retry policies.
func unknownKeysType(err error) error {
	if _, ok := errors.AsType[*UnknownKeyError](err); ok {
		return OfType("UnknownKey", err)
	}
	return err
}
