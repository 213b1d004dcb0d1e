package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// GraphToProto converts a version of a graph; full adds the whole description.
func GraphToProto(e runtime.GraphEntry, full bool) *graphdv1.Graph {
	out := &graphdv1.Graph{Versions: e.Versions, CreateTime: TimeToProto(e.Created)}
	if e.Graph == nil {
		return out
	}
	out.Graph = tenant.ClientName(e.Graph.Name)
	out.Version = e.Graph.Version
	s := e.Graph.Spec
	if s == nil {
		return out
	}
	out.Description, out.Metadata = s.Description, s.Metadata
	out.InputSchema, out.OutputSchema = JSONToProto(s.InputSchema), JSONToProto(s.OutputSchema)
	out.ContextSchema = JSONToProto(s.ContextSchema)
	if full {
		out.Spec = graphSpecToProto(s)
		out.Spec.Version = e.Graph.Version
	}
	return out
}

func graphSpecToProto(s *graph.Spec) *graphdv1.GraphSpec {
	out := &graphdv1.GraphSpec{
		Name: s.Name, Version: s.Version, Description: s.Description, Metadata: s.Metadata,
		Input: s.Input, Output: s.Output, Strict: s.Strict,
		InputSchema: JSONToProto(s.InputSchema), OutputSchema: JSONToProto(s.OutputSchema),
		ContextSchema:   JSONToProto(s.ContextSchema),
		InterruptBefore: s.InterruptBefore, InterruptAfter: s.InterruptAfter,
		StepLimit: ClampUint32(s.StepLimit), StepTimeout: DurationToProto(s.StepTimeout),
		Defaults: policySpecToProto(s.Defaults), Drift: driftToProto(checkpoint.Drift(s.Drift)), DriftIgnore: s.DriftIgnore,
	}
	for _, c := range s.Channels {
		out.Channels = append(out.Channels, &graphdv1.ChannelSpec{
			Name: c.Name, Reducer: c.Reducer, ReducerName: c.Function, DefaultValue: JSONToProto(c.Default),
		})
	}
	for i := range s.Nodes {
		out.Nodes = append(out.Nodes, nodeSpecToProto(&s.Nodes[i]))
	}
	for _, e := range s.Edges {
		out.Edges = append(out.Edges, &graphdv1.EdgeSpec{Sources: e.From, Target: e.To})
	}
	for i := range s.Branches {
		out.Branches = append(out.Branches, branchSpecToProto(&s.Branches[i]))
	}
	return out
}

func nodeSpecToProto(n *graph.NodeSpec) *graphdv1.NodeSpec {
	out := &graphdv1.NodeSpec{
		Name: n.Name, Description: n.Description, Metadata: n.Metadata, Reads: n.Reads,
		Deferred: n.Defer, Destinations: n.Destinations, Policy: policySpecToProto(n.Policy),
	}
	switch {
	case n.Function != nil:
		out.Kind = &graphdv1.NodeSpec_Function{Function: &graphdv1.FunctionSpec{Name: n.Function.Name}}
	case n.Expr != nil:
		out.Kind = &graphdv1.NodeSpec_Expr{Expr: &graphdv1.ExprSpec{
			Update: channelAssignmentsToProto(n.Expr.Update), GotoExpr: n.Expr.Goto,
		}}
	case n.Ask != nil:
		out.Kind = &graphdv1.NodeSpec_Ask{Ask: askSpecToProto(n.Ask)}
	case n.Graph != nil:
		out.Kind = &graphdv1.NodeSpec_Graph{Graph: &graphdv1.SubgraphSpec{
			Graph: n.Graph.Name, Version: n.Graph.Version, Persistence: persistenceToProto(n.Graph.Persistence),
		}}
	case n.Remote != nil:
		out.Kind = &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{
			Endpoint: n.Remote.Endpoint, Tls: n.Remote.TLS,
		}}
	}
	return out
}

func askSpecToProto(a *graph.AskSpec) *graphdv1.AskSpec {
	return &graphdv1.AskSpec{
		Condition: a.When, Value: a.Value, Message: a.Message, Key: a.Key, Reason: a.Reason,
		ResponseSchema: JSONToProto(a.Schema), Update: channelAssignmentsToProto(a.Update),
		Otherwise: channelAssignmentsToProto(a.Otherwise), GotoExpr: a.Goto,
		Assignees: a.Assignees.Names, AssigneesExpr: a.Assignees.Expr, People: peopleSpecToProto(a.People),
		Priority: specPriorityToProto(a.Priority), Steps: stepsToProto(a.ApprovalSteps()),
		Ttl: DurationToProto(a.TTL), ExpiryAction: expiryToProto(checkpoint.ExpiryAction(a.Expiry)),
		DefaultResponse: JSONToProto(a.Default), Undo: undoToProto(a.Undo),
		TtlExpr: a.TTLExpr, DefaultExpr: a.DefaultExpr,
		Drift: driftToProto(checkpoint.Drift(a.Drift)), DriftIgnore: a.DriftIgnore,
		Secret: a.Secret,
	}
}

func channelAssignmentsToProto(list []graph.Assignment) []*graphdv1.Assignment {
	var out []*graphdv1.Assignment
	for _, a := range list {
		out = append(out, &graphdv1.Assignment{Channel: a.Channel, Expr: a.Expr})
	}
	return out
}

func branchSpecToProto(br *graph.BranchSpec) *graphdv1.BranchSpec {
	out := &graphdv1.BranchSpec{Source: br.From, Name: br.Name, Paths: br.Paths, Targets: br.Then}
	switch {
	case br.Expr != "":
		out.Decision = &graphdv1.BranchSpec_Expr{Expr: br.Expr}
	case br.InWorker:
		out.Decision = &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: br.Router}
	case br.Router != "":
		out.Decision = &graphdv1.BranchSpec_Router{Router: br.Router}
	default:
		cases := &graphdv1.Cases{}
		for _, c := range br.Cases {
			cases.Cases = append(cases.Cases, &graphdv1.Case{Condition: c.When, Targets: c.To})
		}
		out.Decision = &graphdv1.BranchSpec_Cases{Cases: cases}
	}
	return out
}

// policySpecToProto converts a policy; an empty policy stays unset.
func policySpecToProto(p graph.PolicySpec) *graphdv1.PolicySpec {
	if len(p.Retry) == 0 && p.Timeout == 0 && p.IdleTimeout == 0 && p.ErrorHandler == "" {
		return nil
	}
	out := &graphdv1.PolicySpec{
		Timeout: DurationToProto(p.Timeout), IdleTimeout: DurationToProto(p.IdleTimeout), ErrorHandler: p.ErrorHandler,
	}
	for _, r := range p.Retry {
		out.Retry = append(out.Retry, &graphdv1.RetrySpec{
			MaxAttempts: ClampUint32(r.MaxAttempts), InitialInterval: DurationToProto(r.InitialInterval),
			Backoff: r.Backoff, MaxInterval: DurationToProto(r.MaxInterval), NoJitter: r.NoJitter,
			FailureTypes: r.On,
		})
	}
	return out
}

func persistenceToProto(p string) graphdv1.SubgraphPersistence {
	return graphdv1.SubgraphPersistence(
		findEnumNumber(graphdv1.SubgraphPersistence_value, "SUBGRAPH_PERSISTENCE_", p))
}
