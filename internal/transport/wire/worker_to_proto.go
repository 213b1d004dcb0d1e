package wire

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// TaskAssignmentToProto converts a task for an endpoint, or a worker that keeps no values.
func TaskAssignmentToProto(a message.Assignment) *graphdv1.TaskAssignment {
	out := AssignmentWithoutChannels(a)
	if !ReadsChannels(a.Task) {
		return out
	}
	out.Channels = make(map[string]*graphdv1.Payload)
	for key, value := range a.Task.State.StoredValues() {
		out.Channels[key] = JSONToProto(value.Text())
	}
	return out
}

// ReadsChannels reports whether a task is given the channels of its state.
func ReadsChannels(t *runtime.Task) bool { return t.Reduce == nil && (t.Router != "" || t.Send == "") }

// AssignmentWithoutChannels converts a task without its channels.
func AssignmentWithoutChannels(a message.Assignment) *graphdv1.TaskAssignment {
	t := a.Task
	out := &graphdv1.TaskAssignment{
		Lease: LeaseToProto(a.Token, a.LeaseTTL), Kind: taskKind(t),
		ThreadId: tenant.ClientName(t.Thread), RunId: t.Run, TaskId: t.ID, Attempt: ClampUint32(t.Attempt), Delivery: ClampUint32(a.Delivery),
		Graph: tenant.ClientName(t.Graph.Name), GraphVersion: t.Graph.Version, Namespace: namespaceToProto(t.Namespace),
		Step: int32(t.Step), StopStep: int32(min(t.MaxStep, 1<<30)),
		Checkpoint: CheckpointRefToProto(t.Checkpoint, t.Namespace),
		Context:    JSONToProto(t.Context), Metadata: t.Metadata, Journal: journalToProto(t, a.Memos),
		Failure: failureToProto(t.Failed), Timeout: DurationToProto(a.Timeout), Triggers: t.Triggers,
		Emit:        []graphdv1.Channel{graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_CUSTOM},
		RandomSeed:  randomSeed(t.ID),
		LogicalTime: timestamppb.New(logicalTime(t.CheckpointTime)),
		Trace:       t.Trace,
	}
	if t.Node != nil {
		out.Node, out.IdleTimeout = t.Node.Name, DurationToProto(t.Node.IdleTimeout)
	}
	switch {
	case t.Reduce != nil:
		out.Function = t.Reduce.Function
		out.Reduction = &graphdv1.Reduction{Channel: t.Reduce.Channel, Current: JSONToProto(t.Reduce.Current)}
		for _, w := range t.Reduce.Writes {
			out.Reduction.Writes = append(out.Reduction.Writes, JSONToProto(w))
		}
		return out
	case t.Router != "":
		out.Function, out.Branch = t.Router, t.Branch
	case t.Send != "":
		out.SendInput = JSONToProto(t.Send)
		return out
	}
	return out
}

func taskKind(t *runtime.Task) graphdv1.TaskKind {
	switch {
	case t.Reduce != nil:
		return graphdv1.TaskKind_TASK_KIND_REDUCER
	case t.Router != "":
		return graphdv1.TaskKind_TASK_KIND_ROUTER
	case t.Failed != nil:
		return graphdv1.TaskKind_TASK_KIND_ERROR_HANDLER
	}
	return graphdv1.TaskKind_TASK_KIND_NODE
}

// logicalTime returns the time on which a task may base decisions: 1970 for a graph
// that has no checkpoint yet.
func logicalTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0)
	}
	return t
}

// randomSeed derives a seed from the id of the task. It is random enough, and the
// same in every attempt.
func randomSeed(task string) uint64 {
	raw, err := hex.DecodeString(task)
	if err != nil || len(raw) < 8 {
		raw = append([]byte(task), make([]byte, 8)...)
	}
	return binary.BigEndian.Uint64(raw)
}

// LeaseToProto converts a lease and its duration.
func LeaseToProto(token string, ttl time.Duration) *graphdv1.TaskLease {
	return &graphdv1.TaskLease{Token: []byte(token), Ttl: durationpb.New(ttl)}
}

// journalToProto converts the records that a task replays. A conditional edge gets
// no answers, because those belong to the interrupts of the node.
func journalToProto(t *runtime.Task, recorded []checkpoint.Memo) *graphdv1.Journal {
	j := t.Journal
	if t.Router != "" {
		j.Answers = nil
	}
	if len(j.Answers)+len(j.Memos)+len(recorded) == 0 {
		return nil
	}
	out := &graphdv1.Journal{}
	if len(j.Answers) > 0 && t.Graph.Spec != nil {
		out.Drift, out.DriftIgnore = driftToProto(checkpoint.Drift(t.Graph.Spec.Drift)), t.Graph.Spec.DriftIgnore
	}
	for i := range j.Answers {
		a := &j.Answers[i]
		answer := &graphdv1.Answer{InterruptId: a.InterruptID, Seen: a.ShownDigest, SecretSeen: a.HiddenDigest}
		switch {
		case a.Dismissed:
			answer.Outcome = &graphdv1.Answer_Dismissed{Dismissed: &graphdv1.Dismissal{Reason: a.Reason}}
		case a.Expired:
			answer.Outcome = &graphdv1.Answer_Expired{Expired: &emptypb.Empty{}}
		default:
			answer.Outcome = &graphdv1.Answer_Value{Value: JSONToProto(a.Value)}
		}
		out.Entries = append(out.Entries, &graphdv1.JournalEntry{
			Scope: a.Scope, Key: a.Key, Index: ClampUint32(a.Index), Entry: &graphdv1.JournalEntry_Answer{Answer: answer},
		})
	}
	appendMemos(out, j.Memos)
	appendMemos(out, recorded)
	return out
}

func appendMemos(out *graphdv1.Journal, memos []checkpoint.Memo) {
	for i := range memos {
		m := &memos[i]
		out.Entries = append(out.Entries, &graphdv1.JournalEntry{
			Scope: m.Scope, Key: m.Key, Index: ClampUint32(m.Index), Entry: &graphdv1.JournalEntry_Memo{Memo: JSONToProto(m.Value)},
		})
	}
}

// ControlMessageToProto converts a message to a worker that is not a task.
func ControlMessageToProto(m message.Message) *graphdv1.ConnectResponse {
	switch m := m.(type) {
	case message.TaskCancel:
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Cancel{Cancel: &graphdv1.CancelTask{
			LeaseToken: []byte(m.Token), Reason: m.Reason, Grace: DurationToProto(m.Grace),
		}}}
	case message.HeartbeatAck:
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_BeatAck{BeatAck: &graphdv1.BeatAck{
			Number: m.Number, Lost: LeaseTokensToProto(m.LostLeases), Undecided: LeaseTokensToProto(m.UndecidedLeases),
		}}}
	case message.LeaseRenewal:
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Renewed{Renewed: LeaseToProto(m.Token, m.LeaseTTL)}}
	case message.DrainNotice:
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Drain{Drain: &graphdv1.Drain{
			Deadline: DurationToProto(m.TimeLeft), Reason: m.Reason,
		}}}
	case message.ThrottleNotice:
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Throttle{Throttle: &graphdv1.Throttle{
			MinInterval: DurationToProto(m.MinInterval), Dropped: m.DroppedEvents,
		}}}
	}
	return nil
}

// LeaseTokensToProto converts the tokens of leases.
func LeaseTokensToProto(list []string) [][]byte {
	var out [][]byte
	for _, t := range list {
		out = append(out, []byte(t))
	}
	return out
}

// CallResultToProto converts the result of a graph that a task has called.
func CallResultToProto(r runtime.CallResult) *graphdv1.CallGraphResponse {
	switch {
	case r.Failure != nil:
		return &graphdv1.CallGraphResponse{Outcome: &graphdv1.CallGraphResponse_Failure{Failure: failureToProto(r.Failure)}}
	case len(r.Waiting) > 0:
		return &graphdv1.CallGraphResponse{Outcome: &graphdv1.CallGraphResponse_Waiting{
			Waiting: &graphdv1.CallWaiting{InterruptIds: r.Waiting},
		}}
	case r.Command != nil:
		return &graphdv1.CallGraphResponse{Outcome: &graphdv1.CallGraphResponse_Command{Command: taskCompletedToProto(r.Command)}}
	}
	output := r.Output
	if output == "" {
		output = "null"
	}
	return &graphdv1.CallGraphResponse{Outcome: &graphdv1.CallGraphResponse_Output{Output: JSONToProto(output)}}
}

func taskCompletedToProto(r *message.Result) *graphdv1.TaskCompleted {
	out := &graphdv1.TaskCompleted{Update: JSONToProto(r.Update), ToParent: r.ToParent}
	for _, w := range r.Writes {
		out.Writes = append(out.Writes, &graphdv1.ChannelWrite{
			Channel: w.Channel, Value: JSONToProto(w.Value), Overwrite: w.Overwrite,
		})
	}
	for _, s := range r.Goto {
		target := &graphdv1.Goto{Target: &graphdv1.Goto_Node{Node: s.Node}}
		if s.Input != "" {
			target.Target = &graphdv1.Goto_Send{Send: &graphdv1.Send{Node: s.Node, Input: JSONToProto(s.Input)}}
		}
		out.GotoTargets = append(out.GotoTargets, target)
	}
	return out
}
