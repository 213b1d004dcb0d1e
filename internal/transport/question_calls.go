package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// ClaimInterrupt claims an open question for the caller. Errors: those of Validator.Err, and
// those of engine.Engine.ClaimInterrupt.
func (s *interruptService) ClaimInterrupt(ctx context.Context, req *graphdv1.ClaimInterruptRequest) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	claim := wire.ClaimFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	claim.By = interceptor.ActorOf(ctx)
	claimed, err := s.engine.ClaimInterrupt(ctx, claim)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &claimed)
}

// ReleaseInterrupt gives up the claim of the caller. Errors: those of Validator.Err, and
// those of engine.Engine.ReleaseInterrupt.
func (s *interruptService) ReleaseInterrupt(ctx context.Context, req *graphdv1.ReleaseInterruptRequest) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	release := wire.ReleaseFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	release.By = interceptor.ActorOf(ctx)
	released, err := s.engine.ReleaseInterrupt(ctx, release)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &released)
}

// CheckResponses checks answers without storing them. Errors: those of Validator.Err, and
// those of engine.Engine.CheckResponses.
func (s *interruptService) CheckResponses(ctx context.Context, req *graphdv1.CheckResponsesRequest) (*graphdv1.CheckResponsesResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	check := wire.CheckedResponsesFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	check.By, check.OnlyGraph = interceptor.ActorOf(ctx), interceptor.OnlyGraphOf(ctx)
	checked, err := s.engine.CheckResponses(ctx, check)
	if err != nil {
		return nil, err
	}
	return wire.CheckedResponsesToProto(checked), nil
}

// RevealInterrupt shows the secret parts of a question, and records who saw them. Errors: those of
// Validator.Err, and those of engine.Engine.RevealInterrupt.
func (s *interruptService) RevealInterrupt(ctx context.Context, req *graphdv1.RevealInterruptRequest) (*graphdv1.RevealInterruptResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	reveal := wire.RevealFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	reveal.By = interceptor.ActorOf(ctx)
	revealed, err := s.engine.RevealInterrupt(ctx, reveal)
	if err != nil {
		return nil, err
	}
	return wire.RevealedToProto(&revealed), nil
}

// DelegateInterrupt hands the caller's part in a question to another user. Errors: those of
// Validator.Err, and those of engine.Engine.DelegateInterrupt.
func (s *interruptService) DelegateInterrupt(ctx context.Context, req *graphdv1.DelegateInterruptRequest) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	delegate := wire.DelegateFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	delegate.By = interceptor.ActorOf(ctx)
	delegated, err := s.engine.DelegateInterrupt(ctx, delegate)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &delegated)
}

// RetractResponse takes the answer or the vote of the caller back. Errors: those of
// Validator.Err, and those of engine.Engine.RetractResponse.
func (s *interruptService) RetractResponse(ctx context.Context, req *graphdv1.RetractResponseRequest) (*graphdv1.Interrupt, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	retract := wire.RetractFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	retract.By = interceptor.ActorOf(ctx)
	reopened, err := s.engine.RetractResponse(ctx, retract)
	if err != nil {
		return nil, err
	}
	return s.showInterrupt(ctx, &reopened)
}

// CommentInterrupt adds a comment to the trail of an open question. Errors: those of
// Validator.Err, and those of engine.Engine.CommentInterrupt.
func (s *interruptService) CommentInterrupt(ctx context.Context, req *graphdv1.CommentInterruptRequest) (*graphdv1.TrailEntry, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	comment := wire.CommentFromProto(v, req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	comment.By = interceptor.ActorOf(ctx)
	added, err := s.engine.CommentInterrupt(ctx, comment)
	if err != nil {
		return nil, err
	}
	return wire.TrailEntryToProto(&added), nil
}

// trailPosition is where a page of a trail goes on.
type trailPosition struct{ Number int }

// ListTrail lists what happened to a question. Errors: those of Validator.Err,
// INVALID_PAGE_TOKEN, and those of engine.Engine.ListTrail.
func (s *interruptService) ListTrail(ctx context.Context, req *graphdv1.ListTrailRequest) (*graphdv1.ListTrailResponse, error) {
	interceptor.RecordSubject(ctx, req.GetThreadId(), "")
	v := s.newValidator(ctx)
	question, size := wire.QuestionFromProto(v, req), listing.PageSize(v, req.GetPageSize())
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := digestList(ctx, "trail", question.Thread, question.Interrupt)
	var after trailPosition
	if err := s.tokens.DecodeToken(req.GetPageToken(), list, &after); err != nil {
		return nil, err
	}
	entries, err := s.engine.ListTrail(ctx, question)
	if err != nil {
		return nil, err
	}
	resp := &graphdv1.ListTrailResponse{}
	entries = entries[min(max(after.Number, 0), len(entries)):]
	budget := listing.NewPageBudget(s.maxMessageBytes)
	for i := range entries {
		out := wire.TrailEntryToProto(&entries[i])
		if i == size || !budget.TryAdd(out) {
			resp.NextPageToken, err = s.tokens.EncodeToken(list, trailPosition{entries[i-1].Number})
			break
		}
		resp.Entries = append(resp.Entries, out)
	}
	return resp, err
}
