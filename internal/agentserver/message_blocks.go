package agentserver

import (
	"encoding/json"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// messageBlocks are the messages that are shown in pieces, as protocol v2 has them: each is a list of
// content blocks, and pieces add to the last one.
type messageBlocks struct {
	open []*openMessage
	size int // bytes of all that
}

// openMessage is a message of which more pieces may come.
type openMessage struct {
	id, task string
	blocks   []openBlock
	size     int
}

// openBlock is a content block as far as it was shown.
type openBlock struct {
	kind string // text, reasoning or tool_call_chunk
	id   string // of a call of a tool
	name string
	text string // or the arguments of a call
}

func newMessageBlocks() *messageBlocks { return &messageBlocks{} }

// find returns a message, which begins now if it is not open.
func (m *messageBlocks) find(id, task string) (found *openMessage, isNew bool) {
	for _, one := range m.open {
		if one.id == id && one.task == task {
			return one, false
		}
	}
	found = &openMessage{id: id, task: task, size: len(id) + seenBytes}
	m.open = append(m.open, found)
	m.size += found.size
	return found, true
}

// remove forgets a message.
func (m *messageBlocks) remove(one *openMessage) {
	m.size -= one.size
	m.open = slices.DeleteFunc(m.open, func(other *openMessage) bool { return other == one })
}

// forgetTask forgets the messages of a task, whose pieces come again.
func (m *messageBlocks) forgetTask(task string) {
	for _, one := range slices.Clone(m.open) {
		if one.task == task {
			m.remove(one)
		}
	}
}

// messagePart is a piece of a message: of its text, its reasoning, or of a call of a tool.
type messagePart struct {
	Type  string           `json:"type"`
	Text  string           `json:"text"`
	Think string           `json:"reasoning"`
	ID    string           `json:"id"`
	Name  string           `json:"name"`
	Args  string           `json:"args"`
	Index *json.RawMessage `json:"index"`
}

// readParts returns the parts of a message or of a piece of one.
func readParts(message json.RawMessage) (parts []openBlock) {
	var fields struct {
		Content json.RawMessage `json:"content"`
		Chunks  []messagePart   `json:"tool_call_chunks"`
	}
	if json.Unmarshal(message, &fields) != nil {
		return nil
	}
	var text string
	var list []messagePart
	if json.Unmarshal(fields.Content, &text) == nil {
		if text != "" {
			parts = append(parts, openBlock{kind: "text", text: text})
		}
	} else if json.Unmarshal(fields.Content, &list) == nil {
		for _, part := range list {
			switch {
			case part.Type == "text" && part.Text != "":
				parts = append(parts, openBlock{kind: "text", text: part.Text})
			case part.Type == "reasoning" && part.Think != "":
				parts = append(parts, openBlock{kind: "reasoning", text: part.Think})
			}
		}
	}
	for _, chunk := range fields.Chunks {
		parts = append(parts, openBlock{kind: "tool_call_chunk", id: chunk.ID, name: chunk.Name, text: chunk.Args})
	}
	return parts
}

// continues reports whether a part adds to a block: one of the same kind, and of the same call of a
// tool. Only the first part of a call has its id.
func (b *openBlock) continues(part *openBlock) bool {
	return b.kind == part.kind && (part.id == "" || part.id == b.id)
}

// content returns a block as clients have it. isDone says that it is whole.
func (b *openBlock) content(isDone bool) map[string]any {
	switch b.kind {
	case "reasoning":
		return map[string]any{"type": "reasoning", "reasoning": b.text}
	case "tool_call_chunk":
		if !isDone {
			return map[string]any{"type": "tool_call_chunk", "id": b.id, "name": b.name, "args": b.text}
		}
		if isObject(json.RawMessage(b.text)) && json.Valid([]byte(b.text)) {
			return map[string]any{"type": "tool_call", "id": b.id, "name": b.name, "args": json.RawMessage(b.text)}
		}
		return map[string]any{"type": "invalid_tool_call", "id": b.id, "name": b.name, "args": b.text, "error": nil}
	}
	return map[string]any{"type": "text", "text": b.text}
}

// delta returns what a part adds to its block.
func (b *openBlock) delta() map[string]any {
	switch b.kind {
	case "reasoning":
		return map[string]any{"type": "reasoning-delta", "reasoning": b.text}
	case "tool_call_chunk":
		return map[string]any{"type": "tool-call-delta", "args": b.text}
	}
	return map[string]any{"type": "text-delta", "text": b.text}
}

// showMessage shows a piece of a message that a node emits. A whole message shows with the state.
func (t *eventTranslator) showMessage(event *graphdv1.Event, delta *graphdv1.MessageDelta) {
	value, _ := unwrapMessage(payloadText(delta.GetValue()))
	head, ok := readMessage(value)
	if !ok || head.ID == "" { // pieces without an id belong to no message
		return
	}
	of, isNew := t.messages.find(head.ID, event.GetTaskId())
	if isNew {
		t.add("messages", event, map[string]any{"event": "message-start", "role": roleOfMessage(head.Type), "id": head.ID})
	}
	for _, part := range readParts(value) {
		t.addPart(event, of, part)
	}
}

// addPart adds a part to the last block of a message, or begins another one.
func (t *eventTranslator) addPart(event *graphdv1.Event, of *openMessage, part openBlock) {
	last := len(of.blocks) - 1
	if last < 0 || !of.blocks[last].continues(&part) {
		t.finishBlock(event, of)
		last++
		begun := openBlock{kind: part.kind, id: part.id, name: part.name}
		of.blocks = append(of.blocks, begun)
		t.add("messages", event, map[string]any{"event": "content-block-start", "index": last, "content": begun.content(false)})
	}
	if part.text == "" {
		return
	}
	of.blocks[last].text += part.text
	of.size += len(part.text)
	t.messages.size += len(part.text)
	t.add("messages", event, map[string]any{"event": "content-block-delta", "index": last, "delta": part.delta()})
}

// finishBlock ends the last block of a message.
func (t *eventTranslator) finishBlock(event *graphdv1.Event, of *openMessage) {
	if last := len(of.blocks) - 1; last >= 0 {
		t.add("messages", event, map[string]any{"event": "content-block-finish", "index": last, "content": of.blocks[last].content(true)})
	}
}

// finishMessages ends the messages of a task that has ended.
func (t *eventTranslator) finishMessages(event *graphdv1.Event) {
	for _, of := range slices.Clone(t.messages.open) {
		if of.task != event.GetTaskId() {
			continue
		}
		t.finishBlock(event, of)
		t.add("messages", event, map[string]any{"event": "message-finish"})
		t.messages.remove(of)
	}
}

// roleOfMessage returns the author of a message of a type, like ai or AIMessageChunk.
func roleOfMessage(kind string) string {
	switch kind {
	case "human", "HumanMessageChunk":
		return "human"
	case "system", "SystemMessageChunk":
		return "system"
	}
	return "ai"
}
