package certificate_test

import (
	"crypto/x509"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity/certificate"
)

func TestPatterns(t *testing.T) {
	for _, text := range []string{"", "proxy", "dns:", "ip:10.0.0.1", "dns:a b", "dns:a.*", "uri:a", "uri:spiffe://a/*/b", "cn:*a", "https://proxy"} {
		_, err := certificate.ParsePattern(text)
		wrong, ok := errors.AsType[*certificate.PatternError](err)
		require.True(t, ok, text)
		require.NotEmpty(t, wrong.Is+wrong.Want, text)
	}
	at, err := url.Parse("spiffe://example.org/ns/proxy")
	require.NoError(t, err)
	leaf := &x509.Certificate{DNSNames: []string{"Proxy.Example.Org", "*.wild.example.org"}, URIs: []*url.URL{at}}
	leaf.Subject.CommonName = "proxy-1"
	for text, want := range map[string]bool{
		"dns:proxy.example.org": true, "dns:*.example.org": true, "uri:spiffe://example.org/ns/*": true, "cn:proxy-*": true,
		"dns:example.org": false, "dns:*.wild.example.org": false, "uri:spiffe://example.org/ns": false, "cn:proxy": false,
	} {
		p, err := certificate.ParsePattern(text)
		require.NoError(t, err, text)
		require.Equal(t, want, p.MatchesChain([]*x509.Certificate{leaf}), text)
		require.False(t, p.MatchesChain(nil), text)
	}
}
