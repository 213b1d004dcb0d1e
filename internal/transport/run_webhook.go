package transport

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// AddRunWebhook keeps a webhook that is called when a run stops. Errors: INVALID_FIELD, and those of
// webhooks.Keeper.AddWebhook.
func (s *graphService) AddRunWebhook(ctx context.Context, req *graphdv1.AddRunWebhookRequest) (*emptypb.Empty, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), req.GetRunId())
	v := s.newValidator(ctx)
	w := runtime.RunWebhook{
		Thread: v.CheckThread("thread_id", req.GetThreadId()), Run: v.CheckID("run_id", req.GetRunId()), ID: v.CheckID("webhook_id", req.GetWebhookId()),
		After: req.GetAfterSequence(), URL: req.GetUrl(),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, s.webhooks.AddWebhook(ctx, w)
}
