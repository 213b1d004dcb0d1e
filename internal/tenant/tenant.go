// Package tenant joins the name of a tenant with an id of a thread or a name of a graph
// to the text by which the engine and the stores know the thread or the graph, and takes
// such a text apart.
//
// The tenant Default has its ids as they are, so that everything stored without tenants
// belongs to it. Every other tenant has TENANT@ID. Neither ids nor names of graphs may
// contain the separator, so the texts of two tenants are never the same.
package tenant

import (
	"fmt"
	"strings"
)

// Default is the tenant of servers that do not distinguish callers.
const Default = "default"

// Separator stands between the name of a tenant and the id.
const Separator = '@'

// MaxNameLength bounds the name of a tenant, in bytes.
const MaxNameLength = 64

// An Error refuses the name of a tenant, or an id of it.
type Error struct {
	Field string // tenant or id
	Is    string
	Want  string
}

// Error names the field, the problem and what is right.
func (e *Error) Error() string { return e.Field + " " + e.Is + ": want " + e.Want }

// NameRule says which names tenants may have, for errors.
const NameRule = "1 to 64 of A-Z a-z 0-9 _ . : -"

// CheckName refuses what can't be the name of a tenant. The error is an *Error.
func CheckName(name string) error {
	switch {
	case name == "":
		return &Error{Field: "tenant", Is: "is empty", Want: NameRule}
	case len(name) > MaxNameLength:
		return &Error{Field: "tenant", Is: fmt.Sprintf("has %d bytes", len(name)), Want: NameRule}
	}
	for i := range len(name) {
		if !IsNameByte(name[i]) {
			return &Error{Field: "tenant", Is: fmt.Sprintf("%q has %q at byte %d", name, name[i], i), Want: NameRule}
		}
	}
	return nil
}

// IsNameByte reports whether a byte may be part of the name of a tenant. The same bytes may
// be part of an id.
func IsNameByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case c == '_', c == '.', c == ':', c == '-':
		return true
	}
	return false
}

// Qualify returns the text by which stores know an id, or the name of a graph, of a tenant.
// It checks the name of the tenant, and of the id only that it is there and has no
// separator: the caller knows the other rules of the id. The error is an *Error.
func Qualify(name, id string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	switch {
	case id == "":
		return "", &Error{Field: "id", Is: "is empty", Want: "an id of the tenant"}
	case strings.IndexByte(id, Separator) >= 0:
		return "", &Error{Field: "id", Is: "has '@'", Want: "an id without it, which belongs to the caller's tenant"}
	case name == Default:
		return id, nil
	}
	return name + string(Separator) + id, nil
}

// Split takes a text of Qualify apart. A text without a separator belongs to Default.
func Split(qualified string) (name, id string) {
	if before, after, ok := strings.Cut(qualified, string(Separator)); ok {
		return before, after
	}
	return Default, qualified
}

// IsHidden reports whether a text of Qualify belongs to a tenant that no tenant can be called: what
// the server keeps for itself.
func IsHidden(qualified string) bool { return strings.HasPrefix(qualified, "~") }

// ClientName returns the id, or the name of a graph, in a text of Qualify: what the clients
// of the tenant know it by. Whatever leaves the server has it, errors too.
func ClientName(qualified string) string {
	_, id := Split(qualified)
	return id
}

// Contains reports whether a text of Qualify belongs to a tenant; "" stands for all
// tenants.
func Contains(name, qualified string) bool {
	if name == "" {
		return true
	}
	owner, _ := Split(qualified)
	return owner == name
}
