package agentserver

import (
	"encoding/json"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// messageBlocks are the messages that are shown in pieces, as protocol v2 has them: each is a list of
// content blocks, and pieces add to the last one.
type messageBlocks struct {
	byTask map[string]*taskMessages
	size   int // bytes of all that
}

// taskMessages are the messages of a task of which more pieces may come.
type taskMessages struct {
	byID  map[string]*openMessage
	order []*openMessage
	size  int
}

// openMessage is a message as far as it was shown.
type openMessage struct{ blocks []openBlock }

// openBlock is a content block as far as it was shown.
type openBlock struct {
	kind string // text, reasoning or tool_call_chunk
	id   string // of a call of a tool
	name string
	text []byte // or the arguments of a call
}

func newMessageBlocks() *messageBlocks { return &messageBlocks{byTask: map[string]*taskMessages{}} }

// findMessage returns a message of a task, which begins now if it is not open.
func (m *messageBlocks) findMessage(id, task string) (of *openMessage, isNew bool) {
	messages := m.byTask[task]
	if messages == nil {
		messages = &taskMessages{byID: map[string]*openMessage{}}
		m.byTask[task] = messages
	}
	if known := messages.byID[id]; known != nil {
		return known, false
	}
	begun := &openMessage{}
	messages.byID[id], messages.order = begun, append(messages.order, begun)
	m.countBytes(task, len(id)+seenBytes)
	return begun, true
}

// countBytes counts what a message of a task holds.
func (m *messageBlocks) countBytes(task string, n int) {
	m.byTask[task].size += n
	m.size += n
}

// takeTask returns the messages of a task in their order, and forgets them.
func (m *messageBlocks) takeTask(task string) []*openMessage {
	of := m.byTask[task]
	if of == nil {
		return nil
	}
	delete(m.byTask, task)
	m.size -= of.size
	return of.order
}

// forgetAll forgets all messages: their run has stopped.
func (m *messageBlocks) forgetAll() {
	clear(m.byTask)
	m.size = 0
}

// messagePart is a piece of a message: of its text, its reasoning, or of a call of a tool.
type messagePart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Think string `json:"reasoning"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Args  string `json:"args"`
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
			parts = append(parts, openBlock{kind: "text", text: []byte(text)})
		}
	} else if json.Unmarshal(fields.Content, &list) == nil {
		for _, part := range list {
			switch {
			case part.Type == "text" && part.Text != "":
				parts = append(parts, openBlock{kind: "text", text: []byte(part.Text)})
			case part.Type == "reasoning" && part.Think != "":
				parts = append(parts, openBlock{kind: "reasoning", text: []byte(part.Think)})
			}
		}
	}
	for _, chunk := range fields.Chunks {
		parts = append(parts, openBlock{kind: "tool_call_chunk", id: chunk.ID, name: chunk.Name, text: []byte(chunk.Args)})
	}
	return parts
}

// isContinuedBy reports whether a part adds to a block: one of the same kind, and of the same call of
// a tool. Only the first part of a call has its id.
func (b *openBlock) isContinuedBy(part *openBlock) bool {
	return b.kind == part.kind && (part.id == "" || part.id == b.id)
}

// buildContent returns a block as clients have it. isDone says that it is whole.
func (b *openBlock) buildContent(isDone bool) map[string]any {
	switch b.kind {
	case "reasoning":
		return map[string]any{"type": "reasoning", "reasoning": string(b.text)}
	case "tool_call_chunk":
		if !isDone {
			return map[string]any{"type": "tool_call_chunk", "id": b.id, "name": b.name, "args": string(b.text)}
		}
		if isObject(b.text) && json.Valid(b.text) {
			return map[string]any{"type": "tool_call", "id": b.id, "name": b.name, "args": json.RawMessage(b.text)}
		}
		return map[string]any{"type": "invalid_tool_call", "id": b.id, "name": b.name, "args": string(b.text), "error": nil}
	}
	return map[string]any{"type": "text", "text": string(b.text)}
}

// buildDelta returns what a part adds to its block.
func (b *openBlock) buildDelta() map[string]any {
	switch b.kind {
	case "reasoning":
		return map[string]any{"type": "reasoning-delta", "reasoning": string(b.text)}
	case "tool_call_chunk":
		return map[string]any{"type": "tool-call-delta", "args": string(b.text)}
	}
	return map[string]any{"type": "text-delta", "text": string(b.text)}
}

// showMessage shows a piece of a message that a node emits. A whole message shows with the state.
func (t *eventTranslator) showMessage(event *graphdv1.Event, delta *graphdv1.MessageDelta) {
	value, _ := unwrapMessage(payloadText(delta.GetValue()))
	head, ok := readMessage(value)
	if !ok || head.ID == "" { // pieces without an id belong to no message
		return
	}
	of, isNew := t.messages.findMessage(head.ID, event.GetTaskId())
	if isNew {
		t.addEvent("messages", event, map[string]any{"event": "message-start", "role": roleOfMessage(head.Type), "id": head.ID})
	}
	for _, part := range readParts(value) {
		t.addPart(event, of, part)
	}
}

// addPart adds a part to the last block of a message, or begins another one.
func (t *eventTranslator) addPart(event *graphdv1.Event, of *openMessage, part openBlock) {
	last := len(of.blocks) - 1
	if last < 0 || !of.blocks[last].isContinuedBy(&part) {
		t.finishBlock(event, of)
		last++
		begun := openBlock{kind: part.kind, id: part.id, name: part.name}
		of.blocks = append(of.blocks, begun)
		t.messages.countBytes(event.GetTaskId(), len(part.id)+len(part.name)+seenBytes)
		t.addEvent("messages", event, map[string]any{"event": "content-block-start", "index": last, "content": begun.buildContent(false)})
	}
	if len(part.text) == 0 {
		return
	}
	of.blocks[last].text = append(of.blocks[last].text, part.text...)
	t.messages.countBytes(event.GetTaskId(), len(part.text))
	t.addEvent("messages", event, map[string]any{"event": "content-block-delta", "index": last, "delta": part.buildDelta()})
}

// finishBlock ends the last block of a message.
func (t *eventTranslator) finishBlock(event *graphdv1.Event, of *openMessage) {
	if last := len(of.blocks) - 1; last >= 0 {
		t.addEvent("messages", event, map[string]any{"event": "content-block-finish", "index": last, "content": of.blocks[last].buildContent(true)})
	}
}

// finishMessages ends the messages of a task that has ended.
func (t *eventTranslator) finishMessages(event *graphdv1.Event) {
	for _, of := range t.messages.takeTask(event.GetTaskId()) {
		t.finishBlock(event, of)
		t.addEvent("messages", event, map[string]any{"event": "message-finish"})
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
