package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/web"
	"github.com/graphd-dev/graphd/page"
)

// browserServer serves the page and the API to browsers.
type browserServer struct {
	*httpServer

	calls *web.Listener // what the gRPC server accepts their calls from
}

// Bounds of a request of a browser.
const (
	httpHeaderTimeout = 5 * time.Second
	httpReadTimeout   = 30 * time.Second
	httpIdleTimeout   = 2 * time.Minute
	maxHTTPHeader     = 48 << 10
	maxHTTPStreams    = 100 // of a connection of HTTP/2; the page has some ten
)

// openHTTP begins to listen, nil without an address. The error is an *exit.UsageError or an
// *exit.HintError.
func (o *Options) openHTTP(callers *callerFiles, log *zap.Logger) (*browserServer, error) {
	if o.HTTP == "" {
		return nil, nil
	}
	listening, err := o.listenForBrowsers()
	if err != nil {
		return nil, err
	}
	b := &browserServer{httpServer: listening, calls: web.NewListener()}
	if err := o.checkHTTPExposure(b.listener.Addr()); err != nil {
		return b, err
	}
	b.limitConnections(o.MaxHTTPConnections)
	if err := b.buildServer(o, callers, log); err != nil {
		return b, err
	}
	secure, err := o.readHTTPTLS(log, o.TLSClientCA, "h2", "http/1.1")
	b.encrypt(secure)
	return b, err
}

// listenForBrowsers listens on the address for browsers, or on a free port of its host.
func (o *Options) listenForBrowsers() (*httpServer, error) {
	listening, err := listenHTTP(o.HTTP, "browsers", flagHTTP)
	if err == nil || !o.HTTPMayMove {
		return listening, err
	}
	host, _, wrong := net.SplitHostPort(o.HTTP)
	if wrong != nil {
		return nil, err
	}
	return listenHTTP(net.JoinHostPort(host, "0"), "browsers", flagHTTP)
}

// buildServer makes the HTTP server.
func (b *browserServer) buildServer(o *Options, callers *callerFiles, log *zap.Logger) error {
	hosts := o.listHTTPHosts()
	guard, err := web.NewGuard(hosts, o.HTTPOrigins)
	if err != nil {
		return exit.Usagef("--%s: %v", flagHTTPOrigin, err)
	}
	if err := o.openProxy(callers); err != nil {
		return err
	}
	signIn, err := o.openSignIn(callers, log)
	if err != nil {
		return err
	}
	facade, err := web.New(web.Options{
		Callers:  web.CallerParts{SessionCookie: signIn.SessionCookie(), UserHeader: o.TrustHeader, GroupsHeader: o.TrustGroupsHeader},
		Services: web.Services(), Listener: b.calls, MaxMessageBytes: o.MaxMessage, MaxIncoming: o.MaxIncoming,
		MaxUnread: o.MaxUnread, StallTimeout: o.Stall, OnPanic: contain.LogPanic(log, "a request of a browser panicked"),
	})
	if err != nil {
		return err
	}
	files, err := page.Files()
	if err != nil {
		return err
	}
	shown, err := web.NewPage(files)
	if err != nil {
		return err
	}
	b.setServer(&http.Server{
		Handler: guard.Protect(web.Handler(shown, signIn, facade)), ConnContext: facade.AddConnection, ConnState: facade.TrackState,
		ReadHeaderTimeout: httpHeaderTimeout, ReadTimeout: httpReadTimeout,
		WriteTimeout: o.Stall, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: maxHTTPHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxHTTPStreams, WriteByteTimeout: o.Stall, SendPingTimeout: httpIdleTimeout},
	})
	return nil
}

// serveHTTP serves browsers in the background.
func (s *Server) serveHTTP() {
	if s.browsers == nil {
		return
	}
	s.browsers.calls.SetServer(s.grpc)
	go func() {
		if err := s.grpc.ServeRelayed(s.browsers.calls); err != nil {
			s.serveErrors <- fmt.Errorf("serving calls of browsers: %w", err)
		}
	}()
	s.browsers.serve("browsers", s.serveErrors)
}

// HTTPURL returns the URL of the page and of the API for browsers, "" = they are not served.
func (s *Server) HTTPURL() string {
	if s.browsers == nil {
		return ""
	}
	return s.browsers.url()
}

// drain lets requests finish, for as long as ctx allows.
func (b *browserServer) drain(ctx context.Context) {
	if b != nil {
		b.httpServer.drain(ctx)
	}
}

// close stops serving at once.
func (b *browserServer) close() error {
	if b == nil {
		return nil
	}
	return errors.Join(b.httpServer.close(), b.calls.Close())
}
