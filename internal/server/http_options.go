package server

import (
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// HTTPOptions are those of the API for browsers.
type HTTPOptions struct {
	HTTP               string
	HTTPMayMove        bool // another port of the host is taken when that of HTTP can't be had
	HTTPHosts          []string
	HTTPOrigins        []string
	MaxHTTPConnections int
}

// RegisterFlags registers the options.
func (o *HTTPOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.HTTP, flagHTTP, "", "address to serve browsers on, HOST:PORT: the page at /, and the API; over HTTP, with --tls-cert over HTTPS (default: not served)")
	f.StringArrayVar(&o.HTTPHosts, flagHTTPHost, nil, "name by which browsers reach --http in plain text, behind a proxy; addresses, localhost and the name in --http-url need none (repeatable)")
	f.StringArrayVar(&o.HTTPOrigins, flagHTTPOrigin, nil, "other site whose pages may call the API, like https://app.example.com (repeatable)")
	f.IntVar(&o.MaxHTTPConnections, "max-http-connections", 500, "how many connections --http may have; others wait until one closes")
}

// Names of options that are also used in messages.
const (
	flagHTTP       = "http"
	flagHTTPHost   = "http-host"
	flagHTTPOrigin = "http-origin"
)

const mostHTTPConnections = 1 << 20

// validateHTTP returns an *exit.UsageError for values that can't work together.
func (o *Options) validateHTTP() error {
	switch {
	case o.HTTP == "" && len(o.HTTPHosts) > 0:
		return exit.Usagef("--%s needs --%s", flagHTTPHost, flagHTTP).WithHint("give an address, like --http 127.0.0.1:7780")
	case o.HTTP == "" && len(o.HTTPOrigins) > 0:
		return exit.Usagef("--%s needs --%s", flagHTTPOrigin, flagHTTP).WithHint("give an address, like --http 127.0.0.1:7780")
	case o.MaxHTTPConnections < 1 || o.MaxHTTPConnections > mostHTTPConnections:
		return exit.Usagef("--max-http-connections is %d", o.MaxHTTPConnections).WithHint("want a number from 1 to %d", mostHTTPConnections)
	}
	for _, name := range o.HTTPHosts {
		if name == "" || strings.ContainsAny(name, "/:@ *") {
			return exit.Usagef("--%s %q is no name of a host", flagHTTPHost, name).WithHint("want a name without scheme and port, like graphd.example.com")
		}
	}
	return nil
}

// listHTTPHosts lists the names by which browsers reach the server in plain text, nil = any name.
func (o *Options) listHTTPHosts() []string {
	if o.TLSCert != "" {
		return nil // the certificate names the server
	}
	hosts := append([]string{}, o.HTTPHosts...)
	if at, err := url.Parse(o.HTTPURL); err == nil && at.Hostname() != "" {
		hosts = append(hosts, at.Hostname())
	}
	return hosts
}
