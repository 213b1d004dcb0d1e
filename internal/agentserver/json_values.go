package agentserver

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// textOrList is a field that is one text or a list of texts.
type textOrList []string

// UnmarshalJSON reads either.
func (l *textOrList) UnmarshalJSON(text []byte) error {
	var one string
	if text[0] == '"' && json.Unmarshal(text, &one) == nil {
		*l = textOrList{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// isAbsent reports whether a value is not given, or null.
func isAbsent(value json.RawMessage) bool {
	return len(value) == 0 || bytes.Equal(bytes.TrimSpace(value), []byte("null"))
}

// isObject reports whether a value is a JSON object.
func isObject(value json.RawMessage) bool {
	trimmed := bytes.TrimSpace(value)
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// containsJSON reports whether a value contains another one, as the operator @> of PostgreSQL: each
// member of an object, and each element of a list somewhere in the list.
func containsJSON(value, part json.RawMessage) bool {
	v, err := decodeAny(value)
	if err != nil {
		return false
	}
	p, err := decodeAny(part)
	return err == nil && containsValue(v, p)
}

func decodeAny(text json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func containsValue(value, part any) bool {
	switch p := part.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		for key, want := range p {
			if got, has := v[key]; !has || !containsValue(got, want) {
				return false
			}
		}
		return ok
	case []any:
		v, ok := value.([]any)
		for _, want := range p {
			if !anyContains(v, want) {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(value, part)
}

func anyContains(list []any, part any) bool {
	for _, one := range list {
		if containsValue(one, part) {
			return true
		}
	}
	return false
}
