package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// RunToProto converts a run. logID is that of its thread; open are the ids of the
// interrupts for which it waits.
func RunToProto(r checkpoint.Run, logID string, open []string) *graphdv1.Run {
	return &graphdv1.Run{
		RunId: r.ID, ThreadId: tenant.ClientName(r.Thread), Graph: tenant.ClientName(r.Graph), GraphVersion: r.Version,
		State: runStateToProto(r.State), Failure: failureToProto(r.Failure), Metadata: r.Metadata,
		CreateTime: TimeToProto(r.Created), UpdateTime: TimeToProto(r.Updated),
		AppliedThrough:   CursorToProto(logID, r.LastEvent),
		OpenInterruptIds: open,
		Output:           JSONToProto(r.Output),
		Etag:             formatEtag(r.Revision),
		StartedBy:        r.StartedBy,
		BeginTime:        TimeToProto(r.Begins),
	}
}
