package interceptor

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Headers of requests and responses.
const (
	headerRequestID = "x-request-id"
	HeaderThreadID  = "graphd-thread-id"
	HeaderRefusal   = "graphd-refusal"
	HeaderRunID     = "graphd-run-id"
)

// callContext holds the ids and counters of the served call, for logs and errors.
// Services complete it. It is the context of the call.
type callContext struct {
	context.Context //nolint:containedctx // it is one

	requestID string              // of the call, from the client's header or made here
	unread    flow.CallUnread     // bytes that the client has not read
	memory    runtime.CallMemory  // what it holds of large states that it shows
	quotas    Quotas              // nil = no limits of callers
	refusal   error               // of a limit, before the handler is called
	held      quota.Hold          // until the call ends
	tenant    string              // set before the handler is called; "" = not decided
	caller    *identity.Principal // set before the handler is called; nil = not known
	onlyGraph *string             // set before the handler is called; nil = any graph
	audit     *callAudit          // nil = calls are not recorded

	isStream   bool
	limited    context.Context //nolint:containedctx // that ends with the credential; nil = it does not
	endLimited context.CancelCauseFunc

	mu     sync.Mutex
	thread string
	run    string
	graph  string              // for the record of the call, where its request has none
	notes  map[string][]string // for the record of the call
	// questions are those that the call answers, with the pointers to their secret parts.
	questions map[string][]string
}

type callContextKey struct{}

// newCallContext makes the context of a call. It takes over the client's request id
// if that is fit for a log.
func newCallContext(ctx context.Context, u *flow.UnreadTracker) (context.Context, *callContext) {
	c := &callContext{Context: ctx, unread: u.NewCallUnread(ctx)}
	if ids := metadata.ValueFromIncomingContext(ctx, headerRequestID); len(ids) == 1 && wire.IsValidID(ids[0]) {
		c.requestID = ids[0]
	} else {
		c.requestID = rand.Text()
	}
	return c, c
}

// Value returns the callContext for its own key.
func (c *callContext) Value(key any) any {
	if _, ok := key.(callContextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// CallMemoryOf returns the memory that a call holds of large states that it shows.
func CallMemoryOf(ctx context.Context) *runtime.CallMemory {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return &c.memory
	}
	return &runtime.CallMemory{}
}

// UnreadOfCall returns the counter of the unread bytes of a call.
func UnreadOfCall(ctx context.Context) *flow.CallUnread {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return &c.unread
	}
	return &flow.CallUnread{}
}

// CallerOf returns the authenticated caller of a call, nil when the server does not
// know its callers. Services pass it on as an argument.
func CallerOf(ctx context.Context) *identity.Principal {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return c.caller
	}
	return nil
}

// recordCaller records the caller of a call.
func recordCaller(ctx context.Context, caller *identity.Principal) {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		c.caller = caller
	}
}

// OnlyGraphOf returns the graph that alone a call may concern, nil = any. The decision
// about the call depended on it. Services pass it on as an argument.
func OnlyGraphOf(ctx context.Context) *string {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return c.onlyGraph
	}
	return nil
}

// RecordOnlyGraph records the graph that alone a call may concern, before its handler is
// called.
func RecordOnlyGraph(ctx context.Context, graph string) {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		c.onlyGraph = &graph
	}
}

// RecordQuestion records which parts of the answer to a question are secret. The record of a call has
// digests of answers to such questions only.
func RecordQuestion(ctx context.Context, interrupt string, secret []string) {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions == nil {
		c.questions = make(map[string][]string, 1)
	}
	known := c.questions[interrupt]
	for _, pointer := range secret {
		if !slices.Contains(known, pointer) {
			known = append(slices.Clip(known), pointer)
		}
	}
	c.questions[interrupt] = known
}

// secretsOf returns the pointers to the secret parts of the answer to a question, ok = false when the
// question is not known.
func (c *callContext) secretsOf(interrupt string) (secret []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	secret, ok = c.questions[interrupt]
	return secret, ok
}

// NoteForAudit adds texts under a name to the record of a call, which is made when the call
// ends or its first message leaves. No text may have values of users.
func NoteForAudit(ctx context.Context, name string, texts ...string) {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notes == nil {
		c.notes = make(map[string][]string)
	}
	c.notes[name] = append(c.notes[name], texts...)
}

// RecordGraph records the graph of a call whose request does not name it.
func RecordGraph(ctx context.Context, graph string) {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.graph = graph
	}
}

// RecordSubject records the thread and the run of a call.
func RecordSubject(ctx context.Context, thread, run string) {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if thread != "" {
		c.thread = thread
	}
	if run != "" {
		c.run = run
	}
}

// subjectIDs returns the ids for the error of a call, nil when none is known.
func subjectIDs(ctx context.Context) map[string]string {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make(map[string]string, 2)
	if c.thread != "" {
		ids["threadId"] = reason.ClipText(c.thread, reason.MaxMetadataLength)
	}
	if c.run != "" {
		ids["runId"] = reason.ClipText(c.run, reason.MaxMetadataLength)
	}
	return ids
}

// CallLogFields returns the log fields of a call.
func CallLogFields(ctx context.Context) []zap.Field {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fields := []zap.Field{zap.String("request_id", c.requestID)}
	if c.caller != nil {
		fields = append(fields, zap.String("principal", c.caller.Name))
		if c.tenant != "" {
			fields = append(fields, zap.String("tenant", c.tenant))
		}
	}
	if c.thread != "" {
		fields = append(fields, zap.String("thread", reason.ClipText(c.thread, wire.MaxIDLength)))
	}
	if c.run != "" {
		fields = append(fields, zap.String("run", reason.ClipText(c.run, wire.MaxIDLength)))
	}
	return fields
}

// ClientLeftError returns the error of a call that can't set a header before the
// first message: the client has left.
func ClientLeftError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}
