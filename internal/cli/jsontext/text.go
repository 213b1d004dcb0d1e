package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ValueAtPointer returns the value at a JSON pointer, "" if there is none.
func ValueAtPointer(value, pointer string) string {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		found := ""
		for _, m := range SplitObject(value) {
			if m.Key == token {
				found = m.Value
			}
		}
		if list := SplitArray(value); list != nil {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				found = list[i]
			}
		}
		value = found
	}
	return value
}

// CheckValue returns an error with the place where text stops being one JSON value.
func CheckValue(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it ends too early")
		}
		return err
	}
	if rest := bytes.TrimSpace([]byte(text[dec.InputOffset():])); len(rest) > 0 {
		return fmt.Errorf("there is more after the value, at byte %d", dec.InputOffset())
	}
	return nil
}

// QuoteString writes text as a JSON string.
func QuoteString(text string) string {
	w := &writer{}
	w.writeString(text)
	return w.buf.String()
}

// Member is one key of a JSON object, with its value as text.
type Member struct{ Key, Value string }

// SplitObject splits a JSON object into its members, in order; nil for any other
// value.
func SplitObject(text string) []Member {
	dec := json.NewDecoder(strings.NewReader(text))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	list := []Member{}
	for dec.More() {
		tok, err := dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			return nil
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil
		}
		list = append(list, Member{key, string(raw)})
	}
	return list
}

// JoinObject writes members as a JSON object; SplitObject splits it again.
func JoinObject(list []Member) string {
	w := &writer{}
	w.buf.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.writeString(m.Key)
		w.buf.WriteByte(':')
		w.buf.WriteString(m.Value)
	}
	w.buf.WriteByte('}')
	return w.buf.String()
}

// MembersByKey returns the members of a JSON object, none for any other value.
func MembersByKey(text string) map[string]string {
	parts := make(map[string]string)
	for _, m := range SplitObject(text) {
		parts[m.Key] = m.Value
	}
	return parts
}

// SplitArray splits a JSON array; nil for any other value.
func SplitArray(text string) []string {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil
	}
	list := make([]string, len(raw))
	for i, r := range raw {
		list[i] = string(r)
	}
	return list
}

// UnquoteString returns a JSON string without its quotes, and false for any other
// value.
func UnquoteString(text string) (string, bool) {
	var s *string
	if err := json.Unmarshal([]byte(text), &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}
