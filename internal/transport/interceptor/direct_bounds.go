package interceptor

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// answerHeadroom is how much more than its value an answer may have, as gRPC sends them.
const answerHeadroom = 64 << 10 // bytes

// directBounds are those of a connection of gRPC, for direct calls of one client.
type directBounds struct {
	requests  *flow.RequestTracker
	most      int // bytes of an answer
	openCalls atomic.Int64
}

// admitCall counts a call with a request of size bytes, until release is called. The error is a
// status. nil admits all.
func (b *directBounds) admitCall(ctx context.Context, size int) (admitted context.Context, release func(), err error) {
	if b == nil {
		return ctx, func() {}, nil
	}
	others := b.openCalls.Add(1) - 1
	ctx, end, err := b.requests.BeginWholeCall(ctx, size, int(others))
	if err != nil {
		b.openCalls.Add(-1)
		return ctx, nil, err
	}
	return ctx, func() {
		end()
		b.openCalls.Add(-1)
	}, nil
}

// checkAnswer returns the error of an answer, which may be that it is too large.
func (b *directBounds) checkAnswer(a directAnswer) error {
	message, ok := a.message.(proto.Message)
	if b == nil || a.err != nil || !ok {
		return a.err
	}
	if size := proto.Size(message); size > b.most {
		return status.Errorf(codes.ResourceExhausted, "the answer has %d bytes; at most %d are sent", size, b.most)
	}
	return nil
}
