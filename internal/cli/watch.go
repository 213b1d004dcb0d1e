package cli

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// WatchOptions are the flags of `watch`.
type WatchOptions struct {
	Thread   string
	Run      string // "" = the thread across its runs
	From     string // beginning, now or a cursor; "" = beginning of the run or thread
	Snapshot bool
	NoFollow bool
	Events   []string
}

// Watch shows the log of a thread or a run. Errors: *exit.UsageError, and those of
// Viewer.ShowLog.
func (s *Session) Watch(ctx context.Context, o WatchOptions) error {
	chosen, err := stream.NewSelection(o.Events, s.Format)
	if err != nil {
		return err
	}
	req := &graphdv1.WatchRequest{
		ThreadId: o.Thread, RunId: o.Run, Filter: chosen.Filter,
		SnapshotFirst: o.Snapshot, Follow: !o.NoFollow,
	}
	if err := setWatchStart(req, o); err != nil {
		return err
	}
	return s.newViewer().ShowLog(ctx, chosen, req)
}

func setWatchStart(req *graphdv1.WatchRequest, o WatchOptions) error {
	if o.From != "" && o.Snapshot {
		return exit.Usagef("--snapshot begins with the present state, so it does not go with --from")
	}
	switch o.From {
	case "":
	case "beginning":
		req.Start = &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}
	case "now":
		req.Start = &graphdv1.WatchRequest_Now{Now: &emptypb.Empty{}}
	default:
		cursor, err := argument.ParseCursor(o.From)
		if err != nil {
			return err
		}
		req.Start = &graphdv1.WatchRequest_After{After: cursor}
	}
	return nil
}
