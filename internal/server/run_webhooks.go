package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphd-dev/graphd/internal/agentserver"
	"github.com/graphd-dev/graphd/internal/egress"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/webhook"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/tracing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// runStopSender calls webhooks of runs, with the bodies of LangGraph Server.
type runStopSender struct {
	allowed   *egress.Policy
	engine    *engine.Engine
	maxBytes  int // of a state
	userAgent string
	tracer    *tracing.Tracer // nil = nothing is traced
}

// callRunWebhooks lets the server call webhooks of runs, if it serves the API that has them.
func (s *Server) callRunWebhooks(o *Options, version string) error {
	if o.LangGraph == "" {
		return nil
	}
	allowed, err := o.parsePatterns()
	if err != nil {
		return err
	}
	s.Engine.Webhooks().SetSender(&runStopSender{allowed: allowed, engine: s.Engine, maxBytes: o.MaxMessage, userAgent: "graphd/" + version, tracer: s.tracer})
	return nil
}

// maxURLBytes bounds the URL of a webhook of a run.
const maxURLBytes = 2048

// checkRunWebhook refuses a URL to which nothing is sent. The error is a *webhook.TargetError.
func checkRunWebhook(allowed *egress.Policy, url string) error {
	if len(url) > maxURLBytes {
		return &webhook.TargetError{Is: fmt.Sprintf("has %d bytes", len(url)), Want: fmt.Sprintf("at most %d", maxURLBytes)}
	}
	_, err := webhook.ParseTarget(url, allowed, "--"+FlagWebhookAllow)
	return err
}

// CheckURL refuses a URL to which nothing is sent. The error is INVALID_FIELD.
func (r *runStopSender) CheckURL(field, url string) error {
	if err := checkRunWebhook(r.allowed, url); err != nil {
		return runtime.Errorf(runtime.ReasonInvalidField, "%v", err).With("field", field).WithViolation(field, "%v", err)
	}
	return nil
}

// SendRunStop posts the run and the values of its thread.
func (r *runStopSender) SendRunStop(ctx context.Context, stop *runtime.RunStop) error {
	to, err := webhook.ParseTarget(stop.URL, r.allowed, "--"+FlagWebhookAllow)
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrWebhookRefused, err)
	}
	state, err := r.engine.State(ctx, runtime.StateRequest{Thread: stop.Thread, MaxBytes: r.maxBytes})
	if err != nil {
		return err
	}
	body, err := agentserver.RenderRunStop(wire.RunToProto(stop.Stopped, "", nil), stop.ID, string(state.Values), time.Now())
	if err != nil {
		return err
	}
	var trace map[string]string
	if r.tracer != nil {
		trace = r.tracer.RunCarrier(ctx, stop.Thread, stop.Stopped.ID)
	}
	err = webhook.PostJSON(ctx, to, stop.ID, r.userAgent, trace, body)
	if errors.Is(err, notify.ErrGone) {
		return fmt.Errorf("%w: %w", runtime.ErrWebhookRefused, err)
	}
	return err
}
