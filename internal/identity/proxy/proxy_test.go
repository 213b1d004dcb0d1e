package proxy_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
	"github.com/graphd-dev/graphd/internal/identity/proxy"
)

func chain(dns string) []*x509.Certificate {
	return []*x509.Certificate{{DNSNames: []string{dns}, Subject: pkix.Name{CommonName: "proxy.example.org"}}}
}

func TestTheWordOfTheProxy(t *testing.T) {
	pattern, err := certificate.ParsePattern("dns:*.proxies.example.org")
	require.NoError(t, err)
	p := proxy.New(proxy.Options{UserHeader: "X-User", GroupsHeader: "X-Groups", Certificate: pattern})
	own := chain("a.proxies.example.org")
	authority := chain("a.proxies.example.org")
	authority[0].IsCA = true
	for name, c := range map[string]struct {
		from          []*x509.Certificate
		users, groups []string
		reason        identity.Reason // "" = accepted
		field         string
		want          []string // groups
	}{
		"a name":               {own, []string{"ana"}, nil, "", "", nil},
		"groups":               {own, []string{" ana "}, []string{"a, b", "c,,"}, "", "", []string{"a", "b", "c"}},
		"another certificate":  {chain("a.example.org"), []string{"ana"}, nil, identity.ProxyUntrusted, "X-User", nil},
		"its common name":      {chain("proxy.example.org"), []string{"ana"}, nil, identity.ProxyUntrusted, "X-User", nil},
		"a CA":                 {authority, []string{"ana"}, nil, identity.ProxyUntrusted, "X-User", nil},
		"no certificate":       {nil, []string{"ana"}, nil, identity.ProxyUntrusted, "X-User", nil},
		"groups of a stranger": {nil, nil, []string{"admins"}, identity.ProxyUntrusted, "X-Groups", nil},
		"groups alone":         {own, nil, []string{"a"}, identity.ProxyHeaderInvalid, "X-User", nil},
		"two names":            {own, []string{"ana", "ben"}, nil, identity.ProxyHeaderInvalid, "X-User", nil},
		"no name":              {own, []string{""}, nil, identity.ProxyHeaderInvalid, "X-User", nil},
		"a long name":          {own, []string{strings.Repeat("a", 257)}, nil, identity.ProxyHeaderInvalid, "X-User", nil},
		"an invisible name":    {own, []string{"a\u202eb"}, nil, identity.ProxyHeaderInvalid, "X-User", nil},
		"no UTF-8":             {own, []string{"a\xff"}, nil, identity.ProxyHeaderInvalid, "X-User", nil},
		"too many groups":      {own, []string{"ana"}, []string{strings.Repeat("g,", 257)}, identity.ProxyHeaderInvalid, "X-Groups", nil},
		"too many bytes":       {own, []string{"ana"}, slices.Repeat([]string{strings.Repeat("g", 200)}, 50), identity.ProxyHeaderInvalid, "X-User", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Authenticate(t.Context(), identity.Credentials{Certificates: c.from, Relayed: &identity.Relayed{Users: c.users, Groups: c.groups}})
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, identity.Principal{Name: "ana", Groups: c.want, How: identity.HowProxy}, got)
				return
			}
			refused, ok := errors.AsType[*identity.Error](err)
			require.True(t, ok)
			require.Equal(t, identity.Error{Reason: c.reason, Field: c.field}, *refused)
			require.NotContains(t, err.Error(), "ana")
		})
	}
	_, err = p.Authenticate(t.Context(), identity.Credentials{Certificates: own})
	require.Equal(t, &identity.Error{Reason: identity.NoCredentials}, err, "over gRPC")
}
