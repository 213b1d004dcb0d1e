package graph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Values are the channels that a node sees. graphd implements it.
type Values interface {
	// Lookup returns the JSON text of a channel, or false when it is unset.
	Lookup(key string) (string, bool)
	// Keys lists the channels that are set, in the graph's order.
	Keys() []string
	// Text returns the whole state as a JSON text.
	Text() string
}

// State is a function's view of the graph's state: the channels its node reads,
// as they were when the superstep began. For a node that was reached by a Send it
// is the value that was sent.
type State struct {
	values     Values
	strictness strictness
}

// NewState makes a State. Tests of functions may use it as well.
func NewState(v Values) State { return State{values: v} }

// Get returns the JSON text of a channel, nil when it is unset.
func (s State) Get(key string) json.RawMessage {
	if s.values == nil {
		return nil
	}
	text, ok := s.values.Lookup(key)
	if !ok {
		return nil
	}
	return json.RawMessage(text)
}

// Decode reads a channel into v. Numbers that land in an any become
// json.Number, so that they keep their digits. An unset channel is a *KeyError.
func (s State) Decode(key string, v any) error {
	text := s.Get(key)
	if text == nil {
		return &KeyError{Key: key, Known: s.Keys()}
	}
	err := decodeJSON(text, v)
	if err == nil && s.strictness != notStrict {
		err = checkKeys(text, v, strictValue)
	}
	if err != nil {
		return fmt.Errorf("state key %q: %w", key, err)
	}
	return nil
}

// Unmarshal reads the state into v, usually a pointer to a struct. Channels
// that are unset leave their fields as they are, and those without a field are
// dropped, see [Strict].
func (s State) Unmarshal(v any) error { return s.unmarshal(v, decodeJSON) }

func (s State) unmarshal(v any, decode jsonDecoder) error {
	text := []byte(s.Raw())
	err := decode(text, v)
	if err == nil {
		err = checkKeys(text, v, s.strictness)
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// Raw returns the state as a JSON text.
func (s State) Raw() string {
	if s.values == nil {
		return "{}"
	}
	return s.values.Text()
}

// Keys lists the channels that are set, in the graph's order.
func (s State) Keys() []string {
	if s.values == nil {
		return nil
	}
	return s.values.Keys()
}

// KeyError says that a channel is unset, or that the node does not read it.
type KeyError struct {
	Key   string
	Known []string // channels that are set
}

// Error names the key and those that are set.
func (e *KeyError) Error() string {
	known := "nothing is set"
	if len(e.Known) > 0 {
		known = "set are " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("state key %q is not set or not read by the node; %s", e.Key, known)
}

// encodeJSON writes a value as JSON text. JSON text is taken as it is.
func encodeJSON(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		if !json.Valid(raw) {
			return nil, fmt.Errorf("the json.RawMessage is not JSON: %.60q", raw)
		}
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
