package client

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Answer is the answer to one question.
type Answer struct {
	// Question is the id of the question; "" = the only one that is open in the thread.
	Question string
	// Value is the answer; a json.RawMessage is taken as it is. It is not used when Dismiss is set.
	Value any
	// Dismiss says why there is no answer: the node gets an error. "" = there is one.
	Dismiss string
	// Note is for the record.
	Note string
	// Seen is Interrupt.seen of the question that was shown: another question at its place is not
	// answered then. "" = unchecked.
	Seen string
}

// AnswerTo is an answer to a question as it was shown: when another one has taken its place
// meanwhile, the answer is refused, [QuestionChanged].
func AnswerTo(q *graphdv1.Interrupt, value any) Answer {
	return Answer{Question: q.GetInterruptId(), Value: value, Seen: q.GetSeen()}
}

func (a *Answer) response(index int) (*graphdv1.InterruptResponse, error) {
	r := &graphdv1.InterruptResponse{InterruptId: a.Question, Note: a.Note, Seen: a.Seen}
	if a.Dismiss != "" {
		r.Outcome = &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: a.Dismiss}}
		return r, nil
	}
	field := fmt.Sprintf("responses[%d].value", index)
	value, err := encodePayload(field, a.Value)
	if err != nil {
		return nil, err
	}
	if value == nil {
		value = &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: "null"}}
	}
	r.Outcome = &graphdv1.InterruptResponse_Value{Value: value}
	return r, nil
}

func newResume(thread string, answers []Answer) (*graphdv1.ResumeSpec, error) {
	spec := &graphdv1.ResumeSpec{ThreadId: thread}
	for i := range answers {
		r, err := answers[i].response(i)
		if err != nil {
			return nil, err
		}
		if r.GetInterruptId() == "" && len(answers) == 1 {
			spec.Single = r
			return spec, nil
		}
		spec.Responses = append(spec.Responses, r)
	}
	return spec, nil
}

// Resume answers questions of a thread, all or none of them, and waits until the run has ended or
// asks again. Without answers it goes on after a breakpoint.
func (c *Client) Resume(ctx context.Context, thread string, answers ...Answer) (*Outcome, error) {
	spec, err := newResume(thread, answers)
	if err != nil {
		return nil, err
	}
	request := &graphdv1.ResumeRunRequest{Resume: spec, RequestId: requestID(""), Wait: durationpb.New(waitTime), View: graphdv1.RunView_RUN_VIEW_INTERRUPTS}
	run, err := repeat(ctx, c, func() (*graphdv1.Run, error) { return c.Graphs().ResumeRun(ctx, request) })
	if err != nil {
		return nil, err
	}
	return c.waitForStop(ctx, run)
}
