package transport

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/payload"
)

// service is what the services have in common.
type service struct {
	*eventStreamer

	tokens     tokenCodec
	limits     payload.Limits
	callerName func(ctx context.Context) string
	// readSlots holds one value for each call that reads states.
	readSlots chan struct{}
}

// maxStateReads is how many calls read states at the same time: what they read is
// held until it is encoded, and then counts as unread.
const maxStateReads = 4

// acquireReadSlot waits for a slot of a call that reads states. The caller calls
// release when the answer is built.
func (s *service) acquireReadSlot(ctx context.Context) (leave func(), err error) {
	select {
	case s.readSlots <- struct{}{}:
		return func() { <-s.readSlots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *service) newValidator() *validator { return &validator{limits: s.limits} }

// callerOf names the authenticated caller, "" when callers are not known.
func (s *service) callerOf(ctx context.Context) string {
	if s.callerName == nil {
		return ""
	}
	return s.callerName(ctx)
}

// digestIfRepeatable digests what a request asks for, but only when it may come again.
func digestIfRepeatable(requestID string, effect proto.Message) (string, error) {
	if requestID == "" {
		return "", nil
	}
	return digestMessage(effect)
}

// repeatableRequest is a request that a client may send again under the same id.
type repeatableRequest interface {
	proto.Message
	GetRequestId() string
}

// digestWithoutRequestID is digestIfRepeatable for a request that has its id inside: the id is no part
// of what is asked for.
func digestWithoutRequestID(req repeatableRequest) (string, error) {
	if req.GetRequestId() == "" {
		return "", nil
	}
	effect := proto.Clone(req).ProtoReflect()
	effect.Clear(effect.Descriptor().Fields().ByName("request_id"))
	return digestMessage(effect.Interface())
}
