package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/egress"
)

// The target of an endpoint is its own canonical form, gRPC's reader of URLs finds
// in it what the policy has compared, and no endpoint without a listed address
// leads to a link-local one.
func FuzzCanonicalForm(f *testing.F) {
	for _, seed := range []string{
		"pricing:443", "dns:///a.b.:1", "[::ffff:169.254.169.254]:80", "fe80::1%25eth0", "unix:///run/x", "unix-abstract:x", "passthrough:///a:1",
		"dns://1.2.3.4/x", "0x7f.1", "2852039166", ":80", "xds:///x", "[fe80::1%e%25]:1", "64:ff9b::169.254.1.1",
	} {
		f.Add(seed)
	}
	policy, err := egress.NewPolicy([]string{"*", "passthrough:///*"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, endpoint string) {
		target, check, err := policy.AdmitEndpoint(endpoint)
		refused, isRefused := errors.AsType[*egress.RefusalError](err)
		switch _, isForm := errors.AsType[*egress.FormError](err); {
		case isForm:
			return
		case isRefused:
			narrow, err := egress.NewPolicy([]string{refused.Pattern})
			require.NoError(t, err, "the pattern of the error")
			target, _, err = narrow.AdmitEndpoint(endpoint)
			require.NoError(t, err, "the pattern of the error")
			again, _, err := narrow.AdmitEndpoint(target)
			require.NoError(t, err)
			require.Equal(t, target, again)
			return
		}
		require.NoError(t, err)
		again, _, err := policy.AdmitEndpoint(target)
		require.NoError(t, err)
		require.Equal(t, target, again)
		parsed, err := url.Parse(target)
		require.NoError(t, err)
		hostPort := strings.TrimPrefix(parsed.Path, "/")
		if to, err := netip.ParseAddrPort(hostPort); err == nil {
			require.False(t, to.Addr().Unmap().IsLinkLocalUnicast(), target)
			require.NoError(t, check("tcp", hostPort))
		}
		require.Error(t, check("tcp", "169.254.169.254:80"))
	})
}
