package certificate

import (
	"context"
	"crypto/x509"
	"net/url"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
)

// Mapper maps certificates by rules. It does not change, so its methods may be
// called at the same time.
type Mapper struct {
	rules []Rule
}

// New makes a Mapper of rules without problems.
func New(config Config) *Mapper { return &Mapper{rules: config.Rules} }

// Authenticate returns the principal of the first rule that a name of the leaf
// matches. The names of one kind are tried in the order of the certificate. The
// error is an *identity.Error: CERTIFICATE_UNMAPPED when no rule matches, when what *
// stands for makes a name out of bounds, or when the leaf is the certificate of a CA,
// and NO_CREDENTIALS without a certificate.
func (m *Mapper) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	if len(given.Certificates) == 0 {
		return identity.Principal{}, &identity.Error{Reason: identity.NoCredentials}
	}
	if isAuthority(given.Certificates[0]) {
		return identity.Principal{}, &identity.Error{Reason: identity.CertificateUnmapped}
	}
	names := readNames(given.Certificates[0])
	for i := range m.rules {
		r := &m.rules[i]
		text, ok := r.matchNames(names)
		if !ok {
			continue
		}
		p := identity.Principal{
			Name: strings.ReplaceAll(r.Name, captured, text), Groups: r.Groups, Roles: r.Roles, How: identity.HowCertificate,
		}
		p.Tenant, p.Tenants = identity.ChooseTenants(r.Tenant, r.Tenants)
		if p.Validate() != nil {
			break
		}
		return p, nil
	}
	return identity.Principal{}, &identity.Error{Reason: identity.CertificateUnmapped}
}

// isAuthority reports whether a certificate may sign others. Such a certificate names a
// CA and no client; SPIFFE demands to refuse it.
func isAuthority(c *x509.Certificate) bool {
	return c.IsCA || c.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0
}

// leafNames are the names of a certificate that rules look at.
type leafNames struct {
	uris, dns []string
	cn        string
}

func readNames(leaf *x509.Certificate) leafNames {
	n := leafNames{cn: leaf.Subject.CommonName}
	for _, u := range leaf.URIs {
		if isPlainURI(u) {
			n.uris = append(n.uris, u.String())
		}
	}
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") { // a name of many hosts is the name of none
			n.dns = append(n.dns, strings.ToLower(name))
		}
	}
	return n
}

// isPlainURI reports whether a URI has only a scheme, a host and a path without
// escapes and without the segments . and .., as SPIFFE requires. Others have spellings
// that rules would have to know.
func isPlainURI(u *url.URL) bool {
	return u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.Opaque == "" && u.EscapedPath() == u.Path &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
}

// matchNames returns the text that * stands for.
func (r *Rule) matchNames(names leafNames) (text string, ok bool) {
	switch {
	case r.URI != "":
		return matchAny(names.uris, func(name string) (string, bool) { return matchPrefix(r.URI, name) })
	case r.DNS != "":
		return matchAny(names.dns, func(name string) (string, bool) { return matchDNS(strings.ToLower(r.DNS), name) })
	case r.CN != "" && names.cn != "":
		return matchPrefix(r.CN, names.cn)
	}
	return "", false
}

func matchAny(names []string, match func(string) (string, bool)) (text string, ok bool) {
	for _, name := range names {
		if text, ok := match(name); ok {
			return text, true
		}
	}
	return "", false
}

// matchPrefix matches a pattern that may end with *.
func matchPrefix(pattern, name string) (text string, ok bool) {
	prefix, isOpen := strings.CutSuffix(pattern, "*")
	if !isOpen {
		return "", name == pattern
	}
	text, ok = strings.CutPrefix(name, prefix)
	return text, ok && text != ""
}

// matchDNS matches a pattern that may begin with the label *.
func matchDNS(pattern, name string) (text string, ok bool) {
	suffix, isOpen := strings.CutPrefix(pattern, "*")
	if !isOpen {
		return "", name == pattern
	}
	text, ok = strings.CutSuffix(name, suffix)
	return text, ok && text != "" && !strings.Contains(text, ".")
}
