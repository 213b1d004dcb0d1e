package transport

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// graphService runs graphs.
type graphService struct {
	graphdv1.UnimplementedGraphServiceServer
	*service
}

// Stream starts a run and follows it.
func (s *graphService) Stream(req *graphdv1.StreamRequest, stream eventStream) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	ctx := stream.Context()
	b := s.border()
	ear := &ear{pump: s.pump, selection: selectionIn(b, req.GetFilter())}
	defer ear.close()
	started, err := s.start(ctx, b, req.GetRun(), req.GetRequestId(), req.GetOnDisconnect(), ear.listen)
	if err != nil {
		return err
	}
	return s.serve(stream, ear.subscription(started, req.GetOnDisconnect()))
}

// Resume answers questions and follows the run that goes on.
func (s *graphService) Resume(req *graphdv1.ResumeRequest, stream eventStream) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	ctx := stream.Context()
	b := s.border()
	ear := &ear{pump: s.pump, selection: selectionIn(b, req.GetFilter())}
	defer ear.close()
	started, err := s.resume(ctx, b, req.GetResume(), req.GetRequestId(), ear.listen)
	if err != nil {
		return err
	}
	return s.serve(stream, ear.subscription(started, req.GetOnDisconnect()))
}

// begun is the run as a caller should see it who asked for it: watching after
// its last event shows all that the call set going. It has no etag, because the
// store numbered it after it was written.
func begun(st runtime.Started) checkpoint.Run {
	run := st.Run
	run.LastEvent, run.Revision = st.After, 0
	return run
}

// StartRun starts a run.
func (s *graphService) StartRun(ctx context.Context, req *graphdv1.StartRunRequest) (*graphdv1.Run, error) {
	if s.isDraining() {
		return nil, draining()
	}
	started, err := s.start(ctx, s.border(), req.GetRun(), req.GetRequestId(), 0, nil)
	if err != nil {
		return nil, err
	}
	return s.describe(ctx, begun(started), started.Head.LogID)
}

// ResumeRun answers questions.
func (s *graphService) ResumeRun(ctx context.Context, req *graphdv1.ResumeRunRequest) (*graphdv1.Run, error) {
	if s.isDraining() {
		return nil, draining()
	}
	started, err := s.resume(ctx, s.border(), req.GetResume(), req.GetRequestId(), nil)
	if err != nil {
		return nil, err
	}
	return s.describe(ctx, begun(started), started.Head.LogID)
}

func (s *graphService) start(
	ctx context.Context, b *border, spec *graphdv1.RunSpec, requestID string, leave graphdv1.DisconnectPolicy,
	watch runtime.Watch,
) (runtime.Started, error) {
	note(ctx, spec.GetThreadId(), spec.GetRunId())
	req := startIn(b, spec, requestID)
	if err := b.err(); err != nil {
		return runtime.Started{}, err
	}
	var err error
	if req.Digest, err = digestFor(requestID, spec); err != nil {
		return runtime.Started{}, err
	}
	req.By, req.Request.OnDisconnect, req.Watch = s.by(ctx), disconnectIn(leave), watch
	started, err := s.engine.Start(ctx, req)
	note(ctx, started.Run.Thread, started.Run.ID)
	return started, err
}

func (s *graphService) resume(
	ctx context.Context, b *border, spec *graphdv1.ResumeSpec, requestID string, watch runtime.Watch,
) (runtime.Started, error) {
	note(ctx, spec.GetThreadId(), "")
	req := resumeIn(b, spec, requestID)
	if err := b.err(); err != nil {
		return runtime.Started{}, err
	}
	var err error
	if req.Digest, err = digestFor(requestID, spec); err != nil {
		return runtime.Started{}, err
	}
	req.By, req.Watch = s.by(ctx), watch
	started, err := s.engine.Resume(ctx, req)
	note(ctx, started.Run.Thread, started.Run.ID)
	return started, err
}

// GetRun returns a run.
func (s *graphService) GetRun(ctx context.Context, req *graphdv1.GetRunRequest) (*graphdv1.Run, error) {
	note(ctx, req.GetThreadId(), req.GetRunId())
	b := s.border()
	thread, id := b.id("thread_id", req.GetThreadId()), b.id("run_id", req.GetRunId())
	if err := b.err(); err != nil {
		return nil, err
	}
	return s.runNow(ctx, thread, id)
}

// runNow reads a run and converts it.
func (s *graphService) runNow(ctx context.Context, thread, id string) (*graphdv1.Run, error) {
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	run, err := s.engine.Run(ctx, thread, id)
	if err != nil {
		return nil, err
	}
	return s.describe(ctx, run, head.LogID)
}

// ListRuns lists the runs of a thread.
func (s *graphService) ListRuns(
	ctx context.Context, req *graphdv1.ListRunsRequest,
) (*graphdv1.ListRunsResponse, error) {
	note(ctx, req.GetThreadId(), "")
	b := s.border()
	thread := b.id("thread_id", req.GetThreadId())
	size := pageSize(b, req.GetPageSize())
	wanted := runFilterIn(b, req.GetFilter())
	if err := b.err(); err != nil {
		return nil, err
	}
	list := listed("runs", thread, req.GetFilter())
	var before uint64
	if err := s.tokens.read(req.GetPageToken(), list, &before); err != nil {
		return nil, err
	}
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	runs, more, err := s.engine.Runs(ctx, thread, before, size, s.maxBytes)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListRunsResponse{}
	cut := newCut(s.maxBytes)
	for i := range runs {
		out := runOut(runs[i], head.LogID, nil)
		if wanted(runs[i]) {
			if !cut.fits(out) {
				more = true
				break
			}
			resp.Runs = append(resp.Runs, out)
		}
		before = runs[i].Order
	}
	if more {
		resp.NextPageToken, err = s.tokens.make(list, before)
	}
	return resp, cmp.Or(err, s.fits(resp, "read the run's state with GetState and some keys"))
}
