package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// reservedPrefixes are the addresses that no pattern allows in passing: link-local
// ones, and those at which clouds give credentials and configuration to each process that
// connects.
func reservedPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
		netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
		netip.MustParsePrefix("168.63.129.16/32"),   // Azure
		netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	}
}

// isReserved reports whether an address is reserved, also as part of an IPv6
// address that leads to it.
func isReserved(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	if inside, ok := embeddedIPv4(addr); ok && isReserved(inside) {
		return true
	}
	return slices.ContainsFunc(reservedPrefixes(), func(p netip.Prefix) bool { return p.Contains(addr) })
}

// embeddedIPv4 returns the IPv4 address to which NAT64, 6to4 or an old stack
// translates an IPv6 address.
func embeddedIPv4(addr netip.Addr) (inside netip.Addr, ok bool) {
	if !addr.Is6() {
		return inside, false
	}
	bytes := addr.As16()
	for _, form := range []struct {
		prefix netip.Prefix
		at     int
	}{
		{netip.MustParsePrefix("64:ff9b::/96"), 12},
		{netip.MustParsePrefix("::/96"), 12},
		{netip.MustParsePrefix("2002::/16"), 2},
	} {
		if form.prefix.Contains(addr) {
			return netip.AddrFrom4([4]byte(bytes[form.at : form.at+4])), true
		}
	}
	return inside, false
}

// liesInReserved reports whether all addresses of a prefix are reserved.
func liesInReserved(p netip.Prefix) bool {
	if p.IsSingleIP() {
		return isReserved(p.Addr())
	}
	return slices.ContainsFunc(reservedPrefixes(), func(r netip.Prefix) bool {
		return r.Bits() <= p.Bits() && r.Contains(p.Addr())
	})
}

// isMetadataName reports whether a name is that of a metadata service, or lies below
// one.
func isMetadataName(host string) bool {
	for _, name := range []string{
		"metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.com", "metadata.azure.internal",
		"metadata.tencentyun.com", "instance-data", "instance-data.ec2.internal",
	} {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}
