package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Schemes of endpoints that this package takes apart.
const (
	schemeDNS          = "dns"
	schemePassthrough  = "passthrough"
	schemeUnix         = "unix"
	schemeUnixAbstract = "unix-abstract"
)

// Ports of endpoints without one, as gRPC has them.
const (
	defaultPort         = 443
	defaultResolverPort = 53
)

// target is an endpoint in canonical form: two endpoints that lead to the same place
// have equal targets.
type target struct {
	scheme    string // lower case
	authority string // DNS server that dns asks, "" = that of the system

	// Of dns and passthrough.
	host     string     // lower case, without the dot of the root, "" = addr is set
	isRooted bool       // host was written with the dot of the root, which the resolver obeys
	addr     netip.Addr // an IPv4 address is never mapped into IPv6
	port     uint16

	rest string // of unix the absolute path, of unix-abstract the name, else what follows the scheme
}

// parseEndpoint returns the canonical form of an endpoint. The error is a *FormError.
func parseEndpoint(text string) (target, error) {
	if problem := findBadCharacter(text); problem != "" {
		return target{}, newFormError(text, problem)
	}
	t, problem := parseTarget(text)
	if problem != "" {
		return target{}, newFormError(text, problem)
	}
	return t, nil
}

// findBadCharacter returns the problem of a text with characters that resolvers and
// URLs read differently, "" for none.
func findBadCharacter(text string) string {
	if text == "" {
		return "it is empty"
	}
	for _, c := range []byte(text) {
		switch {
		case c >= 0x80:
			return "it has characters beyond ASCII; write the name of the host as DNS has it, like xn--bcher-kva.example"
		case c <= ' ', c == 0x7f, strings.IndexByte(`?#\"`, c) >= 0:
			return "it has the character " + strconv.QuoteRune(rune(c)) + "; write HOST:PORT"
		}
	}
	return ""
}

func parseTarget(text string) (t target, problem string) {
	scheme, rest := splitScheme(text)
	t.scheme = scheme
	switch scheme {
	case "":
		t.scheme = schemeDNS
		problem = t.parseHostPort(text, defaultPort)
	case schemeDNS:
		problem = t.parseDNS(rest)
	case schemePassthrough:
		problem = t.parsePassthrough(rest)
	case schemeUnix:
		problem = t.parseUnixPath(rest)
	case schemeUnixAbstract:
		problem = t.parseAbstractName(rest)
	default:
		t.rest = rest
	}
	return t, problem
}

// knownSchemes are names that are schemes whatever follows them. Other names are
// schemes before a slash only, and else hosts.
func knownSchemes() []string {
	return []string{
		schemeDNS, schemePassthrough, schemeUnix, schemeUnixAbstract, "vsock", "xds", "google-c2p", "ipv4", "ipv6", "http", "https",
	}
}

// splitScheme takes the scheme off, in lower case; "" = the text has none.
func splitScheme(text string) (scheme, rest string) {
	name, rest, found := strings.Cut(text, ":")
	if name = strings.ToLower(name); !found || !isSchemeName(name) {
		return "", text
	}
	if slices.Contains(knownSchemes(), name) || strings.HasPrefix(rest, "/") {
		return name, rest
	}
	return "", text
}

func isSchemeName(name string) bool {
	for i, c := range []byte(name) {
		isLetter := c >= 'a' && c <= 'z'
		if !isLetter && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return name != ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// splitAuthority takes "//AUTHORITY/" or "/" off what follows a scheme, as a URL
// does.
func splitAuthority(rest string) (authority, endpoint string) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority, endpoint, _ = strings.Cut(after, "/")
		return authority, endpoint
	}
	return "", strings.TrimPrefix(rest, "/")
}

func (t *target) parseDNS(rest string) (problem string) {
	authority, endpoint := splitAuthority(rest)
	if t.authority, problem = parseAuthority(authority); problem != "" {
		return problem
	}
	return t.parseHostPort(unescapeZone(endpoint), defaultPort)
}

// parseAuthority returns the canonical form of a DNS server.
func parseAuthority(authority string) (text, problem string) {
	if authority == "" {
		return "", ""
	}
	var server target
	if problem := server.parseHostPort(authority, defaultResolverPort); problem != "" {
		return "", "of its DNS server: " + problem
	}
	if server.addr.Zone() != "" {
		return "", "its DNS server has a zone; name the server by an address without one"
	}
	return server.hostPort(), ""
}

func (t *target) parsePassthrough(rest string) (problem string) {
	authority, endpoint := splitAuthority(rest)
	if authority != "" {
		return "it has an authority; write passthrough:///HOST:PORT"
	}
	if problem = t.parseHostPort(unescapeZone(endpoint), 0); problem == "" && t.port == 0 {
		return "it has no port; write passthrough:///HOST:PORT"
	}
	return problem
}

// unescapeZone reads the only escape that a URL needs around an address.
func unescapeZone(endpoint string) string { return strings.Replace(endpoint, "%25", "%", 1) }

func (t *target) parseUnixPath(rest string) (problem string) {
	path := strings.TrimPrefix(rest, "//")
	switch {
	case strings.Contains(path, "%"):
		return "it has an escape; write the path as it is"
	case !strings.HasPrefix(path, "/"), !isCleanPath(path):
		return "it is no absolute path without . and ..; write unix:/run/node.sock"
	}
	t.rest = path
	return ""
}

// isCleanPath reports whether a path has neither empty elements nor those that lead
// elsewhere.
func isCleanPath(path string) bool {
	for element := range strings.SplitSeq(path[1:], "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

func (t *target) parseAbstractName(rest string) (problem string) {
	name, hasAuthority := strings.CutPrefix(rest, "//")
	if hasAuthority && !strings.HasPrefix(name, "/") {
		return "it has an authority; write unix-abstract:NAME"
	}
	if name == "" || strings.Contains(name, "%") || strings.HasPrefix(name, "//") {
		return "it is no name of a socket; write unix-abstract:NAME"
	}
	t.rest = name
	return ""
}

// parseHostPort reads HOST, HOST:PORT, an address, and [IPV6]:PORT. A target without
// a port gets the given one.
func (t *target) parseHostPort(text string, port uint16) (problem string) {
	t.port = port
	if addr, err := netip.ParseAddr(text); err == nil {
		return t.setAddr(addr)
	}
	var host, number string
	var hasPort bool
	if inside, isBracketed := strings.CutPrefix(text, "["); isBracketed {
		var after string
		if host, after, isBracketed = strings.Cut(inside, "]"); !isBracketed {
			return "a bracket is open; write [IPV6]:PORT"
		}
		if number, hasPort = strings.CutPrefix(after, ":"); !hasPort && after != "" {
			return "text follows the bracket; write [IPV6]:PORT"
		}
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Is4() {
			return "the brackets hold no IPv6 address; write [IPV6]:PORT"
		}
		if problem = t.setAddr(addr); problem != "" {
			return problem
		}
	} else {
		if host, number, hasPort = strings.Cut(text, ":"); hasPort && host == "" {
			host = "localhost" // as gRPC has it
		}
		if strings.Contains(number, ":") {
			return "it has several colons; write [IPV6]:PORT for an IPv6 address, and HOST:PORT else"
		}
		if problem = t.setHost(host); problem != "" {
			return problem
		}
	}
	if hasPort {
		t.port, problem = parsePort(number)
	}
	return problem
}

func parsePort(text string) (port uint16, problem string) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || !isDigit(text[0]) {
		return 0, "the port is " + quoteShort(text) + "; write a number from 1 to 65535"
	}
	return uint16(n), ""
}

func (t *target) setAddr(addr netip.Addr) (problem string) {
	if addr.Is4In6() && addr.Zone() != "" {
		return "an IPv4 address has a zone; write it as four decimal numbers"
	}
	if zone := addr.Zone(); zone != "" && !isHostName(strings.ToLower(zone)) {
		return "the zone " + quoteShort(zone) + " is no name of an interface; write letters, digits, -, _ and dots"
	}
	t.addr = addr.Unmap()
	return ""
}

// setHost takes a name or an IPv4 address. Resolvers read a name that ends in a
// number as an IPv4 address in one of many forms, of which one is canonical.
func (t *target) setHost(host string) (problem string) {
	name := strings.ToLower(host)
	name, t.isRooted = strings.CutSuffix(name, ".")
	if addr, err := netip.ParseAddr(name); err == nil && addr.Is4() {
		t.isRooted = false
		return t.setAddr(addr)
	}
	if endsInNumber(name) {
		return "the host " + quoteShort(host) + " ends in a number and is no IPv4 address of four decimal numbers, like 10.0.0.1"
	}
	if !isHostName(name) {
		return "the host " + quoteShort(host) + " is no name; write letters, digits, - and _, divided by dots"
	}
	t.host = name
	return ""
}

// endsInNumber reports whether the last label is a decimal, octal or hexadecimal
// number.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits, isHex := strings.CutPrefix(last, "0x")
	for _, c := range []byte(digits) {
		if !isDigit(c) && (!isHex || c < 'a' || c > 'f') {
			return false
		}
	}
	return last != ""
}

// Limits of DNS names, in bytes.
const (
	maxNameLength  = 253
	maxLabelLength = 63
)

func isHostName(name string) bool {
	if len(name) > maxNameLength {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabelLength {
			return false
		}
		for _, c := range []byte(label) {
			if !isDigit(c) && (c < 'a' || c > 'z') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// hostPort returns the host as it is compared, with the port if there is one.
func (t *target) hostPort() string {
	host := t.host
	if t.addr.Is6() {
		host = "[" + t.addr.String() + "]"
	} else if t.addr.IsValid() {
		host = t.addr.String()
	}
	if t.port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// formatPattern returns the narrowest pattern that matches the target.
func (t *target) formatPattern() string {
	switch {
	case t.scheme == schemeDNS && t.authority == "":
		return t.hostPort()
	case t.scheme == schemeDNS:
		return "dns://" + t.authority + "/" + t.hostPort()
	case t.scheme == schemePassthrough:
		return "passthrough:///" + t.hostPort()
	}
	return t.scheme + ":" + t.rest
}

// grpcTarget returns the target in the form that gRPC reads in one way only.
func (t *target) grpcTarget() string {
	if t.scheme != schemeDNS && t.scheme != schemePassthrough {
		return t.scheme + ":" + t.rest
	}
	hostPort := t.hostPort()
	if t.isRooted {
		hostPort = t.host + ".:" + strconv.Itoa(int(t.port))
	}
	return t.scheme + "://" + t.authority + "/" + strings.Replace(hostPort, "%", "%25", 1)
}
