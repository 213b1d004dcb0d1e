package payload

import (
	"fmt"
	"slices"
)

// RemoveAll is the id of a remove message that drops every message before it.
const RemoveAll = "__remove_all__"

// MessageError refuses a message of an update.
type MessageError struct {
	Index   int    // position in the update
	ID      string // "" = it has none
	Problem string
}

// Error tells the position and the problem.
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %s", e.Index, e.Problem) }

// MergeMessages combines a list of chat messages with an update: a message or a
// list of them. A message is an object {"type": "human", "content": …, "id": …};
// a bare string is a human message, and a pair [role, content] or an object with
// "role" gets its type from the role.
//
// A message whose id is known replaces the message in its place; others are
// appended. {"type": "remove", "id": …} removes a message, and with the id
// RemoveAll everything before it. A message without an id gets newID(n), n
// counting such messages from 0: the caller makes ids that come out the same when
// the work is repeated. A message that has its type and id is carried as it is
// written. The error is a *MessageError, or a *SyntaxError.
func MergeMessages(current []JSON, update JSON, newID func(n int) string) ([]JSON, error) {
	given := 0
	next := func() string {
		given++
		return newID(given - 1)
	}
	left, err := readMessages(current, next)
	if err != nil {
		return nil, err
	}
	items := []JSON{Trim(update)}
	if KindOf(update) == ArrayKind && !isPair(update) {
		if items, err = Elements(update); err != nil {
			return nil, err
		}
	}
	right, err := readMessages(items, next)
	if err != nil {
		return nil, err
	}
	for i, m := range slices.Backward(right) {
		if m.isRemoval && m.id == RemoveAll {
			return messageTexts(right[i+1:]), nil
		}
	}
	merged, err := mergeByID(left, right)
	if err != nil {
		return nil, err
	}
	return messageTexts(merged), nil
}

type chatMessage struct {
	id        string
	isRemoval bool
	text      JSON
}

func messageTexts(messages []chatMessage) []JSON {
	out := make([]JSON, len(messages))
	for i := range messages {
		out[i] = messages[i].text
	}
	return out
}

// mergeByID replaces messages that have the id of a newer one, appends the others, and
// removes those that the newer messages remove.
func mergeByID(left, right []chatMessage) ([]chatMessage, error) {
	merged := slices.Clone(left)
	place := make(map[string]int, len(left)+len(right))
	for i := range merged {
		place[merged[i].id] = i
	}
	gone := make(map[string]bool)
	for i, m := range right {
		at, known := place[m.id]
		switch {
		case m.isRemoval && !known:
			return nil, &MessageError{Index: i, ID: m.id, Problem: fmt.Sprintf("cannot remove %q: no message has this id", m.id)}
		case m.isRemoval:
			gone[m.id] = true
		case known:
			delete(gone, m.id)
			merged[at] = m
		default:
			place[m.id] = len(merged)
			merged = append(merged, m)
		}
	}
	return slices.DeleteFunc(merged, func(m chatMessage) bool { return gone[m.id] }), nil
}

func readMessages(items []JSON, next func() string) ([]chatMessage, error) {
	out := make([]chatMessage, 0, len(items))
	for i, item := range items {
		m, err := readMessage(item, next)
		if err != nil {
			return nil, atMessage(i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// atMessage sets the position where the reader of a message could not know it.
func atMessage(index int, err error) error {
	if e, ok := err.(*MessageError); ok { //nolint:errorlint // made below, never wrapped
		return &MessageError{Index: index, ID: e.ID, Problem: e.Problem}
	}
	return err
}

func readMessage(item JSON, next func() string) (chatMessage, error) {
	switch KindOf(item) {
	case String:
		return newMessage("human", item, next), nil
	case ArrayKind:
		if role, content, ok := readPair(item); ok {
			return newMessage(roleType(role), content, next), nil
		}
		return chatMessage{}, &MessageError{Problem: "an array must be a pair [role, content]"}
	case ObjectKind:
		return readObjectMessage(item, next)
	case None, NullKind, Bool, Number:
	}
	return chatMessage{}, &MessageError{
		Problem: fmt.Sprintf("%s is no message; use an object, a string or [role, content]", KindOf(item)),
	}
}

func newMessage(kind string, content JSON, next func() string) chatMessage {
	id := next()
	return chatMessage{id: id, text: Object([]Field{
		{Key: "type", Value: Quote(kind)},
		{Key: "content", Value: content},
		{Key: "id", Value: Quote(id)},
	})}
}

func readObjectMessage(item JSON, next func() string) (chatMessage, error) {
	fields, err := Fields(item)
	if err != nil {
		return chatMessage{}, err
	}
	kind, known, changed := fieldPosition(fields, "type"), fieldPosition(fields, "id"), false
	if kind < 0 {
		if kind = fieldPosition(fields, "role"); kind < 0 {
			return chatMessage{}, &MessageError{Problem: `the object has neither "type" nor "role"`}
		}
		role, err := Unquote(fields[kind].Value)
		if err != nil {
			return chatMessage{}, &MessageError{Problem: `"role" must be a string`}
		}
		fields[kind] = Field{Key: "type", Value: Quote(roleType(role))}
		changed = true
	}
	name, err := Unquote(fields[kind].Value)
	if err != nil {
		return chatMessage{}, &MessageError{Problem: `"type" must be a string`}
	}
	m := chatMessage{isRemoval: name == "remove", text: item}
	switch {
	case known >= 0 && KindOf(fields[known].Value) != NullKind:
		if m.id, err = Unquote(fields[known].Value); err != nil {
			return chatMessage{}, &MessageError{Problem: `"id" must be a string`}
		}
	case m.isRemoval:
		return chatMessage{}, &MessageError{Problem: `a remove message needs the "id" of the message to remove`}
	default:
		m.id, changed = next(), true
		fields = setField(fields, known, Field{Key: "id", Value: Quote(m.id)})
	}
	if changed {
		m.text = Object(fields)
	}
	return m, nil
}

func setField(fields []Field, at int, field Field) []Field {
	if at < 0 {
		return append(fields, field)
	}
	fields[at] = field
	return fields
}

// fieldPosition returns where the last entry of a key is, -1 when there is none.
func fieldPosition(fields []Field, key string) int {
	for i, f := range slices.Backward(fields) {
		if f.Key == key {
			return i
		}
	}
	return -1
}

// roleType translates the roles of chat APIs to message types.
func roleType(role string) string {
	switch role {
	case "user":
		return "human"
	case "assistant":
		return "ai"
	case "developer":
		return "system"
	}
	return role
}

func isPair(j JSON) bool {
	_, _, ok := readPair(j)
	return ok
}

// readPair reads [role, content]. A list of two strings is a pair only when the
// first is a role, for it could be two human messages.
func readPair(j JSON) (role string, content JSON, ok bool) {
	items, err := Elements(j)
	if err != nil || len(items) != 2 {
		return "", "", false
	}
	role, err = Unquote(items[0])
	if err != nil {
		return "", "", false
	}
	switch role {
	case "user", "human", "assistant", "ai", "system", "developer", "tool", "function":
		return role, items[1], true
	}
	return "", "", false
}
