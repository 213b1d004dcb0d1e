package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// runToProto converts a run. logID is that of its thread; open are the interrupts
// it waits for.
func runToProto(r checkpoint.Run, logID string, open []string) *graphdv1.Run {
	return &graphdv1.Run{
		RunId: r.ID, ThreadId: r.Thread, Graph: r.Graph, GraphVersion: r.Version,
		State: runStateToProto(r.State), Failure: failureToProto(r.Failure), Metadata: r.Metadata,
		CreateTime: timeToProto(r.Created), UpdateTime: timeToProto(r.Updated),
		AppliedThrough:   cursorToProto(logID, r.LastEvent),
		OpenInterruptIds: open,
		Output:           jsonToProto(r.Output),
		Etag:             formatEtag(r.Revision),
	}
}
