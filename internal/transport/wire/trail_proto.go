package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/trail"
)

// questionName is a message that names a question.
type questionName interface {
	GetThreadId() string
	GetInterruptId() string
}

func questionFromProto(v *Validator, prefix string, q questionName) runtime.Question {
	return runtime.Question{
		Thread:    v.CheckThread(prefix+"thread_id", q.GetThreadId()),
		Interrupt: v.CheckID(prefix+"interrupt_id", q.GetInterruptId()),
	}
}

// QuestionFromProto converts the name of a question.
func QuestionFromProto(v *Validator, q questionName) runtime.Question {
	return questionFromProto(v, "", q)
}

// ClaimFromProto converts a claim.
func ClaimFromProto(v *Validator, req *graphdv1.ClaimInterruptRequest) runtime.ClaimRequest {
	return runtime.ClaimRequest{Question: QuestionFromProto(v, req), Duration: claimDuration(v, req.GetDuration())}
}

func claimDuration(v *Validator, d *durationpb.Duration) time.Duration {
	if d == nil {
		return runtime.DefaultClaim
	}
	if d.CheckValid() != nil || d.AsDuration() <= 0 || d.AsDuration() > runtime.MaxClaim {
		v.AddViolation("duration", "is %v; want more than 0 and at most %v", d.AsDuration(), runtime.MaxClaim)
	}
	return d.AsDuration()
}

// ReleaseFromProto converts a release.
func ReleaseFromProto(v *Validator, req *graphdv1.ReleaseInterruptRequest) runtime.ReleaseRequest {
	return runtime.ReleaseRequest{Question: QuestionFromProto(v, req), Note: v.CheckText("note", req.GetNote())}
}

// DelegateFromProto converts a delegation.
func DelegateFromProto(v *Validator, req *graphdv1.DelegateInterruptRequest) runtime.DelegateRequest {
	v.RequireSet("to", req.GetTo() != "")
	return runtime.DelegateRequest{Question: QuestionFromProto(v, req), To: v.CheckName("to", req.GetTo()), Note: v.CheckText("note", req.GetNote())}
}

// RevealFromProto converts a request for the secret parts of a question.
func RevealFromProto(v *Validator, req *graphdv1.RevealInterruptRequest) runtime.RevealRequest {
	if n := len(req.GetPointers()); n > redact.MaxPointers {
		v.AddViolation("pointers", "has %d entries; a question has at most %d", n, redact.MaxPointers)
	}
	for i, pointer := range req.GetPointers() {
		v.CheckName(elementPath("pointers", i), pointer)
	}
	return runtime.RevealRequest{Question: QuestionFromProto(v, req), Pointers: req.GetPointers(), Note: v.CheckText("note", req.GetNote())}
}

// RevealedToProto converts a question with its secret parts.
func RevealedToProto(r *runtime.Revealed) *graphdv1.RevealInterruptResponse {
	return &graphdv1.RevealInterruptResponse{
		Value: JSONToProto(r.Value), DefaultResponse: JSONToProto(r.Default), Response: JSONToProto(r.Response), Entry: TrailEntryToProto(&r.Entry),
	}
}

// RetractFromProto converts a retraction.
func RetractFromProto(v *Validator, req *graphdv1.RetractResponseRequest) runtime.RetractRequest {
	return runtime.RetractRequest{Question: QuestionFromProto(v, req), Note: v.CheckText("note", req.GetNote())}
}

// CommentFromProto converts a comment.
func CommentFromProto(v *Validator, req *graphdv1.CommentInterruptRequest) runtime.CommentRequest {
	v.RequireSet("text", req.GetText() != "")
	return runtime.CommentRequest{
		Question: QuestionFromProto(v, req), Text: v.CheckText("text", req.GetText()), RequestID: v.CheckName("request_id", req.GetRequestId()),
	}
}

// TrailEntryToProto converts an entry of a trail.
func TrailEntryToProto(e *trail.Entry) *graphdv1.TrailEntry {
	return &graphdv1.TrailEntry{
		Number: ClampUint32(e.Number), Time: TimeToProto(e.Time), Principal: e.Principal, PrincipalHow: e.How, Kind: trailKindToProto(e.Kind),
		Note: e.Note, Method: e.Method, RequestId: e.Request, Agrees: e.Agrees, Dismissed: e.Dismisses, Value: JSONToProto(e.Value),
		ValueDigest: e.ValueDigest, Seen: e.Seen, Policy: e.Policy, Assignees: e.Assignees, Until: TimeToProto(e.Until),
		FromThreadId: e.From, Fields: e.Fields,
		Users: e.Users, Groups: e.Groups, Priority: e.Priority, Record: e.Record, Digest: e.Digest,
	}
}

func trailKindToProto(k trail.Kind) graphdv1.TrailKind {
	switch k {
	case trail.Asked:
		return graphdv1.TrailKind_TRAIL_KIND_ASKED
	case trail.Voted:
		return graphdv1.TrailKind_TRAIL_KIND_VOTED
	case trail.Answered:
		return graphdv1.TrailKind_TRAIL_KIND_ANSWERED
	case trail.Delegated:
		return graphdv1.TrailKind_TRAIL_KIND_DELEGATED
	case trail.Revealed:
		return graphdv1.TrailKind_TRAIL_KIND_REVEALED
	case trail.Retracted:
		return graphdv1.TrailKind_TRAIL_KIND_RETRACTED
	case trail.Used:
		return graphdv1.TrailKind_TRAIL_KIND_USED
	case trail.Expired:
		return graphdv1.TrailKind_TRAIL_KIND_EXPIRED
	case trail.Cancelled:
		return graphdv1.TrailKind_TRAIL_KIND_CANCELLED
	case trail.Superseded:
		return graphdv1.TrailKind_TRAIL_KIND_SUPERSEDED
	case trail.Claimed:
		return graphdv1.TrailKind_TRAIL_KIND_CLAIMED
	case trail.Released:
		return graphdv1.TrailKind_TRAIL_KIND_RELEASED
	case trail.Commented:
		return graphdv1.TrailKind_TRAIL_KIND_COMMENTED
	case trail.Changed:
		return graphdv1.TrailKind_TRAIL_KIND_CHANGED
	case trail.Reminded:
		return graphdv1.TrailKind_TRAIL_KIND_REMINDED
	case trail.Escalated:
		return graphdv1.TrailKind_TRAIL_KIND_ESCALATED
	case trail.Copied:
		return graphdv1.TrailKind_TRAIL_KIND_COPIED
	}
	return graphdv1.TrailKind_TRAIL_KIND_UNSPECIFIED
}
