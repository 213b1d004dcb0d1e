package tlsalert_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/tlsalert"
)

// endedConn is a connection that the other side has ended.
type endedConn struct {
	net.Conn

	end   error
	reads int
}

// Read returns the end.
func (c *endedConn) Read([]byte) (int, error) {
	c.reads++
	return 0, c.end
}

func newAlert() error {
	return &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}
}

func TestAlertsAreFound(t *testing.T) {
	text, ok := tlsalert.Describe(fmt.Errorf("handshake: %w", newAlert()))
	require.True(t, ok)
	require.Equal(t, "tls: bad certificate", text)
	for _, other := range []error{nil, errors.New("tls: bad certificate"), &net.OpError{Op: "local error", Err: errors.New("tls: bad certificate")}} {
		_, ok := tlsalert.Describe(other)
		require.False(t, ok, other)
	}
}

func TestAlertsOfBrokenConnectionsAreRead(t *testing.T) {
	broken := &net.OpError{Op: "write", Err: os.ErrClosed}
	require.Equal(t, newAlert(), tlsalert.ReadUnread(&endedConn{end: newAlert()}, broken))
	require.NoError(t, tlsalert.ReadUnread(&endedConn{end: net.ErrClosed}, broken), "no alert came")
	for name, failed := range map[string]error{
		"the write has not failed": nil, "the connection lives": errors.New("too large"),
		"reading would wait": &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded},
	} {
		conn := &endedConn{end: newAlert()}
		require.NoError(t, tlsalert.ReadUnread(conn, failed), name)
		require.Zero(t, conn.reads, name)
	}
}
