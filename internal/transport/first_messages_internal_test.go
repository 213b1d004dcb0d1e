package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// stalledInterruptStream is a client of WatchInterrupts that reads nothing.
type stalledInterruptStream struct {
	grpc.ServerStream

	ctx context.Context
}

func (w stalledInterruptStream) Context() context.Context { return w.ctx }

func (stalledInterruptStream) Send(*graphdv1.InterruptChange) error { panic("messages come encoded") }

func (w stalledInterruptStream) SendMsg(any) error {
	<-w.ctx.Done()
	return w.ctx.Err()
}

// Clients that do not read keep no other watch from beginning.
func TestSlowReadersLetOthersBegin(t *testing.T) {
	for name, slow := range map[string]func(context.Context, *graphService) error{
		"WatchInterrupts": func(ctx context.Context, s *graphService) error {
			inbox := &interruptService{service: s.service}
			return inbox.WatchInterrupts(&graphdv1.WatchInterruptsRequest{}, stalledInterruptStream{ctx: ctx})
		},
		"Watch": func(ctx context.Context, s *graphService) error {
			return s.Watch(&graphdv1.WatchRequest{ThreadId: "t1", SnapshotFirst: true, Follow: true}, &fakeStream{ctx: ctx})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				s := newGraphService(newFakeThread())
				s.openingSlots = make(chan struct{}, 1)
				done := make(chan error)
				go func() { done <- slow(ctx, s) }()
				synctest.Wait()
				select {
				case err := <-done:
					require.Fail(t, "the slow client's watch has ended", err)
				default:
				}
				require.Empty(t, s.openingSlots, "the slow client has its turn no more")
				leave()
				require.ErrorIs(t, <-done, context.Canceled)
			})
		})
	}
}

func TestWaitingForAnOpeningSlotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamRegistry{openingSlots: make(chan struct{}, 1), draining: make(chan struct{})}
		begun, err := s.acquireOpeningSlot(t.Context())
		require.NoError(t, err)
		ctx, leave := context.WithTimeout(t.Context(), openingTimeout/2)
		defer leave()
		_, err = s.acquireOpeningSlot(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.acquireOpeningSlot(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManySubscribers})
		refused, ok := errors.AsType[*runtime.Error](err)
		require.True(t, ok)
		require.Equal(t, "1", refused.Meta["limit"])
		time.AfterFunc(openingTimeout/2, begun)
		begun, err = s.acquireOpeningSlot(t.Context())
		require.NoError(t, err)
		begun()
		require.Empty(t, s.openingSlots)
	})
}
