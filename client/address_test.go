package client_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/client"
)

// gRPC would call port 443 of a host without a port.
func TestCompleteAddress(t *testing.T) {
	for _, address := range []string{
		"localhost:7700", "127.0.0.1:7700", "[::1]:7700", ":7700", "graphd.internal:https", "dns:///graphd.internal:7700",
		"dns://8.8.8.8/graphd.internal:7700", "dns:graphd.internal:7700", "passthrough:///memory", "unix:/run/graphd.sock",
		"unix:///run/graphd.sock", "unix-abstract:graphd", "vsock:2:7700", "xds:///graphd", "consul://graphd",
	} {
		completed, err := client.CompleteAddress(address)
		require.NoError(t, err)
		require.Equal(t, address, completed)
	}
	for _, address := range []string{
		"localhost", "graphd.internal", "127.0.0.1", "[::1]", "dns:///graphd.internal", "dns://8.8.8.8/graphd.internal", "dns:graphd.internal",
	} {
		completed, err := client.CompleteAddress(address)
		require.NoError(t, err)
		require.Equal(t, address+":7700", completed)
	}
	for address, problem := range map[string]string{
		"": "is empty", "localhost:": "has no port after its colon", "[::1]:": "has no port after its colon",
		"dns:///": "names no host", "dns:": "names no host",
		"::1": "is an IPv6 address without brackets, like [::1]", "a:1:2": "is no host with a port", "a:1,b:2": "is no host with a port",
		"http://localhost:7700": "has http://, which is not that of a server", "grpcs://graphd": "has grpcs://, which is not that of a server",
	} {
		_, err := client.CompleteAddress(address)
		refused, ok := errors.AsType[*client.AddressError](err)
		require.True(t, ok, address)
		require.Equal(t, client.AddressError{Address: address, Reason: problem}, *refused)
	}
}

func TestDialCompletesItsAddress(t *testing.T) {
	c, err := client.Dial("127.0.0.1", grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) {
		return nil, errors.New("called " + address)
	}))
	require.NoError(t, err)
	_, err = c.Questions(t.Context(), "t1")
	require.ErrorContains(t, err, "called 127.0.0.1:7700")
	require.NoError(t, c.Close())
	_, err = client.Dial("http://localhost:7700")
	require.EqualError(t, err, `the address "http://localhost:7700" of the server has http://, which is not that of a server: want HOST:PORT, like localhost:7700`)
}
