package loopback_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/loopback"
)

func TestIsHost(t *testing.T) {
	for _, host := range []string{"localhost", "LocalHost", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"} {
		require.True(t, loopback.IsHost(host), host)
	}
	for _, host := range []string{
		"", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost.", "localhost.example.org", "xlocalhost", "127.0.0.1.example.org",
		"127.1", "2130706433", "0x7f.0.0.1", "localhost:80", "[::1]", "::1%lo",
	} {
		require.False(t, loopback.IsHost(host), host)
	}
}
