package identity_test

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/identity"
)

func TestPrincipalsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*identity.Principal)
		field  string // "" = valid
	}{
		"all values":          {func(*identity.Principal) {}, ""},
		"only a name":         {func(p *identity.Principal) { *p = identity.Principal{Name: "a", How: identity.HowNone} }, ""},
		"longest name":        {func(p *identity.Principal) { p.Name = strings.Repeat("a", 256) }, ""},
		"no name":             {func(p *identity.Principal) { p.Name = "" }, "name"},
		"name too long":       {func(p *identity.Principal) { p.Name = strings.Repeat("a", 257) }, "name"},
		"name of two lines":   {func(p *identity.Principal) { p.Name = "a\nb" }, "name"},
		"name with ESC":       {func(p *identity.Principal) { p.Name = "a\x1b[2J" }, "name"},
		"name reordered":      {func(p *identity.Principal) { p.Name = "a\u202eb" }, "name"},
		"name not UTF-8":      {func(p *identity.Principal) { p.Name = "a\xff" }, "name"},
		"name with U+FFFD":    {func(p *identity.Principal) { p.Name = "a\ufffd" }, "name"},
		"most groups":         {func(p *identity.Principal) { p.Groups = slices.Repeat([]string{"g"}, 256) }, ""},
		"too many groups":     {func(p *identity.Principal) { p.Groups = slices.Repeat([]string{"g"}, 257) }, "groups"},
		"group too long":      {func(p *identity.Principal) { p.Groups = []string{strings.Repeat("g", 257)} }, "groups"},
		"empty group":         {func(p *identity.Principal) { p.Groups = []string{""} }, "groups"},
		"role too long":       {func(p *identity.Principal) { p.Roles = []string{strings.Repeat("r", 257)} }, "roles"},
		"too many tenants":    {func(p *identity.Principal) { p.Tenants = slices.Repeat([]string{"acme"}, 257) }, "tenants"},
		"wrong tenant":        {func(p *identity.Principal) { p.Tenants = []string{"acme", "a b"} }, "tenants"},
		"tenant with an @":    {func(p *identity.Principal) { p.Tenants = []string{"acme", "a@b"} }, "tenants"},
		"long tenant":         {func(p *identity.Principal) { p.Tenants = []string{"acme", strings.Repeat("t", 65)} }, "tenants"},
		"tenant of no list":   {func(p *identity.Principal) { p.Tenants = nil }, "tenant"},
		"tenant of another":   {func(p *identity.Principal) { p.Tenant = "other" }, "tenant"},
		"tenants, no default": {func(p *identity.Principal) { p.Tenant = "" }, "tenant"},
		"unknown kind":        {func(p *identity.Principal) { p.How = "" }, "how"},
	} {
		t.Run(name, func(t *testing.T) {
			p := identity.Principal{
				Name: "alice", Groups: []string{"g"}, Tenant: "acme", Tenants: []string{"acme", "b"},
				Roles: []string{"viewer"}, How: identity.HowJWT,
			}
			c.change(&p)
			err := p.Validate()
			if c.field == "" {
				require.NoError(t, err)
				return
			}
			wrong, ok := errors.AsType[*identity.PrincipalError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.field, wrong.Field)
			require.NotEmpty(t, wrong.Want)
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func TestTenantsBelongTogether(t *testing.T) {
	for _, c := range []struct {
		tenant  string
		tenants []string
		chosen  string
		all     []string
	}{
		{"", nil, "", nil},
		{"a", nil, "a", []string{"a"}},
		{"", []string{"b", "a"}, "b", []string{"b", "a"}},
		{"a", []string{"b", "a"}, "a", []string{"b", "a"}},
	} {
		chosen, all := identity.ChooseTenants(c.tenant, c.tenants)
		require.Equal(t, c.chosen, chosen)
		require.Equal(t, c.all, all)
	}
}

func TestEachReasonHasASentence(t *testing.T) {
	seen := make(map[string]bool)
	for _, reason := range []identity.Reason{
		identity.TokenExpired, identity.TokenNotYetValid, identity.TokenAudience, identity.TokenIssuer, identity.TokenAlgorithm,
		identity.TokenSignature, identity.TokenMalformed, identity.TokenTooLarge, identity.TokenRevoked, identity.TokenClaim,
		identity.TokenUnknown, identity.TokenInvalid, identity.KeysUnavailable, identity.CertificateUnmapped, identity.SessionExpired,
		identity.SessionInvalid, identity.ProxyUntrusted, identity.ProxyHeaderInvalid, identity.NoCredentials, "OTHER",
	} {
		err := &identity.Error{Reason: reason}
		require.False(t, seen[err.Error()], reason)
		seen[err.Error()] = true
		require.Equal(t, reason == identity.KeysUnavailable, err.IsTemporary())
		require.Equal(t, err.Error()+" (exp)", (&identity.Error{Reason: reason, Field: "exp"}).Error())
	}
}

// answer authenticates as a test says, and keeps what it was asked.
type answer struct {
	name   string // "" = refused
	reason identity.Reason
	asked  []identity.Credentials
}

func (a *answer) Authenticate(_ context.Context, given identity.Credentials) (identity.Principal, error) {
	a.asked = append(a.asked, given)
	if a.name == "" {
		return identity.Principal{}, &identity.Error{Reason: a.reason}
	}
	return identity.Principal{Name: a.name}, nil
}

func TestChain(t *testing.T) {
	certificates := []*x509.Certificate{{}}
	worker, alice, key := answer{name: "worker"}, answer{name: "alice"}, answer{name: "key"}
	unmapped := answer{reason: identity.CertificateUnmapped}
	expired, revoked := answer{reason: identity.TokenExpired}, answer{reason: identity.TokenRevoked}
	for name, c := range map[string]struct {
		certificate, apiKey, jwt *answer // nil = not accepted
		given                    identity.Credentials
		want                     string
		reason                   identity.Reason
	}{
		"nothing":                       {&worker, &key, &alice, identity.Credentials{}, "", identity.NoCredentials},
		"certificate":                   {&worker, &key, &alice, identity.Credentials{Certificates: certificates}, "worker", ""},
		"JWT":                           {&worker, &key, &alice, identity.Credentials{Token: "eyJ"}, "alice", ""},
		"API key":                       {&worker, &key, &alice, identity.Credentials{Token: "gk_1"}, "key", ""},
		"prefix in another case":        {&worker, &key, &expired, identity.Credentials{Token: "GK_1"}, "", identity.TokenExpired},
		"certificate before JWT":        {&worker, &key, &alice, identity.Credentials{Certificates: certificates, Token: "eyJ"}, "worker", ""},
		"good certificate, bad JWT":     {&worker, &key, &expired, identity.Credentials{Certificates: certificates, Token: "eyJ"}, "", identity.TokenExpired},
		"good certificate, bad key":     {&worker, &revoked, &alice, identity.Credentials{Certificates: certificates, Token: "gk_"}, "", identity.TokenRevoked},
		"good certificate, no JWTs":     {&worker, &key, nil, identity.Credentials{Certificates: certificates, Token: "eyJ"}, "", identity.TokenIssuer},
		"good certificate, long token":  {&worker, &key, &alice, identity.Credentials{Certificates: certificates, Token: strings.Repeat("e", 16<<10+1)}, "", identity.TokenTooLarge},
		"unmapped certificate":          {&unmapped, &key, &alice, identity.Credentials{Certificates: certificates}, "", identity.CertificateUnmapped},
		"unmapped certificate, JWT":     {&unmapped, &key, &alice, identity.Credentials{Certificates: certificates, Token: "eyJ"}, "alice", ""},
		"unmapped certificate, bad JWT": {&unmapped, &key, &expired, identity.Credentials{Certificates: certificates, Token: "eyJ"}, "", identity.TokenExpired},
		"certificate without rules":     {nil, &key, &alice, identity.Credentials{Certificates: certificates}, "", identity.NoCredentials},
		"API key without keys":          {&worker, nil, &alice, identity.Credentials{Token: "gk_1"}, "", identity.TokenUnknown},
		"JWT without issuers":           {&worker, &key, nil, identity.Credentials{Token: "eyJ"}, "", identity.TokenIssuer},
		"longest token":                 {nil, nil, &alice, identity.Credentials{Token: strings.Repeat("e", 16<<10)}, "alice", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var chain identity.Chain
			if c.certificate != nil {
				chain.Certificates = c.certificate
			}
			if c.apiKey != nil {
				chain.APIKeys = c.apiKey
			}
			if c.jwt != nil {
				chain.JWTs = c.jwt
			}
			p, err := chain.Authenticate(t.Context(), c.given)
			require.Equal(t, c.want, p.Name)
			if c.reason == "" {
				require.NoError(t, err)
				return
			}
			refused, ok := errors.AsType[*identity.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.reason, refused.Reason)
		})
	}
	for _, a := range []*answer{&worker, &unmapped, &alice, &key} {
		for _, asked := range a.asked { // each sees only its own credentials
			require.Equal(t, a == &worker || a == &unmapped, asked.Certificates != nil)
			require.Equal(t, a == &alice || a == &key, asked.Token != "")
		}
	}
}

// proxy is a trusted proxy whose certificate has the common name proxy.
type proxy struct{ answer }

func (*proxy) IsProxy(chain []*x509.Certificate) bool {
	return len(chain) > 0 && chain[0].Subject.CommonName == "proxy"
}

func TestChainOfCallsOverHTTP(t *testing.T) {
	client, front := []*x509.Certificate{{}}, []*x509.Certificate{{}}
	front[0].Subject.CommonName = "proxy"
	worker, alice, ana := answer{name: "worker"}, answer{name: "alice"}, answer{name: "ana"}
	unmapped, expired := answer{reason: identity.CertificateUnmapped}, answer{reason: identity.TokenExpired}
	ended, untrusted := answer{reason: identity.SessionExpired}, proxy{answer{reason: identity.ProxyUntrusted}}
	forwards := proxy{answer{name: "ben"}}
	session := &identity.Relayed{Sessions: []string{"s"}}
	forwarded := &identity.Relayed{Sessions: []string{"s"}, Users: []string{"ben"}}
	groups := &identity.Relayed{Groups: []string{"admins"}}
	for name, c := range map[string]struct {
		certificate, jwt, session *answer
		proxy                     *proxy
		given                     identity.Credentials
		want                      string
		reason                    identity.Reason
	}{
		"session":                         {&worker, &alice, &ana, nil, identity.Credentials{Relayed: session}, "ana", ""},
		"ended session":                   {&worker, &alice, &ended, nil, identity.Credentials{Relayed: session}, "", identity.SessionExpired},
		"sessions are not accepted":       {&worker, &alice, nil, nil, identity.Credentials{Relayed: session}, "", identity.SessionInvalid},
		"no session":                      {&worker, &alice, &ana, nil, identity.Credentials{Relayed: &identity.Relayed{}}, "", identity.NoCredentials},
		"token before session":            {&worker, &alice, &ended, nil, identity.Credentials{Relayed: session, Token: "eyJ"}, "alice", ""},
		"bad token, good session":         {&worker, &expired, &ana, nil, identity.Credentials{Relayed: session, Token: "eyJ"}, "", identity.TokenExpired},
		"certificate before session":      {&worker, &alice, &ended, nil, identity.Credentials{Relayed: session, Certificates: client}, "worker", ""},
		"unmapped certificate, session":   {&unmapped, &alice, &ana, nil, identity.Credentials{Relayed: session, Certificates: client}, "ana", ""},
		"forwarded":                       {&worker, &alice, &ended, &forwards, identity.Credentials{Relayed: forwarded, Certificates: front}, "ben", ""},
		"forwarded beside a token":        {&worker, &alice, &ended, &forwards, identity.Credentials{Relayed: forwarded, Certificates: front, Token: "eyJ"}, "ben", ""},
		"forwarded beside a bad token":    {&worker, &expired, &ana, &forwards, identity.Credentials{Relayed: forwarded, Certificates: front, Token: "eyJ"}, "", identity.TokenExpired},
		"header of a stranger":            {&worker, &alice, &ana, &untrusted, identity.Credentials{Relayed: forwarded, Certificates: client, Token: "eyJ"}, "", identity.ProxyUntrusted},
		"groups of a stranger":            {&worker, &alice, &ana, &untrusted, identity.Credentials{Relayed: groups, Certificates: client, Token: "eyJ"}, "", identity.ProxyUntrusted},
		"proxy that names nobody":         {&worker, &alice, &ana, &forwards, identity.Credentials{Relayed: &identity.Relayed{}, Certificates: front}, "", identity.NoCredentials},
		"session through the proxy":       {&worker, &alice, &ana, &forwards, identity.Credentials{Relayed: session, Certificates: front}, "ana", ""},
		"certificate of another":          {&worker, &alice, &ana, &forwards, identity.Credentials{Relayed: session, Certificates: client}, "worker", ""},
		"proxy over gRPC":                 {&worker, &alice, &ana, &forwards, identity.Credentials{Certificates: front}, "worker", ""},
		"headers where no proxy is known": {&worker, &alice, &ana, nil, identity.Credentials{Relayed: &identity.Relayed{Users: []string{"ben"}}}, "", identity.NoCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			chain := identity.Chain{Certificates: c.certificate, JWTs: c.jwt}
			if c.session != nil {
				chain.Sessions = c.session
			}
			if c.proxy != nil {
				chain.Proxies = c.proxy
			}
			p, err := chain.Authenticate(t.Context(), c.given)
			require.Equal(t, c.want, p.Name)
			if c.reason == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, &identity.Error{Reason: c.reason}, err)
		})
	}
}
