// Package egress decides which endpoints graphd may dial: it brings endpoints into
// one canonical form, and compares them with the patterns of an operator. It
// resolves no name and opens no connection.
package egress

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// AnyHost is the pattern of all hosts and ports over DNS and TCP. Like every
// pattern that does not name them, it leaves out link-local addresses and those of
// metadata services.
const AnyHost = "*"

// Policy is a list of patterns. The zero value allows nothing. A Policy never
// changes, and is safe for concurrent use.
type Policy struct{ patterns []pattern }

// NewPolicy makes a Policy of patterns: HOST, HOST:PORT, *.NAME:PORT, a range of
// addresses like 10.0.0.0/8:443, AnyHost, or one of these after dns:/// or
// passthrough:///; unix:PATH, unix-abstract:NAME, or the whole endpoint of another
// scheme. The error is a *PatternError.
func NewPolicy(patterns []string) (*Policy, error) {
	p := &Policy{}
	for _, text := range patterns {
		one, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		p.patterns = append(p.patterns, one)
	}
	return p, nil
}

// CheckEndpoint returns an error for an endpoint that may not be dialled, whatever
// its name resolves to: a *RefusalError, or a *FormError for an endpoint without a
// canonical form.
func (p *Policy) CheckEndpoint(endpoint string) error {
	_, err := p.findTarget(endpoint)
	return err
}

// AdmitEndpoint returns the target by which gRPC dials an endpoint, and the check of
// each address before a connection to it is opened. network and address are those of
// net.Dialer.ControlContext. The errors are those of CheckEndpoint; that of
// checkAddress is a *RefusalError.
func (p *Policy) AdmitEndpoint(endpoint string) (grpcTarget string, checkAddress func(network, address string) error, err error) {
	t, err := p.findTarget(endpoint)
	if err != nil {
		return "", nil, err
	}
	return t.grpcTarget(), func(network, address string) error { return p.checkAddress(endpoint, &t, network, address) }, nil
}

func (p *Policy) findTarget(endpoint string) (target, error) {
	t, err := parseEndpoint(endpoint)
	if err != nil {
		return t, err
	}
	if !slices.ContainsFunc(p.patterns, func(one pattern) bool { return one.allowsTarget(&t) }) {
		return t, &RefusalError{Endpoint: endpoint, Pattern: t.formatPattern()}
	}
	return t, nil
}

// checkAddress checks where a connection of an allowed endpoint leads. A name was
// allowed as a name, so its address need not be listed, unless it is reserved.
func (p *Policy) checkAddress(endpoint string, t *target, network, address string) error {
	refusal := &RefusalError{Endpoint: endpoint, Address: address}
	switch t.scheme {
	case schemeUnix, schemeUnixAbstract:
		if strings.HasPrefix(network, "unix") && address == t.socketAddress() {
			return nil
		}
		return refusal
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return refusal
	}
	hasHost := t.scheme == schemeDNS || t.scheme == schemePassthrough
	addr := to.Addr().Unmap()
	if hasHost && t.port != to.Port() || t.addr.IsValid() && t.addr.WithZone("") != addr.WithZone("") {
		return refusal
	}
	if isReserved(addr) && !p.listsAddress(addr, to.Port()) {
		refusal.Pattern = (&target{scheme: schemeDNS, addr: addr, port: to.Port()}).formatPattern()
		return refusal
	}
	return nil
}

// listsAddress reports whether a pattern of addresses allows one, under whichever
// scheme.
func (p *Policy) listsAddress(addr netip.Addr, port uint16) bool {
	return slices.ContainsFunc(p.patterns, func(one pattern) bool {
		return (one.port == 0 || one.port == port) && one.listsAddress(addr)
	})
}

// socketAddress returns the address of a unix socket as package net has it.
func (t *target) socketAddress() string {
	if t.scheme == schemeUnixAbstract {
		return "@" + t.rest
	}
	return t.rest
}

// RefusalError is the error of an endpoint, or of one of its addresses, that no
// pattern allows.
type RefusalError struct {
	Endpoint string // as the graph has it
	Address  string // that the endpoint resolves to, "" = the endpoint itself is refused
	Pattern  string // that would allow it, "" = none would
	Option   string // of the server, which has the patterns; "" = --endpoint-allow
}

// Error names the pattern that would allow the endpoint.
func (e *RefusalError) Error() string {
	text := "endpoint " + quoteShort(e.Endpoint) + " is not allowed"
	if e.Address != "" {
		text = "endpoint " + quoteShort(e.Endpoint) + " leads to " + quoteShort(e.Address) + ", which is not allowed"
	}
	if e.Pattern != "" {
		text += "; the server would allow it with " + cmp.Or(e.Option, "--endpoint-allow") + " " + e.Pattern
	}
	return text
}

// FormError is the error of an endpoint without a canonical form, which no pattern
// allows.
type FormError struct {
	Endpoint string
	Problem  string // what is wrong, and what would be right
}

func newFormError(endpoint, problem string) error {
	return &FormError{Endpoint: endpoint, Problem: problem}
}

// Error tells the problem.
func (e *FormError) Error() string {
	return "endpoint " + quoteShort(e.Endpoint) + " is not allowed, because its form is ambiguous: " + e.Problem
}

// PatternError is the error of a pattern that can't be read.
type PatternError struct {
	Pattern string
	Problem string // what is wrong, and what would be right
}

// Error tells the problem.
func (e *PatternError) Error() string {
	return "the pattern " + quoteShort(e.Pattern) + ": " + e.Problem
}

// maxShown bounds the part of a text that errors show, in bytes.
const maxShown = 200

func quoteShort(text string) string {
	if len(text) > maxShown {
		return strconv.Quote(text[:maxShown]) + "…"
	}
	return strconv.Quote(text)
}
