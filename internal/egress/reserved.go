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
	if slices.ContainsFunc(listEmbeddedIPv4(addr), isReserved) {
		return true
	}
	return slices.ContainsFunc(reservedPrefixes(), func(p netip.Prefix) bool { return p.Contains(addr) })
}

// embedding is a prefix of IPv6 addresses with an IPv4 address in them, and the places of
// its bytes.
type embedding struct {
	prefix netip.Prefix
	at     [4]int
}

// listEmbeddings returns the forms that NAT64, 6to4 or an old stack translates. The prefix that
// is for NAT64 of one's own has several, as the network has divided it (RFC 6052).
func listEmbeddings() []embedding {
	last, own := [4]int{12, 13, 14, 15}, netip.MustParsePrefix("64:ff9b:1::/48")
	return []embedding{
		{netip.MustParsePrefix("64:ff9b::/96"), last},
		{netip.MustParsePrefix("::/96"), last},
		{netip.MustParsePrefix("::ffff:0:0:0/96"), last},
		{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}},
		{own, last},
		{own, [4]int{9, 10, 11, 12}},
		{own, [4]int{7, 9, 10, 11}},
		{own, [4]int{6, 7, 9, 10}},
	}
}

// listEmbeddedIPv4 returns the IPv4 addresses to which an IPv6 address may be translated.
func listEmbeddedIPv4(addr netip.Addr) (inside []netip.Addr) {
	if !addr.Is6() {
		return nil
	}
	bytes := addr.As16()
	for _, form := range listEmbeddings() {
		if form.prefix.Contains(addr) {
			inside = append(inside, netip.AddrFrom4([4]byte{bytes[form.at[0]], bytes[form.at[1]], bytes[form.at[2]], bytes[form.at[3]]}))
		}
	}
	return inside
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
