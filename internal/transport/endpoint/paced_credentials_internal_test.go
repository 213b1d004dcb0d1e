package endpoint

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
)

// The pauses after connections that end at once grow; a connection that lasts is
// followed by another at once.
func TestConnectionsThatEndEarlyAreFollowedByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPacedCredentials(insecure.NewCredentials())
		connect := func() net.Conn {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			conn, _, err := c.Clone().ClientHandshake(t.Context(), "a", ours)
			require.NoError(t, err)
			return conn
		}
		began, made := time.Now(), 0
		for ; time.Since(began) < time.Minute; made++ {
			conn := connect()
			require.NoError(t, conn.Close())
			require.NoError(t, conn.Close())
		}
		require.InDelta(t, 18, made, 2)
		conn := connect()
		<-time.NewTimer(shortLifetime).C
		_ = conn.Close()
		began = time.Now()
		connect()
		require.Zero(t, time.Since(began))
	})
}
