package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/telemetry"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/linkmaker"
	"github.com/graphd-dev/graphd/internal/transport/linkpage"
)

// linkServer makes links, and serves their pages.
type linkServer struct {
	keys     link.Keys
	url      string
	listener net.Listener // nil = another server serves the pages
	http     *http.Server // nil = not built yet
}

// Bounds of a request for a page.
const (
	linkHeaderTimeout = 5 * time.Second
	linkReadTimeout   = 20 * time.Second
	linkWriteTimeout  = 40 * time.Second
	linkIdleTimeout   = time.Minute
	maxLinkHeader     = 16 << 10
)

// openLinks reads the keys of links and begins to listen, nil without keys. The error is an
// *exit.UsageError or an *exit.HintError.
func (o *Options) openLinks(log *zap.Logger) (*linkServer, error) {
	if o.LinkKeys == "" {
		return nil, nil
	}
	keys, err := o.readLinkKeys(log)
	if err != nil {
		return nil, err
	}
	l := &linkServer{keys: keys, url: o.LinksURL}
	if o.LinksAddress == "" {
		return l, nil
	}
	at, err := net.Listen("tcp", o.LinksAddress) //nolint:noctx // has no effect on listening
	if err != nil {
		return nil, &exit.HintError{
			Err: fmt.Errorf("can't listen for links: %w", err), Hint: "choose another address with --links-address HOST:PORT",
		}
	}
	l.listener = netutil.LimitListener(at, o.MaxLinkConnections)
	if err := o.checkLinksExposure(at.Addr()); err != nil {
		return l, err
	}
	secure, err := o.readHTTPTLS(log, "", "http/1.1")
	if err != nil {
		return l, err
	}
	scheme := "http://"
	if secure != nil {
		scheme, l.listener = "https://", tls.NewListener(l.listener, secure)
	}
	if l.url == "" {
		l.url = scheme + at.Addr().String()
	}
	return l, nil
}

// readHTTPTLS reads the files of TLS for a server of HTTP in these versions. clientCA is the
// file with the CAs of clients, "" = they present no certificates. nil = plain text.
func (o *Options) readHTTPTLS(log *zap.Logger, clientCA string, versions ...string) (*tls.Config, error) {
	if o.TLSCert == "" {
		return nil, nil
	}
	files, err := tlsfiles.OpenServer(tlsfiles.ServerFiles{Cert: o.TLSCert, Key: o.TLSKey, ClientCA: clientCA}, log.Named("tls"), time.Now)
	if err != nil {
		return nil, explainTLSFile(err)
	}
	config := files.Config()
	current := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now, err := current(hello)
		if err != nil {
			return nil, err
		}
		now = now.Clone()
		now.NextProtos = versions
		return now, nil
	}
	return config, nil
}

// newLinkMaker returns what makes links, nil without keys.
func (s *Server) newLinkMaker(o Options) transport.LinkMaker {
	if s.links == nil {
		return nil
	}
	return &linkmaker.Maker{Keys: s.links.keys, BaseURL: s.links.url, MaxValid: o.MaxLinkValid, Now: s.Engine.Now}
}

// buildLinks makes the server of the pages, if there is a listener.
func (s *Server) buildLinks(metrics *telemetry.Metrics) error {
	if s.links == nil || s.links.listener == nil {
		return nil
	}
	pages, err := linkpage.New(linkpage.Options{
		Keys: s.links.keys, Calls: s.grpc.Local(), IsDraining: s.isDraining.Load, Now: s.Engine.Now, Observer: metrics,
		OnPanic: contain.LogPanic(s.log.Named("links"), "a page of a link panicked"),
	})
	if err != nil {
		return err
	}
	s.links.http = &http.Server{
		Handler: pages, ReadHeaderTimeout: linkHeaderTimeout, ReadTimeout: linkReadTimeout, WriteTimeout: linkWriteTimeout,
		IdleTimeout: linkIdleTimeout, MaxHeaderBytes: maxLinkHeader,
		ErrorLog: stdlog.New(io.Discard, "", 0), // it tells of single connections, like one that is no TLS
	}
	return nil
}

// serveLinks serves pages in the background.
func (s *Server) serveLinks() {
	if s.links == nil || s.links.http == nil {
		return
	}
	go func() {
		if err := s.links.http.Serve(s.links.listener); !errors.Is(err, http.ErrServerClosed) {
			s.serveErrors <- fmt.Errorf("serving links: %w", err)
		}
	}()
}

// LinksURL returns the URL that precedes the paths of links, "" = the server makes none.
func (s *Server) LinksURL() string {
	if s.links == nil {
		return ""
	}
	return s.links.url
}

// drainPages lets requests finish, for as long as ctx allows.
func (l *linkServer) drainPages(ctx context.Context) {
	if l != nil && l.http != nil {
		_ = l.http.Shutdown(ctx) // what is left is cut
	}
}

// closePages stops serving at once.
func (l *linkServer) closePages() error {
	switch {
	case l == nil || l.listener == nil:
		return nil
	case l.http != nil:
		return errors.Join(l.http.Close(), ignoreClosed(l.listener.Close()))
	}
	return ignoreClosed(l.listener.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
