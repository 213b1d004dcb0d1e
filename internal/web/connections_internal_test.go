package web

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// A client that takes the address of another one, whose last request has not ended, gets no part of
// its connection: calls are made with the certificate of the connection.
func TestConnectionsOfOneAddressAreKeptApart(t *testing.T) {
	c := &connections{listener: NewListener(), maxMessageBytes: 1, open: map[net.Conn]*connection{}}
	connect := func(state *tls.ConnectionState) (net.Conn, *http.Request) {
		conn, other := net.Pipe() // all pipes have one address
		t.Cleanup(func() {
			require.NoError(t, conn.Close())
			require.NoError(t, other.Close())
		})
		r := httptest.NewRequestWithContext(c.addConnection(t.Context(), conn), http.MethodPost, "/", http.NoBody)
		r.TLS = state
		c.trackState(conn, http.StateNew)
		return conn, r
	}
	first, byFirst := connect(&tls.ConnectionState{ServerName: "first"})
	second, bySecond := connect(nil)
	callsOfFirst, err := c.openConnection(byFirst)
	require.NoError(t, err)
	callsOfSecond, err := c.openConnection(bySecond)
	require.NoError(t, err)
	require.NotSame(t, callsOfFirst, callsOfSecond)
	again, err := c.openConnection(byFirst)
	require.NoError(t, err)
	require.Same(t, callsOfFirst, again)

	c.trackState(first, http.StateClosed)
	_, err = c.openConnection(byFirst)
	require.ErrorIs(t, err, errConnectionClosed)
	again, err = c.openConnection(bySecond)
	require.NoError(t, err)
	require.Same(t, callsOfSecond, again)

	c.trackState(second, http.StateClosed)
	for _, calls := range []grpc.ClientConnInterface{callsOfFirst, callsOfSecond} {
		conn, ok := calls.(*grpc.ClientConn)
		require.True(t, ok)
		require.Equal(t, connectivity.Shutdown, conn.GetState())
	}
	require.Empty(t, c.open)
}
