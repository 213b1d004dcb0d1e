package main

import (
	"encoding/json"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
)

// findAnswer returns the answer to a question, by its key. It is nil when there is none
// yet, and when the answer was given to a question that showed something else: then the
// question is asked again, and graphd decides.
func findAnswer(task *graphdv1.TaskAssignment, question *graphdv1.Ask) *graphdv1.Answer {
	for _, entry := range task.GetJournal().GetEntries() {
		if entry.GetScope() != "" || entry.GetKey() != question.GetKey() || entry.GetIndex() != 0 {
			continue
		}
		if entry.GetAnswer().GetSeen() == digestOf(question) {
			return entry.GetAnswer()
		}
	}
	return nil
}

func digestOf(question *graphdv1.Ask) string {
	return seen.Digest(question.GetMessage(), json.RawMessage(question.GetValue().GetJson()),
		json.RawMessage(question.GetResponseSchema().GetJson()))
}

// addUsedAnswer notes which answer a result has used.
func addUsedAnswer(result *graphdv1.TaskResult, question *graphdv1.Ask, answer *graphdv1.Answer) *graphdv1.TaskResult {
	if result != nil {
		result.Used = append(result.Used, &graphdv1.UsedAnswer{Key: question.GetKey(), Seen: answer.GetSeen()})
	}
	return result
}

// emitValue sends an event to the followers of the run. Such events may be dropped; the
// result never is.
func emitValue(stream graphdv1.NodeService_ExecuteTaskServer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	item := &graphdv1.EmitItem{Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: newPayload(string(text))}
	emit := &graphdv1.Emit{Items: []*graphdv1.EmitItem{item}}
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: emit}})
}

// newCompletedResult ends the task with an update of the state, one value per channel.
func newCompletedResult(update map[string]any) (*graphdv1.TaskResult, error) {
	text, err := json.Marshal(update)
	if err != nil {
		return nil, err
	}
	done := &graphdv1.TaskCompleted{Update: newPayload(string(text))}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: done}}, nil
}

// newInterruptedResult ends the attempt with a question.
func newInterruptedResult(question *graphdv1.Ask) *graphdv1.TaskResult {
	waiting := &graphdv1.TaskInterrupted{Asks: []*graphdv1.Ask{question}}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: waiting}}
}

// newFailedResult ends the task with a failure. Another attempt would not help.
func newFailedResult(kind, message string) *graphdv1.TaskResult {
	failure := &graphdv1.TaskFailed{
		Type: kind, Message: message, NonRetryable: true, Cause: graphdv1.TaskFailed_CAUSE_USER_CODE,
	}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: failure}}
}

// newPayload returns a payload of a value that is JSON text.
func newPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
