package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/certificate"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

const rules = `rules:
- uri: spiffe://example.org/admin
  name: root
  roles: [admin]
- uri: spiffe://example.org/ns/*
  name: worker:$1
  groups: [workers]
  tenant: acme
  roles: [worker]
- uri: spiffe://example.org/ns/special
  name: never reached
- dns: "*.People.example.org"
  name: $1@example.org
  tenants: [acme, b]
- dns: build.example.org
  name: build
- cn: old-*
  name: $1 of $1
- cn: Exact Name
  name: exact
- cn: empty*
  name: empty$1
`

func mapper(t *testing.T, text string) *certificate.Mapper {
	t.Helper()
	config, err := certificate.Parse("rules.yaml", []byte(text), []string{"admin", "worker"})
	require.NoError(t, err)
	return certificate.New(config)
}

func TestRulesMapNames(t *testing.T) {
	worker := func(name string) identity.Principal {
		return identity.Principal{
			Name: name, Groups: []string{"workers"}, Tenant: "acme", Tenants: []string{"acme"}, Roles: []string{"worker"},
			How: identity.HowCertificate,
		}
	}
	named := func(name string) identity.Principal {
		return identity.Principal{Name: name, How: identity.HowCertificate}
	}
	m := mapper(t, rules)
	for name, c := range map[string]struct {
		uris []string
		dns  []string
		cn   string
		want identity.Principal // the zero value says that no rule matches
	}{
		"exact URI":                 {uris: []string{"spiffe://example.org/admin"}, want: identity.Principal{Name: "root", Roles: []string{"admin"}, How: identity.HowCertificate}},
		"last segment":              {uris: []string{"spiffe://example.org/ns/a"}, want: worker("worker:a")},
		"last segments":             {uris: []string{"spiffe://example.org/ns/a/sa/b"}, want: worker("worker:a/sa/b")},
		"first rule wins":           {uris: []string{"spiffe://example.org/ns/special"}, want: worker("worker:special")},
		"rule before order of SANs": {uris: []string{"spiffe://example.org/ns/a", "spiffe://example.org/admin"}, want: identity.Principal{Name: "root", Roles: []string{"admin"}, How: identity.HowCertificate}},
		"longest name":              {uris: []string{"spiffe://example.org/ns/" + strings.Repeat("a", 249)}, want: worker("worker:" + strings.Repeat("a", 249))},
		"name too long":             {uris: []string{"spiffe://example.org/ns/" + strings.Repeat("a", 250)}},
		"no last segment":           {uris: []string{"spiffe://example.org/ns/"}},
		"another host":              {uris: []string{"spiffe://example.org.evil/ns/a"}},
		"another path":              {uris: []string{"spiffe://example.org/nsa/b"}},
		"another scheme":            {uris: []string{"https://example.org/ns/a"}},
		"scheme in capitals":        {uris: []string{"spiffe://EXAMPLE.org/ns/a"}},
		"query":                     {uris: []string{"spiffe://example.org/ns/a?b"}},
		"empty query":               {uris: []string{"spiffe://example.org/admin?"}},
		"fragment":                  {uris: []string{"spiffe://example.org/ns/a#b"}},
		"user":                      {uris: []string{"spiffe://u@example.org/ns/a"}},
		"escaped":                   {uris: []string{"spiffe://example.org/ns/a%2Fb"}},
		"escaped letter":            {uris: []string{"spiffe://example.org/%61dmin"}},
		"up and down again":         {uris: []string{"spiffe://example.org/ns/../admin"}},
		"up at the end":             {uris: []string{"spiffe://example.org/ns/a/.."}},
		"the same segment":          {uris: []string{"spiffe://example.org/./admin"}},
		"dots in a segment":         {uris: []string{"spiffe://example.org/ns/..a"}, want: worker("worker:..a")},
		"DNS":                       {dns: []string{"build.example.org"}, want: named("build")},
		"DNS in capitals":           {dns: []string{"BUILD.example.org"}, want: named("build")},
		"DNS label":                 {dns: []string{"x.example.org", "alice.people.example.org"}, want: identity.Principal{Name: "alice@example.org", Tenant: "acme", Tenants: []string{"acme", "b"}, How: identity.HowCertificate}},
		"two DNS labels":            {dns: []string{"a.b.people.example.org"}},
		"no DNS label":              {dns: []string{".people.example.org", "people.example.org"}},
		"name of many hosts":        {dns: []string{"*.people.example.org"}},
		"DNS with a suffix":         {dns: []string{"build.example.org.evil"}},
		"CN":                        {cn: "Exact Name", want: named("exact")},
		"CN in another case":        {cn: "exact name"},
		"CN beginning":              {cn: "old-x", want: named("x of x")},
		"CN with $1":                {cn: "old-$1", want: named("$1 of $1")},
		"CN without the rest":       {cn: "old-"},
		"CN with ESC":               {cn: "old-\x1b[2J"},
		"CN is no DNS":              {cn: "build.example.org"},
		"DNS is no CN":              {dns: []string{"old-x"}},
		"URI before CN":             {uris: []string{"spiffe://example.org/ns/a"}, cn: "Exact Name", want: worker("worker:a")},
		"no names":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &x509.Certificate{Subject: pkix.Name{CommonName: c.cn}, DNSNames: c.dns}
			for _, text := range c.uris {
				u, err := url.Parse(text)
				require.NoError(t, err)
				leaf.URIs = append(leaf.URIs, u)
			}
			p, err := m.Authenticate(t.Context(), identity.Credentials{Certificates: []*x509.Certificate{leaf}})
			require.Equal(t, c.want, p)
			if c.want.Name != "" {
				require.NoError(t, err)
				return
			}
			requireReason(t, err, identity.CertificateUnmapped)
		})
	}
	_, err := m.Authenticate(t.Context(), identity.Credentials{Token: "eyJ"})
	requireReason(t, err, identity.NoCredentials)
	root := &x509.Certificate{DNSNames: []string{"build.example.org"}}
	_, err = m.Authenticate(t.Context(), identity.Credentials{Certificates: []*x509.Certificate{{}, root}})
	requireReason(t, err, identity.CertificateUnmapped)
}

// Who may sign certificates has no name of a client, whatever stands in its own.
func TestCertificatesOfCAsNameNobody(t *testing.T) {
	m := mapper(t, rules)
	for name, leaf := range map[string]*x509.Certificate{
		"CA":                {IsCA: true, BasicConstraintsValid: true},
		"signs":             {KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign},
		"signs revocations": {KeyUsage: x509.KeyUsageCRLSign},
	} {
		leaf.Subject.CommonName = "Exact Name"
		_, err := m.Authenticate(t.Context(), identity.Credentials{Certificates: []*x509.Certificate{leaf}})
		require.Error(t, err, name)
		requireReason(t, err, identity.CertificateUnmapped)
	}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "Exact Name"}, KeyUsage: x509.KeyUsageDigitalSignature}
	_, err := m.Authenticate(t.Context(), identity.Credentials{Certificates: []*x509.Certificate{leaf}})
	require.NoError(t, err)
}

func requireReason(t *testing.T, err error, want identity.Reason) {
	t.Helper()
	refused, ok := errors.AsType[*identity.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, refused.Reason)
}

func TestWrongRulesAreRefusedWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ rule, want string }{
		"unknown role":        {"cn: a\n  name: a\n  roles: [worker, boss]", "rules.yaml:4: rules[0].roles[1] is no role: want one of admin, worker"},
		"unknown field":       {"email: a\n  name: a", "rules.yaml:2: email is an unknown field: want one of uri, dns, cn, name, groups, tenant, tenants, roles"},
		"no pattern":          {"name: a", "rules.yaml:2: rules[0] has 0 of uri, dns and cn: want exactly one of them"},
		"two patterns":        {"cn: a\n  dns: b\n  name: a", "rules.yaml:2: rules[0] has 2 of uri, dns and cn"},
		"no name":             {"cn: a", "rules.yaml:2: rules[0].name is not a name"},
		"URI without host":    {"uri: spiffe:///a\n  name: a", "rules.yaml:2: rules[0].uri is not a URI with a scheme and a host"},
		"URI without scheme":  {"uri: example.org/a\n  name: a", "rules[0].uri is not a URI"},
		"* for all":           {"uri: \"*\"\n  name: a", "rules[0].uri has a * that is not its last segment"},
		"* for hosts":         {"uri: spiffe://*/a\n  name: a", "rules[0].uri has a * that is not its last segment"},
		"* in a host":         {"uri: spiffe://example.org*\n  name: a", "rules[0].uri has a * that is not its last segment"},
		"* in a segment":      {"uri: spiffe://example.org/a*\n  name: a", "rules[0].uri has a *"},
		"two *":               {"uri: spiffe://example.org/*/*\n  name: a", "rules[0].uri has a *"},
		"URI with a query":    {"uri: spiffe://example.org/a?b\n  name: a", "rules[0].uri has a query"},
		"URI with escapes":    {"uri: spiffe://example.org/%61\n  name: a", "rules[0].uri has a query, a fragment, a user or escapes"},
		"URI up again":        {"uri: spiffe://a/../b\n  name: x", "rules[0].uri has a query, a fragment, a user or escapes, or . or .. as a segment"},
		"* in a label":        {"dns: a*.example.org\n  name: a", "rules[0].dns is not a DNS name"},
		"* alone":             {"dns: \"*\"\n  name: a", "rules[0].dns is not a DNS name"},
		"empty label":         {"dns: a..b\n  name: a", "rules[0].dns is not a DNS name"},
		"odd label":           {"dns: a!b.c\n  name: a", "rules[0].dns is not a DNS name"},
		"* in the middle":     {"cn: a*b\n  name: a", "rules[0].cn has a * that is not at its end"},
		"$1 without *":        {"cn: a\n  name: b$1", "rules.yaml:3: rules[0].name uses $1, and the pattern has no *"},
		"$2":                  {"cn: a*\n  name: b$2", "rules.yaml:3: rules[0].name has a $ without 1 behind it"},
		"empty group":         {"cn: a\n  name: b\n  groups: [\"\"]", "rules.yaml:4: rules[0].groups has too many or wrong names"},
		"tenant not in list":  {"cn: a\n  name: b\n  tenant: c\n  tenants: [d]", "rules.yaml:4: rules[0].tenant is not among the tenants"},
		"tenant with an @":    {"cn: a\n  name: b\n  tenant: c@d", "rules.yaml:4: rules[0].tenant is not a name: want 1 to 64"},
		"tenants with an @":   {"cn: a\n  name: b\n  tenants: [c@d]", "rules.yaml:4: rules[0].tenants has too many or wrong names"},
		"tenant of two lines": {"cn: a\n  name: b\n  tenant: \"c\\nd\"", "rules.yaml:4: rules[0].tenant is not a name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := certificate.Parse("rules.yaml", []byte("rules:\n- "+c.rule+"\n"), []string{"admin", "worker"})
			require.ErrorContains(t, err, c.want)
			_, ok := errors.AsType[*file.Error](err)
			require.True(t, ok)
		})
	}
	many := certificate.Config{Rules: make([]certificate.Rule, certificate.MaxRules+1)}
	require.Len(t, many.Problems(), 1)
}

// An authority signs certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

func (a *authority) issue(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, DNSNames: []string{"build.example.org"},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Certificates that TLS does not verify never become credentials.
func TestCertificatesBehindTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	server := ours.issue(t, func(*x509.Certificate) {})
	m := mapper(t, rules)
	for name, c := range map[string]struct {
		signer  *authority
		change  func(*x509.Certificate)
		refused bool // by TLS
		want    string
	}{
		"good":              {ours, func(*x509.Certificate) {}, false, "build"},
		"another CA":        {others, func(*x509.Certificate) {}, true, ""},
		"expired":           {ours, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, true, ""},
		"not yet valid":     {ours, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }, true, ""},
		"not for clients":   {ours, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, true, ""},
		"without SAN or CN": {ours, func(c *x509.Certificate) { c.DNSNames = nil }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			client := tls.Client(a, &tls.Config{
				RootCAs: pool, ServerName: "build.example.org", Certificates: []tls.Certificate{c.signer.issue(t, c.change)},
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = client.Handshake()
				_, _ = client.Read(make([]byte, 1)) // the refusal of the server
			}()
			conn := tls.Server(b, &tls.Config{
				Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
			})
			err := conn.HandshakeContext(t.Context())
			defer func() {
				_ = b.Close()
				<-done
			}()
			if c.refused {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			p, err := m.Authenticate(t.Context(), identity.Credentials{Certificates: conn.ConnectionState().VerifiedChains[0]})
			require.Equal(t, c.want, p.Name)
			if c.want == "" {
				requireReason(t, err, identity.CertificateUnmapped)
			}
		})
	}
}
