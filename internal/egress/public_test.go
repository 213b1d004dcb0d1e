package egress_test

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/egress"
)

// A name that no pattern allows leads to public addresses only, whatever its resolver says.
func TestNamesLeadToPublicAddresses(t *testing.T) {
	for address, isAllowed := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "fd00::1": false,
		"169.254.169.254": false, "fe80::1": false, "0.0.0.0": false, "::": false, "100.64.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "198.18.0.1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		_, check, err := newPolicy(t).AdmitHost("--webhook-allow", "hooks.example.com:443")
		require.NoError(t, err)
		err = check("tcp", net.JoinHostPort(address, "443"))
		if isAllowed {
			require.NoError(t, err, address)
			continue
		}
		_, isRefused := errors.AsType[*egress.RefusalError](err)
		require.True(t, isRefused, address)
	}
}

func TestPatternsAllowAddressesThatAreNotPublic(t *testing.T) {
	p := newPolicy(t, "hooks.internal:8080", "10.0.0.0/8:443")
	isListed, check, err := p.AdmitHost("--webhook-allow", "hooks.internal:8080")
	require.NoError(t, err)
	require.True(t, isListed)
	require.NoError(t, check("tcp", "192.168.1.1:8080"))
	require.Error(t, check("tcp", "169.254.169.254:8080"), "a name lists no reserved address")
	require.Error(t, check("tcp", "192.168.1.1:22"), "another port")

	isListed, check, err = p.AdmitHost("--webhook-allow", "hooks.example.com:443")
	require.NoError(t, err)
	require.False(t, isListed)
	require.NoError(t, check("tcp", "10.1.2.3:443"))
	require.ErrorContains(t, check("tcp", "192.168.1.1:443"), "--webhook-allow 192.168.1.1:443")

	_, _, err = p.AdmitHost("--webhook-allow", "127.0.0.1:443")
	require.EqualError(t, err, `endpoint "127.0.0.1:443" leads to "127.0.0.1:443", which is not allowed; `+
		`the server would allow it with --webhook-allow 127.0.0.1:443`)
	_, _, err = p.AdmitHost("--webhook-allow", "2130706433:443")
	_, isForm := errors.AsType[*egress.FormError](err)
	require.True(t, isForm)
}
