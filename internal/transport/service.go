package transport

import (
	"context"
	"strconv"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/listing"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/stream"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// service holds the fields that all services share.
type service struct {
	engine  Engine
	follow  func(runtime.FollowRequest) stream.Follower
	streams *stream.Registry
	events  *stream.Streamer

	maxMessageBytes int // of one answer
	log             *zap.Logger

	tokens listing.TokenCodec
	limits payload.Limits
	access *permission.Authorizer // nil = every caller may do everything
	// readSlots holds one value for each call that reads states.
	readSlots chan struct{}
}

// maxStateReads is the number of calls that may read states at the same time. Their
// states are held until they are encoded, and then count as unread.
const maxStateReads = 4

// acquireReadSlot waits for a slot of a call that reads states. The caller calls
// leave when the answer is built. It returns an error when ctx ends first.
func (s *service) acquireReadSlot(ctx context.Context) (leave func(), err error) {
	select {
	case s.readSlots <- struct{}{}:
		return func() { <-s.readSlots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newValidator makes the validator of a message of a call.
func (s *service) newValidator(ctx context.Context) *wire.Validator {
	return wire.NewValidator(s.limits, interceptor.TenantOf(ctx))
}

// digestList is listing.DigestList for a list in the tenant of a call, whose tokens are of no
// use in another one. Tokens of tenant.Default are as they were before there were tenants.
func digestList(ctx context.Context, parts ...string) string {
	if owner := interceptor.TenantOf(ctx); owner != tenant.Default {
		parts = append(parts, owner)
	}
	return listing.DigestList(parts...)
}

// checkAnswerSize refuses an answer that is larger than any client accepts.
func (s *service) checkAnswerSize(m proto.Message, instead string) error {
	if size := proto.Size(m); size > s.maxMessageBytes {
		return runtime.Errorf(runtime.ReasonPayloadTooLarge,
			"the answer has %d bytes and the limit is %d; %s", size, s.maxMessageBytes, instead).
			With("sizeBytes", strconv.Itoa(size)).With("limitBytes", strconv.Itoa(s.maxMessageBytes)).
			WithLimit("max-message", int64(s.maxMessageBytes), int64(size))
	}
	return nil
}
