package transport

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// jsonOut wraps JSON text as it is; no value is no payload.
func jsonOut(j payload.JSON) *graphdv1.Payload {
	if j == "" {
		return nil
	}
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(j)}}
}

func timeOut(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func durationOut(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func cursorOut(logID string, sequence uint64) *graphdv1.Cursor {
	return &graphdv1.Cursor{LogId: logID, Sequence: sequence}
}

// Namespaces are "node:task|node:task" in the domain and a list of elements on
// the wire.
const namespaceSep = "|"

func namespaceOut(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return strings.Split(namespace, namespaceSep)
}

func namespaceIn(b *border, field string, path []string) string {
	if len(path) > maxDepth {
		b.refuse(field, "is %d deep; at most %d is allowed", len(path), maxDepth)
		return ""
	}
	for _, element := range path {
		switch {
		case element == "" || strings.Contains(element, namespaceSep):
			b.refuse(field, "element %q is not node or node:task", clip(element, maxName))
		case len(element) > maxName+1+maxID:
			b.refuse(field, "an element has %d bytes; at most %d are allowed", len(element), maxName+1+maxID)
		}
	}
	return strings.Join(path, namespaceSep)
}

// checkpointIn takes a reference apart; unset is the newest of the root.
func checkpointIn(b *border, field string, ref *graphdv1.CheckpointRef) (id, namespace string) {
	return b.optionalID(field+".checkpoint_id", ref.GetCheckpointId()),
		namespaceIn(b, field+".namespace", ref.GetNamespace())
}

func checkpointOut(id, namespace string) *graphdv1.CheckpointRef {
	if id == "" {
		return nil
	}
	return &graphdv1.CheckpointRef{CheckpointId: id, Namespace: namespaceOut(namespace)}
}

func failureOut(f *checkpoint.Failure) *graphdv1.Failure {
	if f == nil {
		return nil
	}
	return &graphdv1.Failure{
		Reason: f.Reason, Message: f.Message, Node: f.Node, Type: f.Type, Attempt: count(f.Attempt),
		Details: f.Details, Stack: f.Stack,
	}
}

func sendsIn(b *border, field string, targets []*graphdv1.Goto) []checkpoint.Send {
	if len(targets) > maxNames {
		b.refuse(field, "has %d entries; at most %d are allowed", len(targets), maxNames)
		return nil
	}
	var sends []checkpoint.Send
	for i, t := range targets {
		at := indexed(field, i)
		switch kind := t.GetTarget().(type) {
		case *graphdv1.Goto_Node:
			b.must(at+".node", kind.Node != "")
			sends = append(sends, checkpoint.Send{Node: b.name(at+".node", kind.Node)})
		case *graphdv1.Goto_Send:
			b.must(at+".send.node", kind.Send.GetNode() != "")
			sends = append(sends, checkpoint.Send{
				Node:  b.name(at+".send.node", kind.Send.GetNode()),
				Input: b.payload(at+".send.input", kind.Send.GetInput()),
			})
		default:
			b.refuse(at, "must have a node or a send")
		}
	}
	return sends
}
