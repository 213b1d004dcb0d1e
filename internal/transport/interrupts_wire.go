package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func interruptOut(q checkpoint.Interrupt) *graphdv1.Interrupt {
	return &graphdv1.Interrupt{
		InterruptId: q.ID, ThreadId: q.Thread, RunId: q.Run, Graph: q.Graph,
		Checkpoint: checkpointOut(q.Checkpoint, q.Namespace),
		Node:       q.Node, TaskId: q.Task, Scope: q.Scope, Key: q.Key, Index: count(q.Index),
		Reason: q.Reason, Message: q.Message, Value: jsonOut(q.Value), ResponseSchema: jsonOut(q.Schema),
		State: interruptStateOut(q.State), CreateTime: timeOut(q.Created), UpdateTime: timeOut(q.Updated),
		ExpireTime: timeOut(q.Expires), ExpiryAction: expiryOut(q.Expiry),
		DefaultResponse: jsonOut(q.Default), Assignees: q.Assignees,
		Response: jsonOut(q.Response), Dismissed: q.Dismissed, Responder: q.Responder, Note: q.Note,
		Etag: etagOf(q.Revision), Seen: q.Seen, Drift: driftOut(q.Drift), DriftIgnore: q.DriftIgnore,
		Round: count(q.Round), Replaces: q.Replaces, Differs: q.Differs, Accepted: q.Accepted,
	}
}

func interruptsOut(list []checkpoint.Interrupt) []*graphdv1.Interrupt {
	out := make([]*graphdv1.Interrupt, 0, len(list))
	for _, q := range list {
		out = append(out, interruptOut(q))
	}
	return out
}
