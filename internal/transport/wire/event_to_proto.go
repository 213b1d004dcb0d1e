package wire

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// nodeInterrupt is Event.node of interrupts, the name that LangGraph uses.
const nodeInterrupt = "__interrupt__"

// Values of Event.channel.
const (
	ChannelLifecycle   = "lifecycle"
	channelUpdates     = "updates"
	ChannelValues      = "values"
	channelMessages    = "messages"
	channelCustom      = "custom"
	channelTasks       = "tasks"
	channelCheckpoints = "checkpoints"
)

// EventToProto converts an event. values is the state, for kinds that show a state
// and do not carry it themselves.
func EventToProto(e *checkpoint.Event, thread, logID string, values payload.JSON) *graphdv1.Event {
	out := newEvent(e, thread, logID)
	switch e.Kind {
	case checkpoint.EventRunState:
		out.Channel = ChannelLifecycle
		out.Kind = &graphdv1.Event_RunState{RunState: &graphdv1.RunStateChanged{
			State: runStateToProto(e.State), Failure: failureToProto(e.Failure),
		}}
	case checkpoint.EventUpdate:
		out.Channel = channelUpdates
		out.Kind = &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{
			Values: JSONToProto(e.Value), Cached: e.Cached,
		}}
	case checkpoint.EventValues:
		out.Channel = ChannelValues
		out.Kind = &graphdv1.Event_Values{Values: &graphdv1.StateValues{
			Values: JSONToProto(values), Checkpoint: CheckpointRefToProto(e.Checkpoint, e.Namespace),
		}}
	case checkpoint.EventTask:
		out.Channel = channelTasks
		out.Kind = &graphdv1.Event_Task{Task: &graphdv1.TaskChange{
			Phase: phaseToProto(e.Phase), Failure: failureToProto(e.Failure), RetryDelay: DurationToProto(e.Delay),
			Value: JSONToProto(values), Triggers: e.Triggers,
		}}
	case checkpoint.EventCheckpoint:
		out.Channel = channelCheckpoints
		out.Kind = &graphdv1.Event_Checkpoint{Checkpoint: checkpointSavedToProto(e, values)}
	case checkpoint.EventInterrupt:
		out.Channel, out.Node = nodeInterrupt, nodeInterrupt
		out.Kind = &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
			Interrupts: clearEtags(InterruptsToProto(e.Interrupts)),
		}}
	case checkpoint.EventResolved:
		out.Channel = nodeInterrupt
		out.Kind = &graphdv1.Event_InterruptResolved{InterruptResolved: &graphdv1.InterruptResolved{
			Interrupts: clearEtags(InterruptsToProto(e.Interrupts)),
		}}
	case checkpoint.EventCustom:
		out.Channel = channelCustom
		out.Kind = &graphdv1.Event_Custom{Custom: &graphdv1.CustomEvent{Name: e.Name, Value: JSONToProto(e.Value)}}
	case checkpoint.EventMessage:
		out.Channel = channelMessages
		out.Kind = &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Name: e.Name, Value: JSONToProto(e.Value)}}
	case runtime.EventGap:
		out.Channel = ChannelLifecycle
		out.Kind = &graphdv1.Event_Gap{Gap: &graphdv1.Gap{Missing: runtime.MissingEvents(e)}}
	}
	return out
}

// newEvent converts the fields that events of all kinds have. It makes one
// allocation, because streams send little else.
func newEvent(e *checkpoint.Event, thread, logID string) *graphdv1.Event {
	out := new(struct {
		event  graphdv1.Event
		cursor graphdv1.Cursor
		time   timestamppb.Timestamp
	})
	out.cursor.LogId, out.cursor.Sequence = logID, e.Seq
	event := &out.event
	event.Cursor, event.ThreadId, event.RunId = &out.cursor, tenant.ClientName(thread), e.Run
	if !e.Time.IsZero() {
		out.time.Seconds, out.time.Nanos = e.Time.Unix(), int32(e.Time.Nanosecond())
		event.Time = &out.time
	}
	event.Namespace, event.Step = namespaceToProto(e.Namespace), int32(e.Step)
	event.Node, event.TaskId = e.Node, e.Task
	event.Attempt, event.Ephemeral, event.Actor = ClampUint32(e.Attempt), e.Ephemeral, e.Actor
	return event
}

// clearEtags removes the etags of interrupts in an event. Events are written
// together with the interrupts, before the store has numbered the change.
func clearEtags(questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	for _, q := range questions {
		q.Etag = ""
	}
	return questions
}

func checkpointSavedToProto(e *checkpoint.Event, values payload.JSON) *graphdv1.CheckpointSaved {
	out := &graphdv1.CheckpointSaved{
		Checkpoint: CheckpointRefToProto(e.Checkpoint, e.Namespace), Parent: CheckpointRefToProto(e.Parent, e.Namespace),
		Source: sourceToProto(e.Source), Values: JSONToProto(values),
	}
	for _, t := range e.Next {
		out.Next = append(out.Next, &graphdv1.DueTask{TaskId: t.ID, Node: t.Node})
	}
	return out
}

// OmitValue removes the value from an event that is too large to be sent.
func OmitValue(e *graphdv1.Event) {
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
		clearValues(kind.Interrupt.GetInterrupts())
	case *graphdv1.Event_InterruptResolved:
		clearValues(kind.InterruptResolved.GetInterrupts())
	}
}

// OmitInterruptValues takes the values out of the questions of a snapshot that is too
// large without its state, too.
func OmitInterruptValues(e *graphdv1.Event) { clearValues(e.GetValues().GetInterrupts()) }

func clearValues(questions []*graphdv1.Interrupt) {
	for _, q := range questions {
		q.Value, q.Response, q.DefaultResponse = nil, nil, nil
	}
}
