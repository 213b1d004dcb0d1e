package interceptor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/transport/callrecord"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// Auditor keeps the records of calls. It does not wait.
type Auditor interface {
	RecordCall(r audit.Record)
}

// The doors of all calls but those of a LocalConn. A client can't choose them.
const (
	doorGRPC    = "grpc"
	doorHTTP    = "http"    // of browsers
	doorProcess = "process" // of the program that has the server in it
)

// callAudit makes the records of calls. nil records nothing and costs nothing.
type callAudit struct {
	to        Auditor
	withReads bool
	methods   map[string]*callrecord.Describer
	log       *zap.Logger
}

// AuditCalls makes the interceptors record calls. withReads says whether calls that
// show values and are not refused are recorded. Errors: those of
// callrecord.NewDescribers.
func (i *Interceptors) AuditCalls(to Auditor, withReads bool) error {
	methods, err := callrecord.NewDescribers(callrecord.Methods())
	if err != nil {
		return err
	}
	i.audit = &callAudit{to: to, withReads: withReads, methods: methods, log: i.log}
	return nil
}

// auditedCall is a call that may be recorded. nil is one that is not.
type auditedCall struct {
	audit    *callAudit
	describe *callrecord.Describer
	method   string

	mu      sync.Mutex    // a stream may send and receive at the same time
	request proto.Message // nil = not read
	isDone  bool
	isPart  bool // its thread is that of its request
}

// newCall returns nil for calls that are never recorded.
func (a *callAudit) newCall(method string) *auditedCall {
	if a == nil {
		return nil
	}
	describe := a.methods[method]
	if describe == nil || describe.Kind == callrecord.Plain {
		return nil
	}
	return &auditedCall{audit: a, describe: describe, method: method}
}

// noteRequest keeps the first message of a call until the call is recorded.
func (a *auditedCall) noteRequest(m any) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.request != nil || a.isDone {
		return
	}
	a.request, _ = m.(proto.Message)
}

// finishRecord records a call, once. A stream is finished when its first message has left,
// or when it ends before. A panic ends the record, not the call.
func (a *auditedCall) finishRecord(ctx context.Context, answer any, err error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isDone {
		return
	}
	a.isDone = true
	if p := contain.Call(func() { a.writeRecord(ctx, answer, err) }); p != nil {
		a.audit.log.Error("recording a call panicked", p.Fields()...)
	}
	a.request = nil
}

func (a *auditedCall) writeRecord(ctx context.Context, answer any, err error) {
	r := audit.Record{Method: strings.TrimPrefix(a.method, "/"), Door: doorGRPC, Outcome: audit.OutcomeOK}
	describeError(&r, err)
	if !a.isRecorded(r.Outcome) {
		return
	}
	if p, ok := peer.FromContext(ctx); ok {
		r.Remote = p.Addr.String()
		switch p.AuthInfo.(type) {
		case handshake.RelayedInfo:
			r.Door = doorHTTP
		case handshake.ProcessInfo:
			r.Door = doorProcess
		}
	}
	if caller := localCallerOf(ctx); caller != nil {
		r.Door = caller.Door
	}
	var secrets callrecord.SecretsOf
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		secrets = c.secretsOf
	}
	a.describe.Describe(&r, a.request, r.Outcome != audit.OutcomeRefused, secrets)
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		thread := r.Thread
		c.describeCall(&r)
		if a.isPart {
			r.Thread = thread
		}
	}
	if shown, ok := answer.(proto.Message); ok && err == nil {
		a.describe.DescribeAnswer(&r, shown)
	}
	a.audit.to.RecordCall(r)
}

// RecordPart records a part of a call, which another method would have done by a call of its
// own: as a call of the running method, described as that request.
func RecordPart(ctx context.Context, like string, request proto.Message, err error) {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok || c.audit == nil {
		return
	}
	part := c.audit.newCall(like)
	if part == nil {
		return
	}
	part.noteRequest(request)
	part.method, _ = grpc.Method(ctx)
	part.isPart = true
	part.finishRecord(ctx, nil, err)
}

// isRecorded reports whether a call that ended so is recorded.
func (a *auditedCall) isRecorded(outcome audit.Outcome) bool {
	switch a.describe.Kind {
	case callrecord.Changes:
		return true
	case callrecord.Shows:
		return a.audit.withReads || outcome == audit.OutcomeRefused
	case callrecord.Task:
		return outcome != audit.OutcomeOK
	case callrecord.Plain:
	}
	return false
}

// describeCall adds who calls, and the thread and the run as services know them.
func (c *callContext) describeCall(r *audit.Record) {
	r.RequestID = c.requestID
	if c.caller != nil {
		r.Principal, r.How, r.Groups, r.Tenant = c.caller.Name, string(c.caller.How), c.caller.Groups, cmp.Or(c.tenant, c.caller.Tenant)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thread != "" {
		r.Thread = c.thread
	}
	if c.run != "" {
		r.Run = c.run
	}
	r.Graph = cmp.Or(r.Graph, c.graph)
	for name, texts := range c.notes {
		if r.What == nil {
			r.What = make(map[string][]string)
		}
		r.What[name] = slices.Clone(texts)
	}
}

// describeError adds how a call ended.
func describeError(r *audit.Record, err error) {
	if err == nil {
		return
	}
	s := status.Convert(err)
	r.Outcome, r.Code = audit.OutcomeFailed, code.Code(s.Code()).String()
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			r.Reason, r.Rule = info.GetReason(), info.GetMetadata()["rule"]
		}
	}
	if s.Code() == codes.Unauthenticated || s.Code() == codes.PermissionDenied || r.Rule != "" {
		r.Outcome = audit.OutcomeRefused
	}
}
