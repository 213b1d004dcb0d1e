package egress

import (
	"errors"
	"net/netip"
)

// AdmitHost returns the check of each address before a connection to a host and port of the
// Internet is opened. What the policy allows may lead wherever CheckEndpoint's patterns say; any
// other host only to public addresses, or to those that a pattern of addresses lists. Errors: a
// *FormError for a host without a canonical form, a *RefusalError for an address that is not
// public; that of checkAddress is a *RefusalError. option is that of the server with the patterns.
func (p *Policy) AdmitHost(option, hostPort string) (isListed bool, checkAddress func(network, address string) error, err error) {
	t, err := parseEndpoint(hostPort)
	if err != nil {
		return false, nil, err
	}
	if t.scheme != schemeDNS {
		return false, nil, newFormError(hostPort, "it is no HOST:PORT")
	}
	if p.CheckEndpoint(hostPort) == nil {
		isListed = true
	}
	checkAddress = func(network, address string) error {
		err := p.checkAddress(hostPort, &t, network, address)
		if err == nil && !isListed {
			err = p.checkPublic(hostPort, address)
		}
		return nameOption(err, option)
	}
	if t.addr.IsValid() {
		err = checkAddress("tcp", netip.AddrPortFrom(t.addr, t.port).String())
	}
	return isListed, checkAddress, err
}

// nameOption puts the option into the error of a refusal.
func nameOption(err error, option string) error {
	if refused, ok := errors.AsType[*RefusalError](err); ok {
		refused.Option = option
	}
	return err
}

// checkPublic refuses an address that is not public, unless a pattern lists it.
func (p *Policy) checkPublic(endpoint, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusalError{Endpoint: endpoint, Address: address}
	}
	addr := to.Addr().Unmap()
	if isPublic(addr) || p.listsAddress(addr, to.Port()) {
		return nil
	}
	pattern := (&target{scheme: schemeDNS, addr: addr, port: to.Port()}).formatPattern()
	return &RefusalError{Endpoint: endpoint, Address: address, Pattern: pattern}
}

// isPublic reports whether an address is one of the Internet, and leads to none that is not.
func isPublic(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	for _, inside := range listEmbeddedIPv4(addr) {
		if !isPublic(inside) {
			return false
		}
	}
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || isReserved(addr) {
		return false
	}
	for _, p := range localPrefixes() {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// localPrefixes are further addresses that are not for the Internet, beside those of
// netip.Addr.IsPrivate.
func localPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"), // of carriers
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"), // of documentation, as two more
		netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"), // of benchmarks
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("fec0::/10"),
		netip.MustParsePrefix("2001:db8::/32"),
	}
}
