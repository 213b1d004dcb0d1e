package wire

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// JSONToProto wraps JSON text unchanged; "" becomes nil.
func JSONToProto(j payload.JSON) *graphdv1.Payload {
	if j == "" {
		return nil
	}
	out := &struct {
		payload graphdv1.Payload
		json    graphdv1.Payload_Json
	}{json: graphdv1.Payload_Json{Json: string(j)}}
	out.payload.Body = &out.json
	return &out.payload
}

// TimeToProto converts a time; the zero time is unset.
func TimeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// DurationToProto converts a duration; 0 is unset.
func DurationToProto(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// CursorToProto converts a position in a log.
func CursorToProto(logID string, sequence uint64) *graphdv1.Cursor {
	return &graphdv1.Cursor{LogId: logID, Sequence: sequence}
}

// Namespaces are "node:task|node:task" in the domain and a list of elements in
// messages.
const namespaceSeparator = "|"

func namespaceToProto(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return strings.Split(namespace, namespaceSeparator)
}

// NamespaceFromProto joins the path of a subgraph into a namespace.
func NamespaceFromProto(v *Validator, field string, path []string) string {
	if len(path) > maxNamespaceDepth {
		v.AddViolation(field, "is %d deep; at most %d is allowed", len(path), maxNamespaceDepth)
		return ""
	}
	for _, element := range path {
		switch {
		case element == "" || strings.Contains(element, namespaceSeparator):
			v.AddViolation(field, "element %q is not node or node:task", reason.ClipText(element, MaxNameLength))
		case len(element) > MaxNameLength+1+MaxIDLength:
			v.AddViolation(field, "an element has %d bytes; at most %d are allowed", len(element), MaxNameLength+1+MaxIDLength)
		}
	}
	return strings.Join(path, namespaceSeparator)
}

// CheckpointRefFromProto splits a reference; an unset reference means the newest
// checkpoint of the root.
func CheckpointRefFromProto(v *Validator, field string, ref *graphdv1.CheckpointRef) (id, namespace string) {
	return v.CheckOptionalID(field+".checkpoint_id", ref.GetCheckpointId()),
		NamespaceFromProto(v, field+".namespace", ref.GetNamespace())
}

// CheckpointRefToProto converts a reference to a checkpoint; without an id it is unset.
func CheckpointRefToProto(id, namespace string) *graphdv1.CheckpointRef {
	if id == "" {
		return nil
	}
	return &graphdv1.CheckpointRef{CheckpointId: id, Namespace: namespaceToProto(namespace)}
}

func failureToProto(f *checkpoint.Failure) *graphdv1.Failure {
	if f == nil {
		return nil
	}
	return &graphdv1.Failure{
		Reason: f.Reason, Message: f.Message, Node: f.Node, Type: f.Type, Attempt: ClampUint32(f.Attempt),
		Details: f.Details, Stack: f.Stack,
	}
}

func sendsFromProto(v *Validator, field string, targets []*graphdv1.Goto) []checkpoint.Send {
	if len(targets) > maxListEntries {
		v.AddViolation(field, "has %d entries; at most %d are allowed", len(targets), maxListEntries)
		return nil
	}
	var sends []checkpoint.Send
	for i, t := range targets {
		at := elementPath(field, i)
		switch kind := t.GetTarget().(type) {
		case *graphdv1.Goto_Node:
			v.RequireSet(at+".node", kind.Node != "")
			sends = append(sends, checkpoint.Send{Node: v.CheckName(at+".node", kind.Node)})
		case *graphdv1.Goto_Send:
			v.RequireSet(at+".send.node", kind.Send.GetNode() != "")
			sends = append(sends, checkpoint.Send{
				Node:  v.CheckName(at+".send.node", kind.Send.GetNode()),
				Input: v.ConvertPayload(at+".send.input", kind.Send.GetInput()),
			})
		default:
			v.AddViolation(at, "must have a node or a send")
		}
	}
	return sends
}
