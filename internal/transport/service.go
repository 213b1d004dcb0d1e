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

// digestFor digests a request only when it may come again.
func digestFor(requestID string, effect proto.Message) (string, error) {
	if requestID == "" {
		return "", nil
	}
	return digest(effect)
}
