package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// readValue reads JSON that a flag gives: the text itself, @FILE, or - for
// standard input, which is in. The text stays as it is.
func readValue(in io.Reader, flag, given string) (*graphdv1.Payload, error) {
	text, from, err := readSource(in, given)
	if err != nil {
		return nil, Usagef("%s: %v", flag, err).WithHint("want JSON, @FILE, or - for standard input")
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if err := checkJSON(text); err != nil {
		hint := "want JSON, @FILE, or - for standard input"
		if text != "" && !strings.ContainsAny(text[:1], `{["`) {
			hint += "; text is JSON in double quotes: " + QuoteCommand(flag, quoteForHint(text))
		}
		return nil, Usagef("%s: %s is not JSON: %v", flag, from, err).WithHint("%s", hint)
	}
	return jsonPayload(text), nil
}

func jsonPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

// readSource returns the text of a value and how to name where it came from.
func readSource(in io.Reader, given string) (text, from string, err error) {
	switch name, isFile := strings.CutPrefix(given, "@"); {
	case isFile:
		data, err := os.ReadFile(name) //nolint:gosec // the caller names the file
		return string(data), name, err
	case given == "-":
		if in == nil {
			return "", "", errors.New("there is no standard input")
		}
		data, err := io.ReadAll(in)
		return string(data), "standard input", err
	}
	return given, "it", nil
}

// checkJSON says where text stops being one JSON value.
func checkJSON(text string) error {
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

// quoteForHint is text as a JSON string, shortened for a hint.
func quoteForHint(text string) string {
	const most = 40
	if len([]rune(text)) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return jsonString(text)
}

// jsonString writes text as a JSON string.
func jsonString(text string) string {
	w := &jsonWriter{}
	w.writeString(text)
	return w.buf.String()
}

// member is one key of a JSON object with its value as text.
type member struct{ key, value string }

// splitObject splits a JSON object, in order; nil when it is none.
func splitObject(text string) []member {
	dec := json.NewDecoder(strings.NewReader(text))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	list := []member{}
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
		list = append(list, member{key, string(raw)})
	}
	return list
}

// joinObject writes members as a JSON object; splitObject splits it again.
func joinObject(list []member) string {
	w := &jsonWriter{}
	w.buf.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		w.writeString(m.key)
		w.buf.WriteByte(':')
		w.buf.WriteString(m.value)
	}
	w.buf.WriteByte('}')
	return w.buf.String()
}

// membersByKey are the members of a JSON object; none when text is no object.
func membersByKey(text string) map[string]string {
	parts := make(map[string]string)
	for _, m := range splitObject(text) {
		parts[m.key] = m.value
	}
	return parts
}

// splitArray splits a JSON array; nil when it is none.
func splitArray(text string) []string {
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

// unquoteJSON is a JSON string without its quotes; false for any other value.
func unquoteJSON(text string) (string, bool) {
	var s *string
	if err := json.Unmarshal([]byte(text), &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}
