package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// nodeInterrupt is Event.node of questions, as LangGraph names it.
const nodeInterrupt = "__interrupt__"

// Words of Event.channel.
const (
	wordLifecycle   = "lifecycle"
	wordUpdates     = "updates"
	wordValues      = "values"
	wordMessages    = "messages"
	wordCustom      = "custom"
	wordTasks       = "tasks"
	wordCheckpoints = "checkpoints"
)

// eventOut converts an event. values is the state for kinds that show one and
// do not carry it themselves.
func eventOut(e *checkpoint.Event, thread, logID string, values payload.JSON) *graphdv1.Event {
	out := &graphdv1.Event{
		Cursor: cursorOut(logID, e.Seq), Time: timeOut(e.Time), ThreadId: thread, RunId: e.Run,
		Namespace: namespaceOut(e.Namespace), Step: int32(e.Step),
		Node: e.Node, TaskId: e.Task, Attempt: count(e.Attempt), Ephemeral: e.Ephemeral,
	}
	switch e.Kind {
	case checkpoint.EventRunState:
		out.Channel = wordLifecycle
		out.Kind = &graphdv1.Event_RunState{RunState: &graphdv1.RunStateChanged{
			State: runStateOut(e.State), Failure: failureOut(e.Failure),
		}}
	case checkpoint.EventUpdate:
		out.Channel = wordUpdates
		out.Kind = &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{
			Values: jsonOut(e.Value), Cached: e.Cached,
		}}
	case checkpoint.EventValues:
		out.Channel = wordValues
		out.Kind = &graphdv1.Event_Values{Values: &graphdv1.StateValues{
			Values: jsonOut(values), Checkpoint: checkpointOut(e.Checkpoint, e.Namespace),
		}}
	case checkpoint.EventTask:
		out.Channel = wordTasks
		out.Kind = &graphdv1.Event_Task{Task: &graphdv1.TaskChange{
			Phase: phaseOut(e.Phase), Failure: failureOut(e.Failure), RetryDelay: durationOut(e.Delay),
			Value: jsonOut(values), Triggers: e.Triggers,
		}}
	case checkpoint.EventCheckpoint:
		out.Channel = wordCheckpoints
		out.Kind = &graphdv1.Event_Checkpoint{Checkpoint: checkpointSavedOut(e, values)}
	case checkpoint.EventInterrupt:
		out.Channel, out.Node = nodeInterrupt, nodeInterrupt
		out.Kind = &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
			Interrupts: withoutEtags(interruptsOut(e.Interrupts)),
		}}
	case checkpoint.EventResolved:
		out.Channel = nodeInterrupt
		out.Kind = &graphdv1.Event_InterruptResolved{InterruptResolved: &graphdv1.InterruptResolved{
			Interrupts: withoutEtags(interruptsOut(e.Interrupts)),
		}}
	case checkpoint.EventCustom:
		out.Channel = wordCustom
		out.Kind = &graphdv1.Event_Custom{Custom: &graphdv1.CustomEvent{Name: e.Name, Value: jsonOut(e.Value)}}
	case checkpoint.EventMessage:
		out.Channel = wordMessages
		out.Kind = &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Name: e.Name, Value: jsonOut(e.Value)}}
	case runtime.EventGap:
		out.Channel = wordLifecycle
		out.Kind = &graphdv1.Event_Gap{Gap: &graphdv1.Gap{}}
	}
	return out
}

// withoutEtags keeps an event from showing an etag: events are written together
// with the questions, before the store has numbered the change.
func withoutEtags(questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	for _, q := range questions {
		q.Etag = ""
	}
	return questions
}

func checkpointSavedOut(e *checkpoint.Event, values payload.JSON) *graphdv1.CheckpointSaved {
	out := &graphdv1.CheckpointSaved{
		Checkpoint: checkpointOut(e.Checkpoint, e.Namespace), Parent: checkpointOut(e.Parent, e.Namespace),
		Source: sourceOut(e.Source), Values: jsonOut(values),
	}
	for _, t := range e.Next {
		out.Next = append(out.Next, &graphdv1.DueTask{TaskId: t.ID, Node: t.Node})
	}
	return out
}

// omitValue takes the value out of an event that is too large to be sent.
func omitValue(e *graphdv1.Event) {
	e.ValueOmitted = true
	switch kind := e.GetKind().(type) {
	case *graphdv1.Event_Update:
		kind.Update.Values = nil
	case *graphdv1.Event_Values:
		kind.Values.Values = nil
	case *graphdv1.Event_Task:
		kind.Task.Value = nil
	case *graphdv1.Event_Checkpoint:
		kind.Checkpoint.Values = nil
	case *graphdv1.Event_Custom:
		kind.Custom.Value = nil
	case *graphdv1.Event_Message:
		kind.Message.Value = nil
	case *graphdv1.Event_Interrupt:
		withoutValues(kind.Interrupt.GetInterrupts())
	case *graphdv1.Event_InterruptResolved:
		withoutValues(kind.InterruptResolved.GetInterrupts())
	}
}

func withoutValues(questions []*graphdv1.Interrupt) {
	for _, q := range questions {
		q.Value, q.Response, q.DefaultResponse = nil, nil, nil
	}
}
