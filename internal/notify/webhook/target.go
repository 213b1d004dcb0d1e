package webhook

import (
	"cmp"
	"fmt"
	"net"
	"net/url"

	"github.com/graphd-dev/graphd/internal/egress"
)

// Target is where requests go.
type Target struct {
	URL *url.URL
	// CheckAddress is the check of each address before a connection is opened.
	CheckAddress func(network, address string) error
}

// TargetError is the error of a URL to which nothing is sent. It does not show the URL, whose path may
// have a secret.
type TargetError struct {
	Is   string // like "has a user"
	Want string // what would be right, "" = nothing
}

// Error tells both.
func (e *TargetError) Error() string {
	if e.Want == "" {
		return "the URL " + e.Is
	}
	return "the URL " + e.Is + ": want " + e.Want
}

// ParseTarget reads a URL, to a public host or one that is allowed. option is that of the server with
// what is allowed. The error is a *TargetError.
func ParseTarget(text string, allowed *egress.Policy, option string) (Target, error) {
	const want = "https://HOST/PATH"
	to, err := url.Parse(text)
	switch {
	case text == "":
		return Target{}, &TargetError{"is missing", want}
	case err != nil || to.Opaque != "" || to.Hostname() == "":
		return Target{}, &TargetError{"can't be read", want}
	case to.User != nil:
		return Target{}, &TargetError{"has a user", want}
	case to.Fragment != "":
		return Target{}, &TargetError{"has a fragment", want}
	case to.Scheme != "https" && to.Scheme != "http":
		return Target{}, &TargetError{fmt.Sprintf("has the scheme %q", to.Scheme), want}
	}
	port := cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme])
	host := net.JoinHostPort(to.Hostname(), port)
	isListed, check, err := allowed.AdmitHost(option, host)
	switch {
	case err != nil:
		return Target{}, &TargetError{"is refused: " + err.Error(), ""}
	case to.Scheme == "http" && !isListed:
		return Target{}, &TargetError{"would send in plain text", "https://, or " + option + " " + host + " for a host in your network"}
	}
	return Target{URL: to, CheckAddress: check}, nil
}
