package transport_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/transport"
)

// lifetime ends when a test says so.
type lifetime struct {
	end  chan struct{}
	left chan error // why the caller waits no longer
}

func (l *lifetime) WaitForEnd(ctx context.Context) (err error) {
	defer func() { l.left <- err }()
	select {
	case <-l.end:
		return &identity.Error{Reason: identity.SessionExpired}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Authenticate knows ana as long as the lifetime.
func (l *lifetime) Authenticate(context.Context, identity.Credentials) (identity.Principal, error) {
	return identity.Principal{Name: "ana", How: identity.HowSession, Lifetime: l}, nil
}

func TestStreamsEndWithTheirCredential(t *testing.T) {
	l := &lifetime{end: make(chan struct{}), left: make(chan error, 2)}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Authenticator = l })
	_, err := c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Empty(t, l.left, "a unary call waits for no end")

	ctx, cancel := context.WithCancel(t.Context())
	first, err := c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = first.Header()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-l.left, context.Canceled, "who leaves first")

	stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	close(l.end)
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	require.Equal(t, "SESSION_EXPIRED", requireErrorInfo(t, err).GetReason())
}
