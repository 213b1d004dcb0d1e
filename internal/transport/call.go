package transport

import (
	"context"
	"crypto/rand"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// Headers of requests and responses.
const (
	headerRequestID = "x-request-id"
	headerThreadID  = "graphd-thread-id"
	headerRefusal   = "graphd-refusal"
	headerRunID     = "graphd-run-id"
)

// call is what is known of the call that is being served, for logs and errors.
// Services fill it in as they learn it. It is the context of the call.
type call struct {
	context.Context //nolint:containedctx // it is one

	id     string       // of the call, from the client's header or made here
	outlet outlet       // what the client has not read of it
	room   runtime.Room // what it holds of what it shows

	mu     sync.Mutex
	thread string
	run    string
}

type callKey struct{}

// newCall gives a call a record. An id that a client sends is taken over if it
// is fit for a log.
func newCall(ctx context.Context, u *unread) (context.Context, *call) {
	c := &call{Context: ctx, outlet: u.newOutlet(ctx)}
	if ids := metadata.ValueFromIncomingContext(ctx, headerRequestID); len(ids) == 1 && fitID(ids[0]) {
		c.id = ids[0]
	} else {
		c.id = rand.Text()
	}
	return c, c
}

// Value finds the call itself, and the room for what it shows.
func (c *call) Value(key any) any {
	switch key.(type) {
	case callKey:
		return c
	case runtime.RoomKey:
		return &c.room
	}
	return c.Context.Value(key)
}

// roomOf is the room of a call for what it shows.
func roomOf(ctx context.Context) *runtime.Room {
	if r, ok := ctx.Value(runtime.RoomKey{}).(*runtime.Room); ok {
		return r
	}
	return &runtime.Room{}
}

func fitID(id string) bool {
	b := &border{}
	b.id("", id)
	return len(b.bad) == 0
}

// outletOf is where what a call sends is counted.
func outletOf(ctx context.Context) *outlet {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return &c.outlet
	}
	return &outlet{}
}

// note records what a call is about.
func note(ctx context.Context, thread, run string) {
	c, ok := ctx.Value(callKey{}).(*call)
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

// subject returns the ids an error should name; nil when none is known.
func subject(ctx context.Context) map[string]string {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make(map[string]string, 2)
	if c.thread != "" {
		ids["threadId"] = clip(c.thread, maxMetaValue)
	}
	if c.run != "" {
		ids["runId"] = clip(c.run, maxMetaValue)
	}
	return ids
}

// callFields are the log fields of a call.
func callFields(ctx context.Context) []zap.Field {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fields := []zap.Field{zap.String("request_id", c.id)}
	if c.thread != "" {
		fields = append(fields, zap.String("thread", clip(c.thread, maxID)))
	}
	if c.run != "" {
		fields = append(fields, zap.String("run", clip(c.run, maxID)))
	}
	return fields
}
