// Package permission decides whether a caller may make a call: it reads from a request
// what it concerns and which rights its fields need, and asks a policy of package access.
//
// Calls that concern one graph or thread are decided here, before their service is
// called. Calls that return many are decided as a whole, and then item by item with an
// ItemFilter. Where the content of a request decides, like the graph inside a document,
// its service asks with CheckGraph.
package permission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
)

// ThreadGraphs knows which graph a thread has.
type ThreadGraphs interface {
	// ReadGraph returns the name of the graph of a thread, "" for a thread without one.
	// The names of both are as stores know them.
	// The error is a *runtime.Error, THREAD_NOT_FOUND when there is no such thread.
	ReadGraph(ctx context.Context, thread string) (string, error)
}

// Options make an Authorizer. All fields must be set.
type Options struct {
	// Policy returns the present policy.
	Policy  func() *access.Policy
	Threads ThreadGraphs
	Now     func() time.Time
}

// Authorizer decides about calls. It is safe for concurrent use. A nil Authorizer
// permits everything.
type Authorizer struct {
	opts    Options
	readers map[string]*methodReader
}

// New makes an authorizer. The error names a missing option, or a row of the tables of
// package access that does not fit the protos.
func New(opts Options) (*Authorizer, error) {
	if opts.Policy == nil || opts.Threads == nil || opts.Now == nil {
		return nil, fmt.Errorf("permission: Policy, Threads and Now must be set")
	}
	readers, err := newMethodReaders()
	if err != nil {
		return nil, err
	}
	return &Authorizer{opts: opts, readers: readers}, nil
}

// newRequest drafts the request of a caller in the tenant of its call; nil = it is not
// known. Decisions name threads and graphs as clients do.
func (a *Authorizer) newRequest(ctx context.Context, caller *identity.Principal, method string) access.Request {
	r := access.Request{Method: method, Tenant: interceptor.TenantOf(ctx), Now: a.opts.Now()}
	if caller != nil {
		r.Caller = access.Caller{
			Name: caller.Name, Groups: caller.Groups, Tenant: cmp.Or(caller.Tenant, tenant.Default), Tenants: caller.Tenants,
			Roles: caller.Roles, How: string(caller.How),
		}
	}
	return r
}

// AuthorizeCall refuses a call that its caller may not make. It records in ctx which
// graph alone the call may concern, see interceptor.OnlyGraphOf. Errors: ACCESS_DENIED
// where the caller may know of what it asked for, and else the error of something that
// does not exist; NO_CREDENTIALS without a caller; and those of ThreadGraphs.
func (a *Authorizer) AuthorizeCall(ctx context.Context, caller *identity.Principal, method string, request proto.Message) error {
	r := a.readers[method]
	switch {
	case r != nil && r.scope == access.ScopeOpen:
		return nil
	case caller == nil:
		return &identity.Error{Reason: identity.NoCredentials}
	case r == nil || r.scope == access.ScopeEndpoint:
		return deniedError(access.Decision{Rule: "method"})
	case r.isDecidedLater:
		return nil
	}
	s := r.readSubject(request)
	interceptor.RecordSubject(ctx, s.thread, s.run)
	wanted := a.newRequest(ctx, caller, method)
	wanted.Rights = s.rights
	switch {
	case r.scope != access.ScopeGraph:
		if d := a.opts.Policy().Decide(wanted); !d.Allowed {
			return deniedError(d)
		}
		return nil
	case s.thread == "", r.mayCreate, s.mayCreate && s.graph != "":
		return a.authorizeGraph(ctx, wanted, s)
	}
	return a.authorizeThread(ctx, wanted, s.thread)
}

// authorizeGraph decides about a call that names its graph. If it names a thread too,
// the call makes the thread unless there is one.
func (a *Authorizer) authorizeGraph(ctx context.Context, wanted access.Request, s subject) error {
	policy := a.opts.Policy()
	wanted.Graph, wanted.Thread = s.graph, s.thread
	d := policy.Decide(wanted)
	switch {
	case !d.Allowed:
		wanted.Thread = "" // there may be none: what the caller sees is the graph
		d.CanSee = policy.Decide(wanted).CanSee
		return refuseGraph(d, s.graph)
	case s.graph == "", isAllowedForAll(policy, wanted): // only bindings for all graphs allow a call without one
		return nil
	case s.thread == "":
		interceptor.RecordOnlyGraph(ctx, qualifyName(ctx, s.graph))
		return nil
	}
	graph, err := a.readGraph(ctx, s.thread)
	switch {
	case isNotFound(err):
		graph = s.graph
	case err != nil:
		return hideFault(err, threadExistsError(s.thread))
	}
	wanted.Graph = graph
	switch d := policy.Decide(wanted); {
	case !d.Allowed && !d.CanSee:
		return threadExistsError(s.thread)
	case !d.Allowed: // else the call could attach to a run of this graph
		return deniedError(d)
	}
	interceptor.RecordOnlyGraph(ctx, qualifyName(ctx, graph))
	return nil
}

// authorizeThread decides about a call for a thread that must exist. A caller that may do
// it for every graph costs no read.
func (a *Authorizer) authorizeThread(ctx context.Context, wanted access.Request, thread string) error {
	only, err := a.decideThread(ctx, wanted, thread)
	if only != nil {
		interceptor.RecordOnlyGraph(ctx, *only)
	}
	return err
}

// decideThread decides about a thread that must exist, and returns the graph that alone it
// may have, nil = any.
func (a *Authorizer) decideThread(ctx context.Context, wanted access.Request, thread string) (only *string, err error) {
	policy := a.opts.Policy()
	wanted.Thread = thread
	if isAllowedForAll(policy, wanted) {
		return nil, nil //nolint:nilnil // any graph
	}
	graph, err := a.readGraph(ctx, thread)
	if err != nil {
		return nil, hideFault(err, runtime.ThreadNotFoundError(thread))
	}
	wanted.Graph = graph
	if d := policy.Decide(wanted); !d.Allowed {
		return nil, refuseThread(d, thread)
	}
	graph = qualifyName(ctx, graph)
	return &graph, nil
}

// CheckThread decides about one of the threads that a call concerns, as about a call of a
// method for that thread. thread is its name as clients know it. It returns the graph that
// alone the thread may have, nil = any. Errors: those of AuthorizeCall.
func (a *Authorizer) CheckThread(ctx context.Context, method, thread string) (only *string, err error) {
	if a == nil {
		return nil, nil //nolint:nilnil // any graph
	}
	return a.decideThread(ctx, a.newRequest(ctx, interceptor.CallerOf(ctx), method), thread)
}

// readGraph returns the graph of a thread of the call's tenant. Errors: those of
// ThreadGraphs.
func (a *Authorizer) readGraph(ctx context.Context, thread string) (string, error) {
	qualified := qualifyName(ctx, thread)
	if qualified == "" {
		return "", runtime.ThreadNotFoundError(thread)
	}
	graph, err := a.opts.Threads.ReadGraph(ctx, qualified)
	return tenant.ClientName(graph), err
}

// qualifyName returns what stores know a thread or a graph of the call's tenant by, "" for a
// name that none can have.
func qualifyName(ctx context.Context, name string) string {
	qualified, _ := tenant.Qualify(interceptor.TenantOf(ctx), name)
	return qualified
}

func isAllowedForAll(policy *access.Policy, wanted access.Request) bool {
	wanted.Graph, wanted.Extent = "", access.EveryGraph
	return policy.Decide(wanted).Allowed
}

func isNotFound(err error) bool {
	return errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound})
}

// hideFault returns the error for a thread whose graph can't be read. One whose record is
// damaged is shown only to callers for all graphs.
func hideFault(err, hidden error) error {
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonCheckpointCorrupt}) {
		return hidden
	}
	return err
}

// CheckRequest is CheckGraph with the rights that the fields of a request need.
func (a *Authorizer) CheckRequest(ctx context.Context, method, graph string, request proto.Message) error {
	if a == nil {
		return nil
	}
	s := a.readers[method].readSubject(request)
	return a.CheckGraph(ctx, method, graph, s.rights...)
}

// CheckGraph decides about one graph that a call concerns, for services that find it in
// the content of the request; its name is as stores or as clients know it. The error is
// ACCESS_DENIED. It depends on the name of the graph alone, not on whether there is such a
// graph.
func (a *Authorizer) CheckGraph(ctx context.Context, method, graph string, rights ...Right) error {
	if a == nil {
		return nil
	}
	graph = tenant.ClientName(graph)
	wanted := a.newRequest(ctx, interceptor.CallerOf(ctx), method)
	wanted.Graph, wanted.Rights, wanted.Extent = graph, rights, access.OneItem
	if d := a.opts.Policy().Decide(wanted); !d.Allowed {
		return deniedError(d).With("graph", graph)
	}
	return nil
}
