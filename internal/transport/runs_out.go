package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// runOut converts a run. logID is that of its thread; open are the questions
// it waits for.
func runOut(r checkpoint.Run, logID string, open []string) *graphdv1.Run {
	return &graphdv1.Run{
		RunId: r.ID, ThreadId: r.Thread, Graph: r.Graph, GraphVersion: r.Version,
		State: runStateOut(r.State), Failure: failureOut(r.Failure), Metadata: r.Metadata,
		CreateTime: timeOut(r.Created), UpdateTime: timeOut(r.Updated),
		AppliedThrough:   cursorOut(logID, r.LastEvent),
		OpenInterruptIds: open,
		Output:           jsonOut(r.Output),
		Etag:             etagOf(r.Revision),
	}
}
