package server

import (
	"net"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// IsExposed reports whether other machines may reach --listen and --insecure does not
// permit that.
func (o *Options) IsExposed() bool { return !o.Insecure && leadsElsewhere(o.Listen) }

// IsHTTPExposed reports the same of --http.
func (o *Options) IsHTTPExposed() bool { return o.HTTP != "" && !o.Insecure && leadsElsewhere(o.HTTP) }

// leadsElsewhere reports whether other machines may reach an address. One that can't be resolved
// is none: the start refuses it.
func leadsElsewhere(address string) bool {
	at, err := net.ResolveTCPAddr("tcp", address)
	return err == nil && !isLocal(at)
}

// isLocal reports whether this machine alone reaches an address.
func isLocal(at net.Addr) bool {
	switch address := at.(type) {
	case *net.TCPAddr:
		return address.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}

// findLack returns what the server lacks at an address that other machines reach, "" = nothing.
func (o *Options) findLack(at net.Addr) string {
	switch {
	case o.Insecure || isLocal(at) || o.TLSCert != "" && o.KnowsCallers():
		return ""
	case o.TLSCert != "":
		return "no way to know who calls"
	case o.KnowsCallers():
		return "no TLS"
	default:
		return "neither TLS nor a way to know who calls"
	}
}

// checkExposure refuses an address that other machines reach, unless connections are
// encrypted and callers known. The error is an *exit.UsageError.
func (o *Options) checkExposure(listen net.Addr) error {
	lacking := o.findLack(listen)
	if o.InMemory || lacking == "" {
		return nil
	}
	return exit.Usagef("other machines may reach --listen %s, and the server has %s", o.Listen, lacking).
		WithHint("give --tls-cert and --tls-key with --api-keys, --token-issuers or --certificate-rules; " +
			"or --listen 127.0.0.1:7700; or --insecure where a network keeps others out")
}

// checkHTTPExposure refuses an address that other machines reach in plain text, or without a way to
// know who calls.
func (o *Options) checkHTTPExposure(at net.Addr) error {
	switch {
	case o.Insecure || isLocal(at):
		return nil
	case o.TLSCert == "":
		return exit.Usagef("other machines may reach --%s %s, and the server has no TLS", flagHTTP, o.HTTP).
			WithHint("give --tls-cert and --tls-key; or --%s 127.0.0.1:7780 behind a proxy with TLS; or --insecure where a network keeps others out", flagHTTP)
	case !o.KnowsCallers():
		return exit.Usagef("other machines may reach --%s %s, and the server does not know who calls", flagHTTP, o.HTTP).
			WithHint("give --api-keys, --token-issuers or --certificate-rules; or --%s 127.0.0.1:7780", flagHTTP)
	}
	return nil
}

// checkLinksExposure refuses an address that other machines reach in plain text.
func (o *Options) checkLinksExposure(at net.Addr) error {
	if o.Insecure || o.TLSCert != "" || isLocal(at) {
		return nil
	}
	return exit.Usagef("other machines may reach --%s %s, and the server has no TLS", flagLinksAddress, o.LinksAddress).
		WithHint("give --tls-cert and --tls-key; or --%s 127.0.0.1:7790 behind a proxy with TLS; or --insecure where a network keeps others out", flagLinksAddress)
}
