package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/transport/stream"
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

// oneInterrupt is an engine with one open interrupt.
type oneInterrupt struct{ Engine }

func (oneInterrupt) Interrupts(context.Context, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return []checkpoint.Interrupt{{ID: "q1", State: checkpoint.InterruptOpen}}, nil
}

// Clients that do not read keep no other watch from beginning.
func TestSlowReadersOfInterruptsLetOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		streams := stream.NewRegistry(stream.Settings{
			HeartbeatInterval: 15 * time.Second, StallTimeout: 30 * time.Second, MaxMessageBytes: 8 << 20, MaxOpening: 1,
		})
		s := &interruptService{service: &service{engine: oneInterrupt{}, streams: streams}}
		done := make(chan error)
		go func() {
			done <- s.WatchInterrupts(&graphdv1.WatchInterruptsRequest{}, stalledInterruptStream{ctx: ctx})
		}()
		synctest.Wait()
		select {
		case err := <-done:
			require.Fail(t, "the slow client's watch has ended", err)
		default:
		}
		begun := time.Now()
		release, err := streams.AcquireOpeningSlot(t.Context())
		require.NoError(t, err)
		require.Equal(t, begun, time.Now(), "the slow client has its turn no more")
		release()
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}
