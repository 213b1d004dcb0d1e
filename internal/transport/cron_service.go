package transport

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// cronService keeps crons.
type cronService struct {
	graphdv1.UnimplementedCronServiceServer
	*service

	crons Crons
}

// CreateCron makes a cron. Errors: those of Validator.Err, CRON_NOT_FOUND, THREAD_NOT_FOUND, and those
// of crons.Keeper.CreateCron.
func (s *cronService) CreateCron(ctx context.Context, req *graphdv1.CreateCronRequest) (*graphdv1.Cron, error) {
	named, err := s.nameGraph(ctx, req)
	if err != nil {
		return nil, err
	}
	v := s.newValidator(ctx)
	create := wire.NewCronFromProto(v, named)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if create.Digest, err = wire.DigestWithoutRequestID(req); err != nil {
		return nil, err
	}
	create.Cron.CreatedBy = interceptor.ActorOf(ctx).Name
	create.Cron.StartedBy = create.Cron.CreatedBy
	made, err := s.crons.CreateCron(ctx, create)
	if err != nil {
		return nil, err
	}
	if !s.showsCron(ctx, &made) {
		return nil, runtime.NewCronNotFoundError(made.ID)
	}
	return wire.CronToProto(&made)
}

// nameGraph has the run of a cron name the graph of its thread, which later firings must find as well.
func (s *cronService) nameGraph(ctx context.Context, req *graphdv1.CreateCronRequest) (*graphdv1.CreateCronRequest, error) {
	run := req.GetCron().GetRun()
	interceptor.RecordSubject(ctx, run.GetThreadId(), "")
	v := s.newValidator(ctx)
	thread, graph := v.CheckOptionalThread("cron.run.thread_id", run.GetThreadId()), v.CheckGraphName("cron.run.graph", run.GetGraph())
	if err := v.Err(); err != nil {
		return nil, err
	}
	if thread == "" {
		return req, nil
	}
	head, err := s.engine.Thread(ctx, thread)
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound}) && run.GetCreateThread() {
		return req, nil
	}
	if err != nil {
		return nil, err
	}
	if err := runtime.CheckOnlyGraph(&head, interceptor.OnlyGraphOf(ctx)); err != nil {
		return nil, err
	}
	if head.Graph != "" && graph != "" && graph != head.Graph {
		is := tenant.ClientName(head.Graph)
		return nil, runtime.Errorf(runtime.ReasonInvalidField, "thread %q runs graph %q, not %q", run.GetThreadId(), is, run.GetGraph()).
			With("field", "cron.run.graph").WithViolation("cron.run.graph", "must be %q for this thread", is)
	}
	if head.Graph == "" {
		return req, nil
	}
	return wire.NameCronGraph(req, tenant.ClientName(head.Graph)), nil
}

// showsCron reports whether the caller may see a cron.
func (s *cronService) showsCron(ctx context.Context, c *runtime.Cron) bool {
	return s.access.NewItemFilter(ctx, graphdv1.CronService_GetCron_FullMethodName).Shows(c.Graph, c.Thread)
}

// GetCron returns a cron. Errors: INVALID_FIELD, CRON_NOT_FOUND, and those of the store.
func (s *cronService) GetCron(ctx context.Context, req *graphdv1.GetCronRequest) (*graphdv1.Cron, error) {
	v := s.newValidator(ctx)
	id := v.CheckID("cron_id", req.GetCronId())
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.crons.GetCron(ctx, interceptor.TenantOf(ctx), id)
	if err == nil && !s.showsCron(ctx, &found) {
		err = runtime.NewCronNotFoundError(id)
	}
	if err != nil {
		return nil, err
	}
	return wire.CronToProto(&found)
}

// ListCrons lists crons. Errors: INVALID_FIELD, INVALID_PAGE_TOKEN, PAYLOAD_TOO_LARGE, and those of
// the store.
func (s *cronService) ListCrons(ctx context.Context, req *graphdv1.ListCronsRequest) (*graphdv1.ListCronsResponse, error) {
	v := s.newValidator(ctx)
	size := listing.PageSize(v, req.GetPageSize())
	q := runtime.CronQuery{
		Tenant: interceptor.TenantOf(ctx), Graph: v.CheckGraphName("graph", req.GetGraph()), Thread: v.CheckOptionalThread("thread_id", req.GetThreadId()),
		Metadata: v.CheckLabels("metadata", req.GetMetadata()), IsBasic: req.GetView() != graphdv1.CronView_CRON_VIEW_FULL,
		MaxBytes: s.maxMessageBytes / 2, // another one may be as large
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	digest := digestList(ctx, append([]string{"crons", tenant.ClientName(q.Graph), tenant.ClientName(q.Thread)}, sortedPairs(q.Metadata)...)...)
	if err := s.tokens.DecodeToken(req.GetPageToken(), digest, &q.After); err != nil {
		return nil, err
	}
	filter := s.access.NewItemFilter(ctx, graphdv1.CronService_ListCrons_FullMethodName)
	page, last, err := listing.CollectPage(size,
		func(c *runtime.Cron) bool { return filter.Shows(c.Graph, c.Thread) },
		func(limit int, from *runtime.Cron) ([]runtime.Cron, bool, error) {
			if from != nil {
				q.After = from.Position()
			}
			q.Limit = limit
			return s.crons.ListCrons(ctx, q)
		})
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListCronsResponse{}
	if last != nil {
		if resp.NextPageToken, err = s.tokens.EncodeToken(digest, last.Position()); err != nil {
			return nil, err
		}
	}
	for i := range page {
		shown, err := wire.CronToProto(&page[i])
		if err != nil {
			return nil, err
		}
		resp.Crons = append(resp.Crons, shown)
	}
	return resp, s.checkAnswerSize(resp, "ask for a smaller page_size, or for CRON_VIEW_BASIC")
}

// UpdateCron changes a cron. Errors: those of Validator.Err, ACCESS_DENIED, and those of
// crons.Keeper.UpdateCron.
func (s *cronService) UpdateCron(ctx context.Context, req *graphdv1.UpdateCronRequest) (*graphdv1.Cron, error) {
	v := s.newValidator(ctx)
	change := wire.CronChangeFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if change.Run != nil {
		change.Run.StartedBy = interceptor.ActorOf(ctx).Name
	}
	change.Admits = func(c *runtime.Cron) error { return s.admitUpdate(ctx, c, req) }
	changed, err := s.crons.UpdateCron(ctx, change)
	if err != nil {
		return nil, err
	}
	return wire.CronToProto(&changed)
}

// admitUpdate refuses a change of a cron that starts, after it, a run that the caller may not start.
func (s *cronService) admitUpdate(ctx context.Context, c *runtime.Cron, req *graphdv1.UpdateCronRequest) error {
	if err := s.admitShown(ctx, c); err != nil {
		return err
	}
	if !wire.ChangesCronRun(req) {
		kept, err := wire.CronToProto(c)
		if err != nil {
			return err
		}
		req = &graphdv1.UpdateCronRequest{Cron: kept}
	}
	return s.access.CheckRequest(ctx, graphdv1.CronService_UpdateCron_FullMethodName, c.Graph, req)
}

// admitShown refuses a cron that the caller may not see: it does not exist for it.
func (s *cronService) admitShown(ctx context.Context, c *runtime.Cron) error {
	interceptor.RecordGraph(ctx, tenant.ClientName(c.Graph))
	if !s.showsCron(ctx, c) {
		return runtime.NewCronNotFoundError(c.ID)
	}
	return nil
}

// DeleteCron deletes a cron. Errors: INVALID_FIELD, ACCESS_DENIED, and those of
// crons.Keeper.DeleteCron.
func (s *cronService) DeleteCron(ctx context.Context, req *graphdv1.DeleteCronRequest) (*emptypb.Empty, error) {
	v := s.newValidator(ctx)
	id, etag := v.CheckID("cron_id", req.GetCronId()), v.ParseEtag("etag", req.GetEtag())
	if err := v.Err(); err != nil {
		return nil, err
	}
	err := s.crons.DeleteCron(ctx, interceptor.TenantOf(ctx), id, etag, func(c *runtime.Cron) error {
		if err := s.admitShown(ctx, c); err != nil {
			return err
		}
		return s.access.CheckGraph(ctx, graphdv1.CronService_DeleteCron_FullMethodName, c.Graph)
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}
