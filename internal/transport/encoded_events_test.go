package transport_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TestWatchersShareWhatIsEncoded lets several streams show one log: each gets the
// same as a single stream, and each event is encoded once.
func TestWatchersShareWhatIsEncoded(t *testing.T) {
	e := newFakeEngine()
	e.values = `{"n": 9007199254740993}`
	for i := range 40 {
		e.appendEvents(
			checkpoint.Event{Kind: checkpoint.EventUpdate, Node: "a", Value: payload.Quote(fmt.Sprint(i))},
			checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: fmt.Sprint("c", i)},
			checkpoint.Event{Kind: checkpoint.EventCheckpoint, Checkpoint: fmt.Sprint("c", i)},
		)
	}
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventCustom, Name: "large", Value: payload.Quote(strings.Repeat("x", 100<<10))})
	c := startServer(t, e)
	read := func(debug bool, opts ...grpc.CallOption) (all []*graphdv1.Event) {
		channels := []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_CHECKPOINTS,
			graphdv1.Channel_CHANNEL_CUSTOM,
		}
		if debug {
			channels = append(channels, graphdv1.Channel_CHANNEL_DEBUG)
		}
		stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{
			ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{}, Filter: &graphdv1.EventFilter{Channels: channels},
		}, opts...)
		require.NoError(t, err)
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return all
			}
			require.NoError(t, err)
			if m.GetCursor().GetSequence() > 0 && m.GetOpened() == nil && m.GetEnd() == nil {
				all = append(all, m)
			}
		}
	}
	for _, debug := range []bool{false, true} {
		e.isShared = false
		want := read(debug)
		require.Len(t, want, 121)
		e.isShared, e.stateReads = true, 0
		for i, opts := range [][]grpc.CallOption{nil, nil, {grpc.UseCompressor(gzip.Name)}, nil} {
			got := read(debug, opts...)
			require.Len(t, got, len(want), i)
			for k := range want {
				require.True(t, proto.Equal(want[k], got[k]), "%v\n%v", want[k], got[k])
			}
		}
		require.LessOrEqual(t, e.stateReads, 80, "states are looked up for one of the streams")
	}
}

// The cache of a long log is bounded, and the events after it are shown as well.
func TestSharedEventsAreForgotten(t *testing.T) {
	e := newFakeEngine()
	e.isShared = true
	for i := range 1000 {
		e.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate, Node: "a", Value: payload.Quote(fmt.Sprint(i))})
	}
	c := startServer(t, e)
	for range 3 {
		stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{}})
		require.NoError(t, err)
		next := 0
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if u := m.GetUpdate(); u != nil {
				require.Equal(t, string(payload.Quote(fmt.Sprint(next))), u.GetValues().GetJson())
				next++
			}
		}
		require.Equal(t, 1000, next)
	}
}
