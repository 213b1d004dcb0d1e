package server

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/telemetry"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/linkmaker"
	"github.com/graphd-dev/graphd/internal/transport/linkpage"
)

// linkServer makes links, and serves their pages.
type linkServer struct {
	keys  link.Keys
	url   string
	pages *httpServer // nil = another server serves them
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
	if l.pages, err = listenHTTP(o.LinksAddress, "links", flagLinksAddress); err != nil {
		return nil, err
	}
	if err := o.checkLinksExposure(l.pages.listener.Addr()); err != nil {
		return l, err
	}
	l.pages.limitConnections(o.MaxLinkConnections)
	secure, err := o.readHTTPTLS(log, "", "http/1.1")
	if err != nil {
		return l, err
	}
	l.pages.encrypt(secure)
	if l.url == "" {
		l.url = l.pages.url()
	}
	return l, nil
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
	if s.links == nil || s.links.pages == nil {
		return nil
	}
	pages, err := linkpage.New(linkpage.Options{
		Keys: s.links.keys, Calls: s.grpc.Local(), IsDraining: s.isDraining.Load, Now: s.Engine.Now, Observer: metrics,
		OnPanic: contain.LogPanic(s.log.Named("links"), "a page of a link panicked"),
	})
	if err != nil {
		return err
	}
	s.links.pages.setServer(&http.Server{
		Handler: pages, ReadHeaderTimeout: linkHeaderTimeout, ReadTimeout: linkReadTimeout, WriteTimeout: linkWriteTimeout,
		IdleTimeout: linkIdleTimeout, MaxHeaderBytes: maxLinkHeader,
	})
	return nil
}

// LinksURL returns the URL that precedes the paths of links, "" = the server makes none.
func (s *Server) LinksURL() string {
	if s.links == nil {
		return ""
	}
	return s.links.url
}

// findPages returns the server of the pages, nil = there is none.
func (l *linkServer) findPages() *httpServer {
	if l == nil {
		return nil
	}
	return l.pages
}
