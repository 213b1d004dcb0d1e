package main

import (
	"encoding/json"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
)

// answerTo finds the answer to a question with a key; nil when there is none
// yet, or when it was given to a question that showed something else: then the
// question is asked, and graphd decides.
func answerTo(task *graphdv1.TaskAssignment, question *graphdv1.Ask) *graphdv1.Answer {
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

// using says which answer a result has used.
func using(result *graphdv1.TaskResult, question *graphdv1.Ask, answer *graphdv1.Answer) *graphdv1.TaskResult {
	if result != nil {
		result.Used = append(result.Used, &graphdv1.UsedAnswer{Key: question.GetKey(), Seen: answer.GetSeen()})
	}
	return result
}

// tell sends an event to the followers of the run. Such events may be dropped; the
// result never is.
func tell(stream graphdv1.NodeService_ExecuteTaskServer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	item := &graphdv1.EmitItem{Channel: graphdv1.Channel_CHANNEL_CUSTOM, Value: payload(string(text))}
	emit := &graphdv1.Emit{Items: []*graphdv1.EmitItem{item}}
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: emit}})
}

// completed is the update of the state, one value per channel.
func completed(update map[string]any) (*graphdv1.TaskResult, error) {
	text, err := json.Marshal(update)
	if err != nil {
		return nil, err
	}
	done := &graphdv1.TaskCompleted{Update: payload(string(text))}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: done}}, nil
}

// asked ends the attempt with a question.
func asked(question *graphdv1.Ask) *graphdv1.TaskResult {
	waiting := &graphdv1.TaskInterrupted{Asks: []*graphdv1.Ask{question}}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: waiting}}
}

// failed says that trying again would not help.
func failed(kind, message string) *graphdv1.TaskResult {
	failure := &graphdv1.TaskFailed{
		Type: kind, Message: message, NonRetryable: true, Cause: graphdv1.TaskFailed_CAUSE_USER_CODE,
	}
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: failure}}
}

// payload carries a value as JSON text.
func payload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}
