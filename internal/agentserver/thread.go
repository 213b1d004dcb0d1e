package agentserver

import (
	"cmp"
	"encoding/json"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// thread is a thread as clients have it.
type thread struct {
	ID           string                     `json:"thread_id"`
	Created      string                     `json:"created_at"`
	Updated      string                     `json:"updated_at"`
	StateUpdated string                     `json:"state_updated_at"`
	Metadata     metadata                   `json:"metadata"`
	Status       string                     `json:"status"`
	Config       map[string]any             `json:"config"`
	Values       json.RawMessage            `json:"values"`
	Interrupts   map[string][]shownQuestion `json:"interrupts"`
	Error        *runFailure                `json:"error"`
}

// shownQuestion is a question as clients have it.
type shownQuestion struct {
	ID     string          `json:"id"`
	Value  json.RawMessage `json:"value"`
	Schema json.RawMessage `json:"response_schema,omitempty"`
}

func newThread(t *graphdv1.Thread) thread {
	shown := thread{
		ID: t.GetThreadId(), Created: formatTime(t.GetCreateTime()), Updated: formatTime(t.GetUpdateTime()), StateUpdated: formatTime(t.GetUpdateTime()),
		Metadata: readLabels(t.GetMetadata()), Status: threadStatus(t.GetState()), Config: map[string]any{}, Interrupts: map[string][]shownQuestion{},
	}
	if t.GetGraph() != "" {
		shown.Metadata.setText("graph_id", t.GetGraph())
		shown.Metadata.setText("assistant_id", cmp.Or(t.GetMetadata()[assistantLabel], defaultAssistant(t.GetGraph())))
	}
	if t.GetCheckpoint() != nil {
		shown.Values = payloadText(t.GetValues())
	}
	for _, q := range listQuestions(t.GetInterrupts()) {
		task := dashID(q.GetTaskId())
		shown.Interrupts[task] = append(shown.Interrupts[task], newQuestion(q))
	}
	return shown
}

// payloadText returns the JSON of a payload, null for none.
func payloadText(p *graphdv1.Payload) json.RawMessage {
	if text := p.GetJson(); text != "" {
		return json.RawMessage(text)
	}
	return json.RawMessage("null")
}

// newPayload returns the payload of JSON text, nil for none.
func newPayload(text json.RawMessage) *graphdv1.Payload {
	if len(text) == 0 {
		return nil
	}
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(text)}}
}

// reasonBreakpoint is the reason of an interrupt at which a run stops without a question.
const reasonBreakpoint = "breakpoint"

// listQuestions returns the open interrupts that are questions, and no breakpoints.
func listQuestions(interrupts []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	var list []*graphdv1.Interrupt
	for _, one := range interrupts {
		if isQuestion(one) && one.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
			list = append(list, one)
		}
	}
	return list
}

func isQuestion(one *graphdv1.Interrupt) bool {
	return one.GetReason() != reasonBreakpoint || one.GetTaskId() != ""
}

func newQuestion(q *graphdv1.Interrupt) shownQuestion {
	shown := shownQuestion{ID: q.GetInterruptId(), Value: payloadText(q.GetValue())}
	if schema := q.GetResponseSchema().GetJson(); schema != "" {
		shown.Schema = json.RawMessage(schema)
	}
	return shown
}

// newQuestions returns the open questions among interrupts.
func newQuestions(interrupts []*graphdv1.Interrupt) []shownQuestion {
	list := []shownQuestion{}
	for _, q := range listQuestions(interrupts) {
		list = append(list, newQuestion(q))
	}
	return list
}

// newAskedQuestions returns the questions among interrupts, also those that are not open any more.
func newAskedQuestions(interrupts []*graphdv1.Interrupt) []shownQuestion {
	list := []shownQuestion{}
	for _, q := range interrupts {
		if isQuestion(q) {
			list = append(list, newQuestion(q))
		}
	}
	return list
}
