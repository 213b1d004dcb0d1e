package transport

import (
	"cmp"
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// graphService runs graphs.
type graphService struct {
	graphdv1.UnimplementedGraphServiceServer
	*service

	webhooks RunWebhooks
}

// Stream starts a run and follows it. Errors: those of StartRun,
// TOO_MANY_SUBSCRIBERS, and those of Streamer.ServeStream.
func (s *graphService) Stream(req *graphdv1.StreamRequest, ss stream.EventStream) error {
	if err := s.streams.AddStream(ss.Context()); err != nil {
		return err
	}
	defer s.streams.RemoveStream()
	ctx := ss.Context()
	v := s.newValidator(ctx)
	early := s.events.NewEarlySubscription(wire.EventSelectionFromProto(v, req.GetFilter()))
	defer early.CloseFollower()
	started, err := s.startRun(ctx, v, req.GetRun(), req.GetRequestId(), req.GetOnDisconnect(), early.FollowStarted)
	if err != nil {
		return err
	}
	return s.events.ServeStream(ss, early.ToSubscription(started, req.GetOnDisconnect()))
}

// Resume answers interrupts and follows the run that continues. Errors: those of
// ResumeRun, TOO_MANY_SUBSCRIBERS, and those of Streamer.ServeStream.
func (s *graphService) Resume(req *graphdv1.ResumeRequest, ss stream.EventStream) error {
	if err := s.streams.AddStream(ss.Context()); err != nil {
		return err
	}
	defer s.streams.RemoveStream()
	ctx := ss.Context()
	v := s.newValidator(ctx)
	early := s.events.NewEarlySubscription(wire.EventSelectionFromProto(v, req.GetFilter()))
	defer early.CloseFollower()
	started, err := s.resumeRun(ctx, v, req.GetResume(), req.GetRequestId(), early.FollowStarted)
	if err != nil {
		return err
	}
	return s.events.ServeStream(ss, early.ToSubscription(started, req.GetOnDisconnect()))
}

// StartRun starts a run, and waits for its stop if asked to. Errors: SERVER_DRAINING, those
// of Validator.Err, of engine.Engine.Start, and of newRunWait.
func (s *graphService) StartRun(ctx context.Context, req *graphdv1.StartRunRequest) (*graphdv1.Run, error) {
	v := s.newValidator(ctx)
	w, err := s.newRunWait(ctx, v, req)
	if err != nil {
		return nil, err
	}
	defer w.endWait()
	started, err := s.startRun(ctx, v, req.GetRun(), req.GetRequestId(), 0, w.startHook())
	if err != nil {
		return nil, err
	}
	return w.awaitStop(ctx, started)
}

// ResumeRun answers interrupts, and waits for the next stop of the run if asked to. Errors:
// SERVER_DRAINING, those of Validator.Err, of engine.Engine.Resume, and of newRunWait.
func (s *graphService) ResumeRun(ctx context.Context, req *graphdv1.ResumeRunRequest) (*graphdv1.Run, error) {
	v := s.newValidator(ctx)
	w, err := s.newRunWait(ctx, v, req)
	if err != nil {
		return nil, err
	}
	defer w.endWait()
	started, err := s.resumeRun(ctx, v, req.GetResume(), req.GetRequestId(), w.startHook())
	if err != nil {
		return nil, err
	}
	return w.awaitStop(ctx, started)
}

func (s *graphService) startRun(
	ctx context.Context, v *wire.Validator, spec *graphdv1.RunSpec, requestID string, leave graphdv1.DisconnectPolicy,
	watch runtime.StartHook,
) (*runtime.Started, error) {
	interceptor.RecordSubject(ctx, spec.GetThreadId(), spec.GetRunId())
	req := wire.StartRequestFromProto(v, spec, requestID)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if req.Digest, err = wire.DigestIfRepeatable(requestID, spec); err != nil {
		return nil, err
	}
	req.By, req.Request.OnDisconnect, req.OnStart = interceptor.ActorOf(ctx), wire.OnDisconnectFromProto(leave), watch
	req.OnlyGraph = interceptor.OnlyGraphOf(ctx)
	started, err := s.engine.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	interceptor.RecordSubject(ctx, tenant.ClientName(started.Run.Thread), started.Run.ID)
	return started, nil
}

func (s *graphService) resumeRun(
	ctx context.Context, v *wire.Validator, spec *graphdv1.ResumeSpec, requestID string, watch runtime.StartHook,
) (*runtime.Started, error) {
	interceptor.RecordSubject(ctx, spec.GetThreadId(), "")
	req := wire.ResumeRequestFromProto(v, spec, requestID)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var err error
	if req.Digest, err = wire.DigestIfRepeatable(requestID, spec); err != nil {
		return nil, err
	}
	req.By, req.OnStart = interceptor.ActorOf(ctx), watch
	req.OnQuestion = func(interrupt string, secret []string) { interceptor.RecordQuestion(ctx, interrupt, secret) }
	req.Digest = wire.DigestForCaller(req.Digest, req.By.Name)
	req.OnlyGraph = interceptor.OnlyGraphOf(ctx)
	started, err := s.engine.Resume(ctx, req)
	if err != nil {
		return nil, err
	}
	interceptor.RecordSubject(ctx, tenant.ClientName(started.Run.Thread), started.Run.ID)
	return started, nil
}

// GetRun returns a run. Errors: INVALID_FIELD, THREAD_NOT_FOUND, RUN_NOT_FOUND, and
// those of the store.
func (s *graphService) GetRun(ctx context.Context, req *graphdv1.GetRunRequest) (*graphdv1.Run, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	v := s.newValidator(ctx)
	thread, id := v.CheckThread("thread_id", req.GetThreadId()), v.CheckOptionalID("run_id", req.GetRunId())
	if err := v.Err(); err != nil {
		return nil, err
	}
	return s.readRun(ctx, thread, id, req.GetView())
}

// readRun reads a run, the newest of the thread for an empty id, and converts it.
func (s *graphService) readRun(ctx context.Context, thread, id string, view graphdv1.RunView) (*graphdv1.Run, error) {
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	run, err := s.engine.Run(ctx, interceptor.CallMemoryOf(ctx), thread, cmp.Or(id, head.Run))
	if err != nil {
		return nil, err
	}
	interceptor.RecordSubject(ctx, tenant.ClientName(thread), run.ID)
	return s.events.DescribeRun(ctx, run, &head, view)
}

// ListRuns lists the runs of a thread. Errors: INVALID_FIELD, INVALID_PAGE_TOKEN,
// THREAD_NOT_FOUND, PAYLOAD_TOO_LARGE, those of memory, and those of the store.
func (s *graphService) ListRuns(
	ctx context.Context, req *graphdv1.ListRunsRequest,
) (*graphdv1.ListRunsResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread := v.CheckThread("thread_id", req.GetThreadId())
	size := listing.PageSize(v, req.GetPageSize())
	wanted := listing.RunPredicateFromFilter(v, req.GetFilter())
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "runs", thread, req.GetFilter())
	var before uint64
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &before); err != nil {
		return nil, err
	}
	head, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	runs, more, err := s.engine.Runs(ctx, interceptor.CallMemoryOf(ctx), thread, before, size, s.maxMessageBytes)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListRunsResponse{}
	cut := listing.NewPageBudget(s.maxMessageBytes)
	for i := range runs {
		out := wire.RunToProto(runs[i], head.LogID, nil)
		if wanted(runs[i]) {
			if !cut.TryAdd(out) {
				more = true
				break
			}
			resp.Runs = append(resp.Runs, out)
		}
		before = runs[i].Order
	}
	if more {
		resp.NextPageToken, err = s.tokens.EncodeToken(list, before)
	}
	return resp, cmp.Or(err, s.checkAnswerSize(resp, "read the run's state with GetState and some keys"))
}
