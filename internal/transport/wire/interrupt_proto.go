package wire

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// InterruptToProto converts an interrupt.
func InterruptToProto(q checkpoint.Interrupt) *graphdv1.Interrupt {
	return &graphdv1.Interrupt{
		InterruptId: q.ID, ThreadId: tenant.ClientName(q.Thread), RunId: q.Run, Graph: tenant.ClientName(q.Graph),
		Checkpoint: CheckpointRefToProto(q.Checkpoint, q.Namespace),
		Node:       q.Node, TaskId: q.Task, Scope: q.Scope, Key: q.Key, Index: ClampUint32(q.Index),
		Reason: q.Reason, Message: q.Message, Value: JSONToProto(q.Value), ResponseSchema: JSONToProto(q.Schema),
		State: interruptStateToProto(q.State), CreateTime: TimeToProto(q.Created), UpdateTime: TimeToProto(q.Updated),
		ExpireTime: TimeToProto(q.Expires), ExpiryAction: expiryToProto(q.Expiry),
		DefaultResponse: JSONToProto(q.Default), Assignees: q.Assignees,
		Response: JSONToProto(q.Response), Dismissed: q.Dismissed, Responder: q.Responder, Note: q.Note,
		Etag: formatEtag(q.Revision), Seen: q.ShownDigest, Drift: driftToProto(q.Drift), DriftIgnore: q.DriftIgnore,
		Round: ClampUint32(q.Round), Replaces: q.Replaces, Differs: q.Differs, Accepted: q.Accepted,
		ResponderHow: q.ResponderHow, ResponseMethod: q.ResponseMethod, ResponseTime: TimeToProto(q.ResponseTime),
		People: policyToProto(q.VoterPolicy()), Priority: priorityToProto(q.Priority), Steps: stepsToProto(q.Steps),
		NextStep: ClampUint32(q.NextStep), DueTime: dueTimeToProto(&q), Votes: votesToProto(q.Votes),
		Delegations: delegationsToProto(q.PropertyChanges().Delegations), EffectiveTime: TimeToProto(q.Effective), Undo: DurationToProto(q.Undo),
		ClaimedBy: q.ClaimedBy, ClaimExpireTime: TimeToProto(q.ClaimExpires), TrailSize: ClampUint32(len(q.Trail.Records)),
		Secret: q.Secret,
	}
}

// InterruptsToProto converts interrupts.
func InterruptsToProto(list []checkpoint.Interrupt) []*graphdv1.Interrupt {
	out := make([]*graphdv1.Interrupt, 0, len(list))
	for _, q := range list {
		out = append(out, InterruptToProto(q))
	}
	return out
}

// Fields of an interrupt that a change may name.
const (
	maskAssignees = "assignees"
	maskClaim     = "claimed_by"
)

// InterruptChangeFromProto converts a change of an interrupt. Fields that the mask does
// not name are ignored.
func InterruptChangeFromProto(v *Validator, req *graphdv1.UpdateInterruptRequest) runtime.UpdateInterruptRequest {
	q := req.GetInterrupt()
	v.RequireSet("interrupt", q != nil)
	c := runtime.UpdateInterruptRequest{
		Question: questionFromProto(v, "interrupt.", q),
		Etag:     v.ParseEtag("interrupt.etag", q.GetEtag()),
	}
	assignees := v.CheckNames("interrupt.assignees", q.GetAssignees())
	expires := v.convertTime("interrupt.expire_time", q.GetExpireTime())
	paths := req.GetUpdateMask().GetPaths()
	if len(paths) == 0 {
		if q.GetExpireTime() != nil {
			paths = append(paths, maskExpire)
		}
		if len(assignees) > 0 {
			paths = append(paths, maskAssignees)
		}
	}
	if len(paths) == 0 {
		v.AddViolation("update_mask", "is empty and interrupt sets nothing that can be changed: expire_time, assignees")
	}
	for _, path := range paths {
		switch path {
		case maskAll:
			c.Expires, c.Assignees = &expires, &assignees
		case maskExpire:
			c.Expires = &expires
		case maskAssignees:
			c.Assignees = &assignees
		case maskClaim:
			c.EndsClaim = true
			if q.GetClaimedBy() != "" {
				v.AddViolation("interrupt.claimed_by", "must be empty: a change can end a claim, and make none")
			}
		default:
			v.AddViolation("update_mask", "%q is not among *, expire_time, assignees, claimed_by", reason.ClipText(path, MaxNameLength))
		}
	}
	return c
}

// dueTimeToProto returns when something happens to an open question by itself.
func dueTimeToProto(q *checkpoint.Interrupt) *timestamppb.Timestamp {
	if q.State != checkpoint.InterruptOpen {
		return nil
	}
	return TimeToProto(q.DueTime())
}
