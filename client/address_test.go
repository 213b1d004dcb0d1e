package client_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/client"
)

func TestCheckAddress(t *testing.T) {
	for _, address := range []string{
		"localhost:7700", "127.0.0.1:7700", "[::1]:7700", ":7700", "graphd.internal:https", "dns:///graphd.internal:7700",
		"dns://8.8.8.8/graphd.internal:7700", "dns:graphd.internal:7700", "passthrough:///memory", "unix:/run/graphd.sock",
		"unix:///run/graphd.sock", "unix-abstract:graphd", "vsock:2:7700", "xds:///graphd", "consul://graphd",
	} {
		require.NoError(t, client.CheckAddress(address), address)
	}
	for address, problem := range map[string]string{
		"": "is empty", "localhost": "names no port", "graphd.internal": "names no port", "127.0.0.1": "names no port",
		"localhost:": "names no port", "[::1]": "names no port", "[::1]:": "names no port", "dns:///graphd.internal": "names no port",
		"dns:graphd.internal": "names no port", "dns:///": "names no host",
		"::1": "is an IPv6 address without brackets and port, like [::1]:7700", "a:1:2": "is no host with a port", "a:1,b:2": "is no host with a port",
		"http://localhost:7700": "has http://, which is not that of a server", "grpcs://graphd": "has grpcs://, which is not that of a server",
	} {
		refused, ok := errors.AsType[*client.AddressError](client.CheckAddress(address))
		require.True(t, ok, address)
		require.Equal(t, client.AddressError{Address: address, Reason: problem}, *refused)
	}
}

// gRPC would dial port 443 of a host without a port.
func TestDialRefusesAddressesWithoutAPort(t *testing.T) {
	for _, address := range []string{"localhost", "dns:///graphd.internal", "http://localhost:7700", ""} {
		_, err := client.Dial(address)
		refused, ok := errors.AsType[*client.AddressError](err)
		require.True(t, ok, "%q: %v", address, err)
		require.Equal(t, address, refused.Address)
		require.ErrorContains(t, err, "want HOST:PORT, like localhost:7700")
	}
}
