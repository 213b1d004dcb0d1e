// Package proxy takes the word of a trusted proxy for who calls: the proxy knows the person
// and names it in a header of each request. The word counts on connections with the
// certificate of the proxy alone.
package proxy

import (
	"context"
	"crypto/x509"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
)

// Options say which proxy is trusted.
type Options struct {
	// UserHeader names the caller. GroupsHeader lists its groups, with commas between them;
	// "" = it has none.
	UserHeader   string
	GroupsHeader string
	// Certificate is that of the proxy.
	Certificate certificate.Pattern
}

// Trusted takes the word of a trusted proxy. Its methods may be called at the same time.
type Trusted struct {
	opts Options
}

// New makes a Trusted.
func New(o Options) *Trusted { return &Trusted{o} }

// IsProxy reports whether a verified chain is that of the proxy.
func (t *Trusted) IsProxy(chain []*x509.Certificate) bool {
	return t.opts.Certificate.MatchesChain(chain)
}

// Authenticate returns the principal that the headers of the proxy name. The error is an
// *identity.Error: PROXY_UNTRUSTED when they are not those of the proxy, and
// PROXY_HEADER_INVALID when they name no principal.
func (t *Trusted) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	if given.Relayed == nil {
		return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
	}
	users, groups := given.Relayed.Users, given.Relayed.Groups
	if !t.IsProxy(given.Certificates) {
		named := t.opts.UserHeader
		if len(users) == 0 {
			named = t.opts.GroupsHeader
		}
		return identity.Principal{}, &identity.Error{Reason: identity.ProxyUntrusted, Field: named}
	}
	if len(users) != 1 || countBytes(users, groups) > identity.MaxForwardedBytes {
		return identity.Principal{}, &identity.Error{Reason: identity.ProxyHeaderInvalid, Field: t.opts.UserHeader}
	}
	p := identity.Principal{Name: strings.TrimSpace(users[0]), How: identity.HowProxy}
	for _, value := range groups {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				p.Groups = append(p.Groups, name)
			}
		}
	}
	if identity.CheckName("name", p.Name) != nil {
		return identity.Principal{}, &identity.Error{Reason: identity.ProxyHeaderInvalid, Field: t.opts.UserHeader}
	}
	if p.Validate() != nil {
		return identity.Principal{}, &identity.Error{Reason: identity.ProxyHeaderInvalid, Field: t.opts.GroupsHeader}
	}
	return p, nil
}

func countBytes(lists ...[]string) (n int) {
	for _, list := range lists {
		for _, value := range list {
			n += len(value)
		}
	}
	return n
}
