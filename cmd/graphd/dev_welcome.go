package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/server"
)

// welcome is what `dev` tells when it serves: how to call the server, with the token of one that
// knows callers by a key of its own, and from other machines with a copy of the CA.
type welcome struct {
	address string // of gRPC
	made    devSecurity

	page          string   // its link, "" = it is not served
	hasMoved      bool     // the port of the page was taken
	otherServers  []string // addresses by which other machines call
	otherPageURLs []string // links of the page for other machines
}

func newWelcome(s *server.Server, o server.Options, made devSecurity) welcome {
	w := welcome{address: s.Address(), made: made}
	if o.IsExposed() && made.ca != "" {
		w.otherServers = listOwnAddresses(s.Address())
	}
	at, err := url.Parse(s.HTTPURL())
	if err != nil || at.Host == "" {
		return w
	}
	link := func(address string) string {
		page := url.URL{Scheme: at.Scheme, Host: address, Path: "/"}
		if made.token != "" {
			page.Fragment = "t=" + made.token // which no browser sends
		}
		return page.String()
	}
	w.page = link(callableAddress(at.Host))
	_, wanted, err := net.SplitHostPort(o.HTTP)
	w.hasMoved = err == nil && o.HTTPMayMove && wanted != at.Port()
	if o.IsHTTPExposed() {
		for _, address := range listOwnAddresses(at.Host) {
			w.otherPageURLs = append(w.otherPageURLs, link(address))
		}
	}
	return w
}

func (w welcome) printTo(to io.Writer, call shell.Invocation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\ngraphd listens on %s. In another terminal:\n", w.address)
	if w.made.token != "" {
		fmt.Fprintf(&b, "  export GRAPHD_TOKEN=%s\n", w.made.token)
	}
	for _, command := range [][]string{{"graph", "list"}, {"run", "GRAPH", "--thread", "t1", "--input", "{}"}, {"inbox"}} {
		fmt.Fprintf(&b, "  %s\n", call.CommandLine(command...))
	}
	if len(w.otherServers) > 0 {
		fmt.Fprintf(&b, "Other machines need a copy of %s, and call --server %s.\n", w.made.ca, strings.Join(w.otherServers, " or "))
	}
	w.describePage(&b)
	b.WriteByte('\n')
	return output.WriteDocument(to, b.String())
}

// describePage writes the link of the page, and what a browser says of it.
func (w welcome) describePage(b *strings.Builder) {
	if w.page == "" {
		return
	}
	fmt.Fprintf(b, "\nthe page: %s\n", w.page)
	if w.hasMoved {
		_, port, _ := net.SplitHostPort(devPage)
		fmt.Fprintf(b, "Port %s is taken, so this is a free one.\n", port)
	}
	for _, other := range w.otherPageURLs {
		fmt.Fprintf(b, "on other machines: %s\n", other)
	}
	if w.made.token != "" {
		b.WriteString("Open the link yourself: it has the token, with which everybody is an admin here.\n")
	}
	if w.made.ca != "" {
		fmt.Fprintf(b, "The browser does not know the CA and warns: on this machine go on past the warning, on another one import %s first.\n",
			w.made.ca)
	}
}
