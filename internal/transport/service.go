package transport

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/payload"
)

// service is what the services have in common.
type service struct {
	*pump

	tokens tokens
	limits payload.Limits
	caller func(ctx context.Context) string
	// reading has room for the calls that read states at the same time.
	reading chan struct{}
}

// maxReading is how many calls read states at the same time: what they read is
// held until it is encoded, and then counts as unread.
const maxReading = 4

// enterReading waits for the turn of a call that reads states. The caller calls
// leave when the answer is put together.
func (s *service) enterReading(ctx context.Context) (leave func(), err error) {
	select {
	case s.reading <- struct{}{}:
		return func() { <-s.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *service) border() *border { return &border{limits: s.limits} }

// by names the authenticated caller, "" when callers are not known.
func (s *service) by(ctx context.Context) string {
	if s.caller == nil {
		return ""
	}
	return s.caller(ctx)
}

// digestFor digests what a request asks for, but only when it may come again.
func digestFor(requestID string, effect proto.Message) (string, error) {
	if requestID == "" {
		return "", nil
	}
	return digest(effect)
}

// repeatable is a request that a client may send again under the same id.
type repeatable interface {
	proto.Message
	GetRequestId() string
}

// digestOf is digestFor for a request that has its id inside: the id is no part
// of what is asked for.
func digestOf(req repeatable) (string, error) {
	if req.GetRequestId() == "" {
		return "", nil
	}
	effect := proto.Clone(req).ProtoReflect()
	effect.Clear(effect.Descriptor().Fields().ByName("request_id"))
	return digest(effect.Interface())
}
