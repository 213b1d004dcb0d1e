package transport

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

// jsonToProto wraps JSON text as it is; no value is no payload.
func jsonToProto(j payload.JSON) *graphdv1.Payload {
	if j == "" {
		return nil
	}
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(j)}}
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func durationToProto(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func cursorToProto(logID string, sequence uint64) *graphdv1.Cursor {
	return &graphdv1.Cursor{LogId: logID, Sequence: sequence}
}

// Namespaces are "node:task|node:task" in the domain and a list of elements on
// the wire.
const namespaceSeparator = "|"

func namespaceToProto(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return strings.Split(namespace, namespaceSeparator)
}

func namespaceFromProto(b *validator, field string, path []string) string {
	if len(path) > maxNamespaceDepth {
		b.addViolation(field, "is %d deep; at most %d is allowed", len(path), maxNamespaceDepth)
		return ""
	}
	for _, element := range path {
		switch {
		case element == "" || strings.Contains(element, namespaceSeparator):
			b.addViolation(field, "element %q is not node or node:task", reason.ClipText(element, maxNameLength))
		case len(element) > maxNameLength+1+maxIDLength:
			b.addViolation(field, "an element has %d bytes; at most %d are allowed", len(element), maxNameLength+1+maxIDLength)
		}
	}
	return strings.Join(path, namespaceSeparator)
}

// checkpointRefFromProto splits a reference; unset is the newest of the root.
func checkpointRefFromProto(b *validator, field string, ref *graphdv1.CheckpointRef) (id, namespace string) {
	return b.checkOptionalID(field+".checkpoint_id", ref.GetCheckpointId()),
		namespaceFromProto(b, field+".namespace", ref.GetNamespace())
}

func checkpointRefToProto(id, namespace string) *graphdv1.CheckpointRef {
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
		Reason: f.Reason, Message: f.Message, Node: f.Node, Type: f.Type, Attempt: clampUint32(f.Attempt),
		Details: f.Details, Stack: f.Stack,
	}
}

func sendsFromProto(b *validator, field string, targets []*graphdv1.Goto) []checkpoint.Send {
	if len(targets) > maxListEntries {
		b.addViolation(field, "has %d entries; at most %d are allowed", len(targets), maxListEntries)
		return nil
	}
	var sends []checkpoint.Send
	for i, t := range targets {
		at := elementPath(field, i)
		switch kind := t.GetTarget().(type) {
		case *graphdv1.Goto_Node:
			b.requireSet(at+".node", kind.Node != "")
			sends = append(sends, checkpoint.Send{Node: b.checkName(at+".node", kind.Node)})
		case *graphdv1.Goto_Send:
			b.requireSet(at+".send.node", kind.Send.GetNode() != "")
			sends = append(sends, checkpoint.Send{
				Node:  b.checkName(at+".send.node", kind.Send.GetNode()),
				Input: b.convertPayload(at+".send.input", kind.Send.GetInput()),
			})
		default:
			b.addViolation(at, "must have a node or a send")
		}
	}
	return sends
}
