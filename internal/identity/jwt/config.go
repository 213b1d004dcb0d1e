// Package jwt verifies JSON Web Tokens of configured issuers.
//
// The keys of an issuer come from a JWKS file, a JWKS URL, or a URL that OpenID
// Connect discovery finds. Only asymmetric algorithms are accepted, and the issuer's
// configuration decides which. Of the header of a token only alg, kid and crit are
// read: keys and addresses in it are ignored. The server fetches keys in the
// background, so that no token makes it fetch more than once in ten seconds.
package jwt

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/loopback"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// MaxSkew bounds how far the clocks of an issuer and of the server may differ.
const MaxSkew = 60 * time.Second

const (
	defaultSkew  = 30 * time.Second
	defaultClaim = "sub"
	maxIssuers   = 100
	maxAudiences = 100
	maxTextBytes = 1 << 10 // of an issuer and of an audience
)

// Config lists the accepted issuers.
type Config struct {
	Issuers []Issuer `yaml:"issuers"`
}

// Issuer says which tokens of one issuer are accepted, and how they name a
// principal. Without JWKSFile and JWKSURL its keys are found by discovery.
type Issuer struct {
	// Issuer is the exact claim iss. For discovery it is a URL.
	Issuer string `yaml:"issuer"`
	// Audiences are the accepted audiences. A token has at least one of them.
	Audiences []string `yaml:"audiences"`
	// Algorithms are the accepted algorithms, by default all asymmetric ones: RS256,
	// RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA.
	Algorithms []string `yaml:"algorithms,omitempty"`
	// JWKSFile is a file with the keys, read again when it changes.
	JWKSFile string `yaml:"jwks_file,omitempty"`
	// JWKSURL is where the keys are fetched from.
	JWKSURL string `yaml:"jwks_url,omitempty"`
	// Skew is the accepted difference of the clocks: 0 to MaxSkew, 0 = 30 seconds.
	Skew time.Duration `yaml:"skew,omitempty"`
	// Claims are the claims with the values of a principal.
	Claims Claims `yaml:"claims,omitempty"`
	// NamePrefix and GroupPrefix precede the names that the issuer gives, so that two
	// issuers can't name the same principal or group.
	NamePrefix  string `yaml:"name_prefix,omitempty"`
	GroupPrefix string `yaml:"group_prefix,omitempty"`
	// Tenant is the tenant of tokens that name none.
	Tenant string `yaml:"tenant,omitempty"`
}

// Claims are paths of claims: names with dots between them, as realm_access.roles. A
// \ before a dot makes the dot part of a name. "" = the value has no claim.
type Claims struct {
	// Name is a text. "" = sub. A token without it is refused.
	Name string `yaml:"name,omitempty"`
	// Groups, Tenants and Roles are lists of texts, or one text.
	Groups  string `yaml:"groups,omitempty"`
	Tenants string `yaml:"tenants,omitempty"`
	Roles   string `yaml:"roles,omitempty"`
	// Tenant is a text. When it or Tenants is configured, a token without a tenant is
	// refused unless the issuer has a Tenant.
	Tenant string `yaml:"tenant,omitempty"`
}

// Parse reads the issuers of a file. The error joins a *file.Error with the line of
// each problem.
func Parse(name string, text []byte) (Config, error) {
	var c Config
	err := file.Decode(name, text, &c)
	return c, err
}

// Problems lists what is wrong with the issuers.
func (c *Config) Problems() []file.Problem {
	var all []file.Problem
	if len(c.Issuers) > maxIssuers {
		all = append(all, file.Problem{
			Path: []any{"issuers"}, Is: fmt.Sprintf("has %d issuers", len(c.Issuers)), Want: fmt.Sprintf("at most %d", maxIssuers),
		})
	}
	seen := make(map[string]bool, len(c.Issuers))
	for i := range c.Issuers {
		one := &c.Issuers[i]
		found := one.findProblems()
		if seen[one.Issuer] {
			found = append(found, file.Problem{Path: []any{"issuer"}, Is: "is listed twice", Want: "one entry with all audiences"})
		}
		seen[one.Issuer] = true
		all = append(all, file.PrefixProblems(found, "issuers", i)...)
	}
	return all
}

func (i *Issuer) findProblems() []file.Problem {
	var all []file.Problem
	add := func(is, want string, path ...any) {
		all = append(all, file.Problem{Path: path, Is: is, Want: want})
	}
	if i.Issuer == "" || len(i.Issuer) > maxTextBytes {
		add("is missing or too long", "the claim iss of the tokens", "issuer")
	} else if i.JWKSFile == "" && i.JWKSURL == "" && !IsSafeURL(i.Issuer) {
		add("can't be used for discovery", WantSafeURL+", or jwks_file or jwks_url", "issuer")
	}
	if i.JWKSFile != "" && i.JWKSURL != "" {
		add("stands beside jwks_file", "one of them", "jwks_url")
	}
	if i.JWKSURL != "" && !IsSafeURL(i.JWKSURL) {
		add("is not a safe URL", WantSafeURL, "jwks_url")
	}
	if len(i.Audiences) == 0 || len(i.Audiences) > maxAudiences {
		add(fmt.Sprintf("has %d audiences", len(i.Audiences)), fmt.Sprintf("1 to %d", maxAudiences), "audiences")
	}
	for n, a := range i.Audiences {
		if a == "" || len(a) > maxTextBytes {
			add("is empty or too long", "a claim aud of the tokens", "audiences", n)
		}
	}
	for n, name := range i.Algorithms {
		if !slices.Contains(asymmetricAlgorithms(), jose.SignatureAlgorithm(name)) {
			add("is not an accepted algorithm", "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA", "algorithms", n)
		}
	}
	if i.Skew < 0 || i.Skew > MaxSkew {
		add("is "+i.Skew.String(), "0s to "+MaxSkew.String(), "skew")
	}
	for field, path := range i.Claims.byField() {
		if path != "" && splitPath(path) == nil {
			add("is not the path of a claim", `names with dots between them, and \. for a dot in a name`, "claims", field)
		}
	}
	for field, name := range map[string]string{"name_prefix": i.NamePrefix, "group_prefix": i.GroupPrefix} {
		if name != "" && identity.CheckName(field, name) != nil {
			add("is not a name", "at most 256 bytes of visible characters", field)
		}
	}
	if i.Tenant != "" && identity.CheckTenants("tenant", []string{i.Tenant}) != nil {
		add("is not a name", tenant.NameRule, "tenant")
	}
	slices.SortStableFunc(all, func(a, b file.Problem) int {
		return strings.Compare(fmt.Sprint(a.Path...), fmt.Sprint(b.Path...))
	})
	return all
}

func (c *Claims) byField() map[string]string {
	return map[string]string{"name": c.Name, "groups": c.Groups, "tenant": c.Tenant, "tenants": c.Tenants, "roles": c.Roles}
}

// acceptedSkew returns the accepted difference of the clocks.
func (i *Issuer) acceptedSkew() time.Duration {
	if i.Skew == 0 {
		return defaultSkew
	}
	return i.Skew
}

// asymmetricAlgorithms lists the algorithms whose verification needs no secret. With
// any other one, who knows the public key could sign.
func asymmetricAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// acceptedAlgorithms returns the accepted algorithms of an issuer.
func (i *Issuer) acceptedAlgorithms() []jose.SignatureAlgorithm {
	if len(i.Algorithms) == 0 {
		return asymmetricAlgorithms()
	}
	all := make([]jose.SignatureAlgorithm, 0, len(i.Algorithms))
	for _, name := range i.Algorithms {
		all = append(all, jose.SignatureAlgorithm(name))
	}
	return all
}

// WantSafeURL says which URLs IsSafeURL accepts.
const WantSafeURL = "an https URL without a user, a query or a fragment, or http on the loopback interface"

// IsSafeURL reports whether keys that come from a URL are those of its host.
func IsSafeURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxTextBytes || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback.IsHost(u.Hostname())
}

// splitPath returns the names of a path, nil when it is not a path.
func splitPath(path string) []string {
	var names []string
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			i++
			b.WriteByte('.')
		case path[i] == '.':
			names = append(names, b.String())
			b.Reset()
		default:
			b.WriteByte(path[i])
		}
	}
	names = append(names, b.String())
	if slices.Contains(names, "") {
		return nil
	}
	return names
}
