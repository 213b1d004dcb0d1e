// Package identity says who calls: it turns the credentials of a call into a
// principal.
//
// Package proxy takes the word of a trusted proxy, package certificate maps client
// certificates, package jwt verifies tokens of issuers, package apikey verifies keys that
// graphd made, and package session knows the people who have signed in. A Chain asks them.
// Every refusal is an *Error whose text is fixed: it holds no part of a credential, and
// does not say whether a name exists.
package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/visible"
)

// How is the kind of credential that identified a principal.
type How string

// The kinds of credentials.
const (
	HowCertificate How = "certificate"
	HowJWT         How = "jwt"
	HowAPIKey      How = "api key"
	HowSession     How = "session"
	HowProxy       How = "proxy"
	HowLink        How = "link"
	HowProcess     How = "process" // the server is in the process of its caller
	HowNone        How = "none"
)

// Bounds of a principal.
const (
	MaxNameBytes = 256 // of each name: of principals, groups, tenants and roles
	MaxNames     = 256 // groups of a principal, and likewise its tenants and its roles
)

// Principal is a caller. Calls with the same credentials may share its lists, which
// must not be changed.
type Principal struct {
	Name   string
	Groups []string
	// Tenant is the tenant of a call that names none. "" = the server decides.
	Tenant string
	// Tenants are those that a call may name. Tenant is one of them.
	Tenants []string
	// Roles are those that the credential itself grants.
	Roles []string
	How   How
	// Lifetime ends the streams of the caller. nil = they go on.
	Lifetime Lifetime
}

// Lifetime is how long a credential is accepted.
type Lifetime interface {
	// WaitForEnd waits for the end of the credential, or of ctx. The error is an *Error, or
	// the cause of ctx.
	WaitForEnd(ctx context.Context) error
}

// PrincipalError says which value of a principal is out of bounds. It does not show
// the value.
type PrincipalError struct {
	Field string // name, groups, tenant, tenants, roles or how
	Is    string
	Want  string
}

// Error names the field, the problem and the bound.
func (e *PrincipalError) Error() string { return e.Field + " " + e.Is + ": want " + e.Want }

// Validate checks the bounds of all values. The error is a *PrincipalError.
func (p *Principal) Validate() error {
	if err := CheckName("name", p.Name); err != nil {
		return err
	}
	for _, l := range []struct {
		field string
		names []string
	}{{"groups", p.Groups}, {"roles", p.Roles}} {
		if err := CheckNames(l.field, l.names); err != nil {
			return err
		}
	}
	if err := CheckTenants("tenants", p.Tenants); err != nil {
		return err
	}
	switch p.How {
	case HowCertificate, HowJWT, HowAPIKey, HowSession, HowProxy, HowLink, HowProcess, HowNone:
	default:
		return &PrincipalError{Field: "how", Is: "is not a kind of credential", Want: "certificate, jwt, api key, session, proxy, link, process or none"}
	}
	if p.Tenant == "" && len(p.Tenants) == 0 {
		return nil
	}
	if !slices.Contains(p.Tenants, p.Tenant) {
		return &PrincipalError{Field: "tenant", Is: "is not among the tenants", Want: "one of them"}
	}
	return nil
}

// CheckNames checks a list of names. The error is a *PrincipalError with this field.
func CheckNames(field string, names []string) error {
	if len(names) > MaxNames {
		return &PrincipalError{Field: field, Is: fmt.Sprintf("has %d names", len(names)), Want: fmt.Sprintf("at most %d", MaxNames)}
	}
	for _, name := range names {
		if err := CheckName(field, name); err != nil {
			return err
		}
	}
	return nil
}

// CheckTenants checks a list of names of tenants. The error is a *PrincipalError with this
// field.
func CheckTenants(field string, names []string) error {
	if err := CheckNames(field, names); err != nil {
		return err
	}
	for _, name := range names {
		if tenant.CheckName(name) != nil {
			return &PrincipalError{Field: field, Is: "has a name that no tenant can have", Want: tenant.NameRule}
		}
	}
	return nil
}

// CheckName checks one name: 1 to MaxNameBytes bytes of UTF-8 that a terminal shows
// as they are. The error is a *PrincipalError with this field.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return &PrincipalError{Field: field, Is: "has an empty name", Want: fmt.Sprintf("1 to %d bytes", MaxNameBytes)}
	case len(name) > MaxNameBytes:
		return &PrincipalError{
			Field: field, Is: fmt.Sprintf("has a name of %d bytes", len(name)), Want: fmt.Sprintf("1 to %d bytes", MaxNameBytes),
		}
	case strings.ContainsRune(name, utf8.RuneError) || visible.Line(name) != name:
		// The replacement character, too: decoders write it for what they can't read, so
		// that different names would become the same.
		return &PrincipalError{Field: field, Is: "has a name with characters that are not visible", Want: "visible characters in UTF-8"}
	}
	return nil
}

// ChooseTenants returns the default tenant and the list of tenants that belong
// together: a single tenant is its own list, and of a list alone the first is the
// default.
func ChooseTenants(own string, tenants []string) (chosen string, all []string) {
	switch {
	case own != "" && len(tenants) == 0:
		return own, []string{own}
	case own == "" && len(tenants) > 0:
		return tenants[0], tenants
	}
	return own, tenants
}
