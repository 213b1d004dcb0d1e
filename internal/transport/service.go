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
