package server

import (
	"net"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/web"
)

// LangGraphOptions are those of the API of LangGraph Server.
type LangGraphOptions struct {
	LangGraph               string
	LangGraphOrigins        []string
	LangGraphHosts          []string
	MaxLangGraphConnections int
}

// RegisterFlags registers the options.
func (o *LangGraphOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.LangGraph, flagLangGraph, "", "address to serve clients of LangGraph Server on, HOST:PORT; over HTTP, with --tls-cert over HTTPS (default: not served)")
	f.StringArrayVar(&o.LangGraphOrigins, flagLangGraphOrigin, nil, "site whose pages may call --langgraph, like http://localhost:3000; * permits every site (repeatable)")
	f.StringArrayVar(&o.LangGraphHosts, flagLangGraphHost, nil, "name by which clients reach --langgraph in plain text on this machine, through a proxy; addresses and localhost need none (repeatable)")
	f.IntVar(&o.MaxLangGraphConnections, "max-langgraph-connections", 500, "how many connections --langgraph may have; others wait until one closes")
}

// Names of options that are also used in messages.
const (
	flagLangGraph       = "langgraph"
	flagLangGraphOrigin = "langgraph-origin"
	flagLangGraphHost   = "langgraph-host"
)

// validateLangGraph returns an *exit.UsageError for values that can't work together.
func (o *Options) validateLangGraph() error {
	switch {
	case o.LangGraph == "" && len(o.LangGraphOrigins) > 0:
		return exit.Usagef("--%s needs --%s", flagLangGraphOrigin, flagLangGraph).WithHint("give an address, like --%s 127.0.0.1:2024", flagLangGraph)
	case o.LangGraph == "" && len(o.LangGraphHosts) > 0:
		return exit.Usagef("--%s needs --%s", flagLangGraphHost, flagLangGraph).WithHint("give an address, like --%s 127.0.0.1:2024", flagLangGraph)
	case o.MaxLangGraphConnections < 1 || o.MaxLangGraphConnections > mostHTTPConnections:
		return exit.Usagef("--max-langgraph-connections is %d", o.MaxLangGraphConnections).WithHint("want a number from 1 to %d", mostHTTPConnections)
	}
	for _, origin := range o.LangGraphOrigins {
		if at, err := url.Parse(origin); origin != "*" && (err != nil || at.Scheme == "" || at.Host == "" || at.Scheme+"://"+at.Host != origin) {
			return exit.Usagef("--%s %q is no origin", flagLangGraphOrigin, origin).WithHint("want SCHEME://HOST or SCHEME://HOST:PORT without a path, or *")
		}
	}
	for _, name := range o.LangGraphHosts {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			return exit.Usagef("--%s %q is no name of a host", flagLangGraphHost, name).WithHint("want a name without scheme and port, like graphd.example.com")
		}
	}
	return nil
}

// newLangGraphGuard makes what knows the names of the server, nil = it may have any: with TLS the
// certificate names it, and pages reach an address that is not only of this machine without another
// name.
func (o *Options) newLangGraphGuard(at net.Addr) (*web.Guard, error) {
	if o.TLSCert != "" || !isLocal(at) {
		return nil, nil
	}
	return web.NewGuard(append([]string{}, o.LangGraphHosts...), nil)
}

// checkLangGraphExposure refuses an address that other machines reach in plain text, or without a way
// to know who calls.
func (o *Options) checkLangGraphExposure(at net.Addr) error {
	switch {
	case o.Insecure || isLocal(at):
		return nil
	case o.TLSCert == "":
		return exit.Usagef("other machines may reach --%s %s, and the server has no TLS", flagLangGraph, o.LangGraph).
			WithHint("give --tls-cert and --tls-key; or --%s 127.0.0.1:2024 behind a proxy with TLS; or --insecure where a network keeps others out", flagLangGraph)
	case !o.KnowsCallers():
		return exit.Usagef("other machines may reach --%s %s, and the server does not know who calls", flagLangGraph, o.LangGraph).
			WithHint("give --api-keys, --token-issuers or --certificate-rules; or --%s 127.0.0.1:2024", flagLangGraph)
	}
	return nil
}
