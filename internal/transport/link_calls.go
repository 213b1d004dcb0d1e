package transport

import (
	"context"
	"strconv"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// LinkMaker makes links.
type LinkMaker interface {
	// MakeLink makes a link. The error is a *runtime.Error, INVALID_FIELD.
	MakeLink(req wire.LinkRequest) (wire.Link, error)
}

// MakeLink makes a link by which one person answers an open question. Errors: those of
// Validator.Err, LINKS_NOT_CONFIGURED, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED, those of
// engine.Engine.Interrupt, and those of LinkMaker.
func (s *interruptService) MakeLink(ctx context.Context, req *graphdv1.MakeLinkRequest) (*graphdv1.Link, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	question, wanted := wire.LinkFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if s.links == nil {
		return nil, runtime.Errorf(runtime.ReasonLinksNotConfigured, "the server makes no links; an operator starts it with --link-keys, and --links-address or --links-url")
	}
	q, err := s.engine.Interrupt(ctx, question.Thread, question.Interrupt)
	if err != nil {
		return nil, err
	}
	if err := refuseUnlinkable(&q); err != nil {
		return nil, err
	}
	if req.GetPrincipal() == "" {
		caller := interceptor.ActorOf(ctx)
		wanted.Principal, wanted.Groups = caller.Name, caller.Groups
	}
	if req.GetBound() {
		wanted.Etag = strconv.FormatUint(q.Revision, 10)
	}
	made, err := s.links.MakeLink(wanted)
	if err != nil {
		return nil, err
	}
	return wire.LinkToProto(made), nil
}

// refuseUnlinkable refuses a link to a question that takes no answer.
func refuseUnlinkable(q *checkpoint.Interrupt) error {
	switch state := q.ClientState(); {
	case q.Reason == checkpoint.ReasonBreakpoint:
		return runtime.Errorf(runtime.ReasonInvalidField, "interrupt_id: %q is a breakpoint, which asks nothing", q.ID).
			WithViolation("interrupt_id", "must be a question, and no breakpoint")
	case state == checkpoint.InterruptExpired:
		return runtime.Errorf(runtime.ReasonInterruptExpired, "question %q has expired", q.ID).With("interruptId", q.ID)
	case state != checkpoint.InterruptOpen:
		return runtime.Errorf(runtime.ReasonInterruptAlreadyResolved, "question %q is %s; only an open one takes an answer", q.ID, state).
			With("interruptId", q.ID).With("state", string(state))
	}
	return nil
}
