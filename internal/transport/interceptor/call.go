package interceptor

import (
	"context"
	"crypto/rand"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

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

// callContext is what is known of the served call, for logs and errors. Services
// complete it. It is the context of the call.
type callContext struct {
	context.Context //nolint:containedctx // it is one

	requestID string             // of the call, from the client's header or made here
	unread    flow.CallUnread    // bytes that the client has not read
	memory    runtime.CallMemory // what it holds of large states that it shows

	mu     sync.Mutex
	thread string
	run    string
}

type callContextKey struct{}

// newCallContext gives a call a record. An id that a client sends is taken over if it
// is fit for a log.
func newCallContext(ctx context.Context, u *flow.UnreadTracker) (context.Context, *callContext) {
	c := &callContext{Context: ctx, unread: u.NewCallUnread(ctx)}
	if ids := metadata.ValueFromIncomingContext(ctx, headerRequestID); len(ids) == 1 && wire.IsValidID(ids[0]) {
		c.requestID = ids[0]
	} else {
		c.requestID = rand.Text()
	}
	return c, c
}

// Value returns the call itself.
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

// UnreadOfCall returns where the unread bytes of a call are counted.
func UnreadOfCall(ctx context.Context) *flow.CallUnread {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return &c.unread
	}
	return &flow.CallUnread{}
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

// subjectIDs returns the ids an error should name; nil when none is known.
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

// CallLogFields are the log fields of a call.
func CallLogFields(ctx context.Context) []zap.Field {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fields := []zap.Field{zap.String("request_id", c.requestID)}
	if c.thread != "" {
		fields = append(fields, zap.String("thread", reason.ClipText(c.thread, wire.MaxIDLength)))
	}
	if c.run != "" {
		fields = append(fields, zap.String("run", reason.ClipText(c.run, wire.MaxIDLength)))
	}
	return fields
}

// ClientLeftError is the error when a header can't be set before anything is sent:
// the client has left.
func ClientLeftError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}
