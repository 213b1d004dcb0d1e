package agentserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Labels of graphd are texts. Which of them stand for another JSON value says the label typedKeys, as
// in the SDKs of graphd. Those that begin with ownPrefix are of this package.
const (
	typedKeys = "graphd.typed"
	ownPrefix = "langgraph."
)

// assistantLabel is the label of a thread with the assistant whose run began last, of those that are
// kept.
const assistantLabel = ownPrefix + "assistant"

// assignedKeys lists the keys of metadata that the server sets.
func assignedKeys() []string { return []string{"graph_id", "assistant_id"} }

// metadata is the metadata of a thread or run, as clients send it.
type metadata map[string]json.RawMessage

// toLabels returns the labels that stand for metadata. It refuses keys that are not the client's.
func (m metadata) toLabels() (map[string]string, error) {
	labels := make(map[string]string, len(m)+1)
	var typed []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case slices.Contains(assignedKeys(), key):
			continue
		case key == typedKeys || strings.HasPrefix(key, ownPrefix) || strings.Contains(key, ","):
			return nil, invalidField("metadata", "has the key %.100q: want none that is %s, begins with %s or has a comma", key, typedKeys, ownPrefix)
		}
		var isTyped bool
		labels[key], isTyped = labelText(m[key])
		if isTyped {
			typed = append(typed, key)
		}
	}
	if len(typed) > 0 {
		labels[typedKeys] = strings.Join(typed, ",")
	}
	return labels, nil
}

// labelText returns the text of the label that stands for a value, and whether the value is another
// one than that text.
func labelText(value json.RawMessage) (text string, isTyped bool) {
	if json.Unmarshal(value, &text) == nil && len(value) > 0 && value[0] == '"' {
		return text, false
	}
	if compact, err := encodeJSON(value); err == nil {
		return string(compact), true
	}
	return string(value), true
}

// readText returns a text of metadata, "" for none.
func (m metadata) readText(key string) string {
	var text string
	_ = json.Unmarshal(m[key], &text) // another value is no text
	return text
}

// readLabels returns the metadata that labels stand for, without those of this package.
func readLabels(labels map[string]string) metadata {
	typed := strings.Split(labels[typedKeys], ",")
	shown := make(metadata, len(labels))
	for key, text := range labels {
		switch {
		case key == typedKeys || strings.HasPrefix(key, ownPrefix):
		case slices.Contains(typed, key) && json.Valid([]byte(text)):
			shown[key] = json.RawMessage(text)
		default:
			shown.setText(key, text)
		}
	}
	return shown
}

// setText sets a key to a text.
func (m metadata) setText(key, text string) { m[key] = quoteText(text) }

// quoteText returns a text as JSON.
func quoteText(text string) json.RawMessage {
	quoted, err := encodeJSON(text)
	if err != nil { // a text has JSON
		return json.RawMessage(`""`)
	}
	return quoted
}
