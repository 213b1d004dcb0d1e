package certificate

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Pattern is what a name of a certificate must be, as in a rule.
type Pattern struct {
	rule Rule
}

// PatternError says what is wrong with the text of a pattern.
type PatternError struct {
	Is   string
	Want string
}

// Error names the problem and what would be right.
func (e *PatternError) Error() string { return e.Is + ": want " + e.Want }

const wantPattern = "uri:PATTERN, dns:PATTERN or cn:PATTERN, as in rules, like dns:proxy.example.org"

// ParsePattern reads a pattern with the kind of its name before it, like
// dns:*.example.org. The error is a *PatternError.
func ParsePattern(text string) (Pattern, error) {
	kind, pattern, ok := strings.Cut(text, ":")
	if !ok || pattern == "" {
		return Pattern{}, &PatternError{Is: fmt.Sprintf("%q has no kind of name, or no pattern", text), Want: wantPattern}
	}
	var p Pattern
	var is, want string
	switch kind {
	case "uri":
		p.rule.URI = pattern
		is, want = checkURI(pattern)
	case "dns":
		p.rule.DNS = pattern
		is, want = checkDNS(pattern)
	case "cn":
		p.rule.CN = pattern
		is, want = checkCN(pattern)
	default:
		is, want = "has an unknown kind of name", wantPattern
	}
	if is != "" {
		return Pattern{}, &PatternError{Is: fmt.Sprintf("%q %s", text, is), Want: want}
	}
	return p, nil
}

// MatchesChain reports whether a name of the leaf of a verified chain matches. The
// certificate of a CA never does.
func (p *Pattern) MatchesChain(chain []*x509.Certificate) bool {
	if len(chain) == 0 || isAuthority(chain[0]) {
		return false
	}
	_, ok := p.rule.matchNames(readNames(chain[0]))
	return ok
}
