package agentserver

import (
	"encoding/json"
	"maps"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// messageLog knows which messages of a run were shown.
type messageLog struct {
	seen   map[string]bool            // ids of whole messages, and of those that were shown in pieces
	pieces map[string]*pieceOfMessage // by id, what was shown of it
	size   int                        // bytes of all that
}

// seenBytes is what an id holds besides its text.
const seenBytes = 64

// markShown notes that a message was shown.
func (m *messageLog) markShown(id string) {
	if id != "" && !m.seen[id] { // a message without an id is no other message's repetition
		m.seen[id] = true
		m.size += len(id) + seenBytes
	}
}

// forgetPieces forgets the pieces of a message.
func (m *messageLog) forgetPieces(id string) {
	if known := m.pieces[id]; known != nil {
		m.size -= known.size
		delete(m.pieces, id)
	}
}

// pieceOfMessage is a message as far as it was shown.
type pieceOfMessage struct {
	task   string
	size   int
	fields map[string]json.RawMessage
}

func newMessageLog() *messageLog {
	return &messageLog{seen: map[string]bool{}, pieces: map[string]*pieceOfMessage{}}
}

// messageHead is what tells a message from other objects.
type messageHead struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// readMessage returns the head of a message, false for another value.
func readMessage(value json.RawMessage) (head messageHead, isMessage bool) {
	if !isObject(value) || json.Unmarshal(value, &head) != nil {
		return head, false
	}
	return head, head.Type != "" && head.Type != "remove" && head.Content != nil
}

// visitMessages calls visit for the messages of a state or an update: those that are values of its
// keys, or in lists there.
func visitMessages(values json.RawMessage, visit func(message json.RawMessage, head messageHead)) {
	var list []json.RawMessage
	if json.Unmarshal(values, &list) == nil {
		for _, one := range list {
			visitMessages(one, visit)
		}
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(values, &fields) != nil {
		return
	}
	for _, value := range fields {
		var inside []json.RawMessage
		if json.Unmarshal(value, &inside) != nil {
			inside = []json.RawMessage{value}
		}
		for _, one := range inside {
			if head, ok := readMessage(one); ok {
				visit(one, head)
			}
		}
	}
}

// markSeen notes the messages of a state: they are no news.
func (m *messageLog) markSeen(values json.RawMessage) {
	visitMessages(values, func(_ json.RawMessage, head messageHead) { m.markShown(head.ID) })
}

// findNew returns the messages of an update that were not shown.
func (m *messageLog) findNew(values json.RawMessage) (list []json.RawMessage) {
	visitMessages(values, func(message json.RawMessage, head messageHead) {
		if head.ID == "" || !m.seen[head.ID] {
			list = append(list, message)
		}
		m.markShown(head.ID)
	})
	return list
}

// forgetTask forgets the pieces that a task has shown: they come again.
func (m *messageLog) forgetTask(task string) {
	for id, piece := range m.pieces {
		if piece.task == task {
			m.forgetPieces(id)
		}
	}
}

// addPiece adds a piece to a message, and returns the message so far.
func (m *messageLog) addPiece(task string, head messageHead, piece json.RawMessage) (whole map[string]json.RawMessage, isFirst bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(piece, &fields) != nil {
		return nil, false
	}
	known := m.pieces[head.ID]
	m.size += len(piece)
	if known == nil {
		m.pieces[head.ID] = &pieceOfMessage{task: task, size: len(piece), fields: fields}
		return fields, true
	}
	known.size += len(piece)
	for key, value := range fields {
		known.fields[key] = joinPieces(key, known.fields[key], value)
	}
	return known.fields, false
}

// joinPieces joins what two pieces of a message have under a key: texts of the content and lists one
// after the other; else the later value counts.
func joinPieces(key string, before, after json.RawMessage) json.RawMessage {
	var text, more string
	if key == "content" && json.Unmarshal(before, &text) == nil && json.Unmarshal(after, &more) == nil {
		return quoteText(text + more)
	}
	var list, further []json.RawMessage
	if json.Unmarshal(before, &list) == nil && json.Unmarshal(after, &further) == nil && before != nil {
		if joined, err := encodeJSON(append(list, further...)); err == nil {
			return joined
		}
	}
	if isAbsent(after) && !isAbsent(before) {
		return before
	}
	return after
}

// showMessage shows a piece of a message, or a message, that a node emits.
func (t *translator) showMessage(event *graphdv1.Event, delta *graphdv1.MessageDelta) {
	value, extra := unwrapMessage(payloadText(delta.GetValue()))
	if head, ok := readMessage(value); ok {
		t.messages.markShown(head.ID)
	}
	t.addMessage(event, value, extra)
}

// unwrapMessage returns a message, and the metadata that an SDK has sent with it.
func unwrapMessage(value json.RawMessage) (json.RawMessage, metadata) {
	var wrapped struct {
		Message  json.RawMessage `json:"message"`
		Metadata metadata        `json:"metadata"`
	}
	if isObject(value) && json.Unmarshal(value, &wrapped) == nil && wrapped.Message != nil && wrapped.Metadata != nil {
		return wrapped.Message, wrapped.Metadata
	}
	return value, nil
}

// addMessage shows a message or a piece in the modes of messages.
func (t *translator) addMessage(event *graphdv1.Event, message json.RawMessage, extra metadata) {
	about := t.describeMessage(event, extra)
	if t.has("messages-tuple") {
		t.add("messages", event.GetNamespace(), []any{message, about})
	}
	if t.has("messages") {
		t.addGrowing(event, message, about)
	}
	if t.has("events") && event.GetMessage() != nil {
		t.add("events", event.GetNamespace(), map[string]any{
			"event": "on_chat_model_stream", "name": event.GetNode(), "run_id": dashID(event.GetTaskId()), "data": map[string]any{"chunk": message},
			"metadata": about, "tags": []string{}, "parent_ids": []string{t.run},
		})
	}
}

// addGrowing shows a message as far as it is known.
func (t *translator) addGrowing(event *graphdv1.Event, message json.RawMessage, about metadata) {
	head, ok := readMessage(message)
	if !ok || head.ID == "" { // pieces without an id belong to no message
		return
	}
	isPiece := event.GetMessage() != nil
	whole, isFirst := t.messages.addPiece(event.GetTaskId(), head, message)
	if isFirst {
		t.add("messages/metadata", nil, map[string]any{head.ID: map[string]any{"metadata": about}})
	}
	if isPiece {
		t.add("messages/partial", nil, []any{whole})
		return
	}
	t.add("messages/complete", nil, []any{message})
	t.messages.forgetPieces(head.ID)
}

// describeMessage returns what stands beside a message: where it comes from.
func (t *translator) describeMessage(event *graphdv1.Event, extra metadata) metadata {
	about := metadata{}
	about.setText("thread_id", t.thread)
	about.setText("run_id", t.run)
	about.setText("graph_id", t.graph)
	about.setText("assistant_id", defaultAssistant(t.graph))
	about["langgraph_step"], _ = encodeJSON(event.GetStep()) // a number has JSON
	about.setText("langgraph_node", event.GetNode())
	about["langgraph_triggers"], _ = encodeJSON(nonNil(t.triggers[event.GetTaskId()]))
	about["langgraph_path"], _ = encodeJSON([]string{"__pregel_pull", event.GetNode()})
	about.setText("langgraph_checkpoint_ns", messageNamespace(event))
	about.setText("checkpoint_ns", messageNamespace(event))
	maps.Copy(about, extra)
	return about
}
