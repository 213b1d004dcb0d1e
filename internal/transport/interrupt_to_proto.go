package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func interruptToProto(q checkpoint.Interrupt) *graphdv1.Interrupt {
	return &graphdv1.Interrupt{
		InterruptId: q.ID, ThreadId: q.Thread, RunId: q.Run, Graph: q.Graph,
		Checkpoint: checkpointRefToProto(q.Checkpoint, q.Namespace),
		Node:       q.Node, TaskId: q.Task, Scope: q.Scope, Key: q.Key, Index: clampUint32(q.Index),
		Reason: q.Reason, Message: q.Message, Value: jsonToProto(q.Value), ResponseSchema: jsonToProto(q.Schema),
		State: interruptStateToProto(q.State), CreateTime: timeToProto(q.Created), UpdateTime: timeToProto(q.Updated),
		ExpireTime: timeToProto(q.Expires), ExpiryAction: expiryToProto(q.Expiry),
		DefaultResponse: jsonToProto(q.Default), Assignees: q.Assignees,
		Response: jsonToProto(q.Response), Dismissed: q.Dismissed, Responder: q.Responder, Note: q.Note,
		Etag: formatEtag(q.Revision), Seen: q.ShownDigest, Drift: driftToProto(q.Drift), DriftIgnore: q.DriftIgnore,
		Round: clampUint32(q.Round), Replaces: q.Replaces, Differs: q.Differs, Accepted: q.Accepted,
	}
}

func interruptsToProto(list []checkpoint.Interrupt) []*graphdv1.Interrupt {
	out := make([]*graphdv1.Interrupt, 0, len(list))
	for _, q := range list {
		out = append(out, interruptToProto(q))
	}
	return out
}
