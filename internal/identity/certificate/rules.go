// Package certificate maps verified client certificates to principals, by rules.
//
// TLS verifies the chain, the times and the use of a certificate. This package only
// reads the names in the leaf.
package certificate

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/identity/file"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// MaxRules bounds a list of rules.
const MaxRules = 10_000

// Config is a list of rules. The first that matches a certificate decides.
type Config struct {
	Rules []Rule `yaml:"rules"`

	roles []string // that rules may give
}

// Rule maps certificates with a name of a certain form. It has exactly one of URI,
// DNS and CN.
type Rule struct {
	// URI matches a URI SAN as it is written. A last segment of * stands for one or more
	// segments, as in spiffe://example.org/ns/*.
	URI string `yaml:"uri,omitempty"`
	// DNS matches a DNS SAN in any case. A first label of * stands for one label, as in
	// *.workers.example.org.
	DNS string `yaml:"dns,omitempty"`
	// CN matches the common name of the subject. A * at the end stands for the rest, of
	// at least one character.
	CN string `yaml:"cn,omitempty"`

	// Name is the name of the principal. $1 in it is the text that * stands for.
	Name    string   `yaml:"name"`
	Groups  []string `yaml:"groups,omitempty"`
	Tenant  string   `yaml:"tenant,omitempty"`
	Tenants []string `yaml:"tenants,omitempty"`
	Roles   []string `yaml:"roles,omitempty"`
}

// captured stands for the text of * in the name of a rule.
const captured = "$1"

// Parse reads the rules of a file, which give no other roles than these. The error joins a
// *file.Error with the line of each problem.
func Parse(name string, text []byte, roles []string) (Config, error) {
	c := Config{roles: roles}
	err := file.Decode(name, text, &c)
	return c, err
}

// Problems lists what is wrong with the rules.
func (c *Config) Problems() []file.Problem {
	if len(c.Rules) > MaxRules {
		return []file.Problem{{
			Path: []any{"rules"}, Is: fmt.Sprintf("has %d rules", len(c.Rules)), Want: fmt.Sprintf("at most %d", MaxRules),
		}}
	}
	var all []file.Problem
	for i := range c.Rules {
		all = append(all, file.PrefixProblems(c.Rules[i].findProblems(c.roles), "rules", i)...)
	}
	return all
}

func (r *Rule) findProblems(roles []string) []file.Problem {
	var all []file.Problem
	add := func(field, is, want string) {
		all = append(all, file.Problem{Path: []any{field}, Is: is, Want: want})
	}
	var given []string
	for _, p := range []struct {
		field, pattern string
		check          func(string) (is, want string)
	}{{"uri", r.URI, checkURI}, {"dns", r.DNS, checkDNS}, {"cn", r.CN, checkCN}} {
		if p.pattern == "" {
			continue
		}
		given = append(given, p.field)
		if is, want := p.check(p.pattern); is != "" {
			add(p.field, is, want)
		}
	}
	if len(given) != 1 {
		all = append(all, file.Problem{Is: fmt.Sprintf("has %d of uri, dns and cn", len(given)), Want: "exactly one of them"})
	}
	if err := identity.CheckName("name", r.Name); err != nil {
		add("name", "is not a name", "1 to 256 bytes of visible characters")
	}
	rest := strings.ReplaceAll(r.Name, captured, "")
	switch {
	case strings.Contains(rest, "$"):
		add("name", "has a $ without 1 behind it", "$1 for the text of *")
	case rest != r.Name && !strings.Contains(r.URI+r.DNS+r.CN, "*"):
		add("name", "uses $1, and the pattern has no *", "a pattern with *, or a name without $1")
	}
	all = append(all, r.findNameProblems(roles)...)
	return all
}

// findNameProblems lists the problems of the names that the rule gives.
func (r *Rule) findNameProblems(roles []string) []file.Problem {
	var all []file.Problem
	for _, l := range []struct {
		field string
		names []string
	}{{"groups", r.Groups}, {"roles", r.Roles}} {
		if err := identity.CheckNames(l.field, l.names); err != nil {
			all = append(all, file.Problem{Path: []any{l.field}, Is: "has too many or wrong names", Want: "at most 256 names of 1 to 256 bytes"})
		}
	}
	for i, role := range r.Roles {
		if !slices.Contains(roles, role) {
			all = append(all, file.Problem{Path: []any{"roles", i}, Is: "is no role", Want: "one of " + strings.Join(roles, ", ")})
		}
	}
	if identity.CheckTenants("tenants", r.Tenants) != nil {
		all = append(all, file.Problem{Path: []any{"tenants"}, Is: "has too many or wrong names", Want: "at most 256 names of " + tenant.NameRule})
	}
	if r.Tenant != "" && identity.CheckTenants("tenant", []string{r.Tenant}) != nil {
		all = append(all, file.Problem{Path: []any{"tenant"}, Is: "is not a name", Want: tenant.NameRule})
	}
	if r.Tenant != "" && len(r.Tenants) > 0 && !slices.Contains(r.Tenants, r.Tenant) {
		all = append(all, file.Problem{Path: []any{"tenant"}, Is: "is not among the tenants", Want: "one of them"})
	}
	return all
}

func checkURI(pattern string) (is, want string) {
	const form = "a URI like spiffe://example.org/worker, or with * as its last segment"
	fixed, _ := strings.CutSuffix(pattern, "/*")
	if strings.Contains(fixed, "*") {
		return "has a * that is not its last segment", form
	}
	u, err := url.Parse(fixed)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "" {
		return "is not a URI with a scheme and a host", form
	}
	if !isPlainURI(u) || u.String() != fixed {
		return "has a query, a fragment, a user or escapes, or . or .. as a segment", form
	}
	return "", ""
}

func checkDNS(pattern string) (is, want string) {
	const form = "a DNS name like worker.example.org, or with * as its first label"
	rest := strings.TrimPrefix(pattern, "*.")
	for label := range strings.SplitSeq(rest, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, isNotInLabels) {
			return "is not a DNS name", form
		}
	}
	return "", ""
}

func isNotInLabels(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", c)
}

func checkCN(pattern string) (is, want string) {
	if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
		return "has a * that is not at its end", "a name, or the begin of one and *"
	}
	return "", ""
}
