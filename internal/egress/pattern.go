package egress

import (
	"net/netip"
	"strings"
)

// pattern allows endpoints. Its target has port 0 for any port.
type pattern struct {
	target

	isAnyHost bool
	suffix    string       // of names, with its dot; "" = no wildcard
	prefix    netip.Prefix // of addresses; a single address is a prefix, too
}

// parsePattern reads a pattern. The error is a *PatternError.
func parsePattern(text string) (pattern, error) {
	problem := findBadCharacter(text)
	var p pattern
	if problem == "" {
		p, problem = readPattern(text)
	}
	if problem != "" {
		return pattern{}, &PatternError{Pattern: text, Problem: problem}
	}
	return p, nil
}

func readPattern(text string) (p pattern, problem string) {
	scheme, rest := splitScheme(text)
	hosts := text
	switch scheme {
	case "":
		p.scheme = schemeDNS
	case schemeDNS, schemePassthrough:
		p.scheme = scheme
		var authority string
		authority, hosts = splitAuthority(rest)
		hosts = unescapeZone(hosts)
		if scheme == schemePassthrough && authority != "" {
			return p, "it has an authority; write passthrough:///HOST:PORT"
		}
		if p.authority, problem = parseAuthority(authority); problem != "" {
			return p, problem
		}
	default:
		p.target, problem = parseTarget(text)
		return p, problem
	}
	problem = p.parseHosts(hosts)
	return p, problem
}

// parseHosts reads *, *.NAME, NAME, an address or a range of addresses, each with an
// optional port.
func (p *pattern) parseHosts(text string) (problem string) {
	if host, port, hasPort := strings.Cut(text, ":"); strings.HasPrefix(host, "*") {
		name, isBelow := strings.CutPrefix(host, "*.")
		if hasPort {
			if p.port, problem = parsePort(port); problem != "" {
				return problem
			}
		}
		if host == "*" {
			p.isAnyHost = true
			return ""
		}
		var below target
		if problem = below.setHost(name); !isBelow || problem != "" || below.host == "" {
			return "a * stands for a whole host or for the first labels of a name, like *.example.com:443"
		}
		p.suffix = "." + below.host
		return ""
	}
	if strings.Contains(text, "/") {
		return p.parseRange(text)
	}
	if problem = p.parseHostPort(text, 0); problem == "" && p.addr.IsValid() {
		p.prefix = netip.PrefixFrom(p.addr.WithZone(""), p.addr.BitLen())
	}
	return problem
}

// parseRange reads 10.0.0.0/8, 10.0.0.0/8:443, fd00::/8 and [fd00::/8]:443.
func (p *pattern) parseRange(text string) (problem string) {
	bits, port, hasPort := text, "", false
	if inside, isBracketed := strings.CutPrefix(text, "["); isBracketed {
		bits, port, hasPort = strings.Cut(inside, "]:")
		bits = strings.TrimSuffix(bits, "]")
	} else if slash := strings.IndexByte(text, '/'); strings.Contains(text[slash:], ":") {
		var length string
		length, port, hasPort = strings.Cut(text[slash:], ":")
		bits = text[:slash] + length
	}
	if hasPort {
		if p.port, problem = parsePort(port); problem != "" {
			return problem
		}
	}
	prefix, err := netip.ParsePrefix(bits)
	switch {
	case err != nil || prefix.Addr().Is4In6():
		return quoteShort(bits) + " is no range of addresses; write 10.0.0.0/8:443 or [fd00::/8]:443"
	case prefix != prefix.Masked():
		return quoteShort(bits) + " is an address in a range; write " + prefix.Masked().String() + " for the range"
	}
	p.prefix = prefix
	return ""
}

// allowsTarget reports whether the pattern allows an endpoint.
func (p *pattern) allowsTarget(t *target) bool {
	switch {
	case p.scheme != t.scheme || p.authority != t.authority:
		return false
	case t.scheme != schemeDNS && t.scheme != schemePassthrough:
		return p.rest == t.rest
	case p.port != 0 && p.port != t.port:
		return false
	case p.isAnyHost:
		return !isMetadataName(t.host) && (!t.addr.IsValid() || !isReserved(t.addr))
	case t.addr.IsValid():
		return p.listsAddress(t.addr)
	case p.suffix != "":
		return strings.HasSuffix(t.host, p.suffix) && !isMetadataName(t.host)
	}
	return p.host != "" && p.host == t.host
}

// listsAddress reports whether the pattern is about an address. A range that is wider than
// the reserved addresses does not list those in it.
func (p *pattern) listsAddress(addr netip.Addr) bool {
	if !p.prefix.IsValid() || p.addr.Zone() != "" && p.addr.Zone() != addr.Zone() {
		return false
	}
	return p.prefix.Contains(addr.WithZone("")) && (!isReserved(addr) || liesInReserved(p.prefix))
}
