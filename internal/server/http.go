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
	"github.com/graphd-dev/graphd/internal/web"
	"github.com/graphd-dev/graphd/page"
)

// httpServer serves the API to browsers.
type httpServer struct {
	listener net.Listener
	calls    *web.Listener
	http     *http.Server
	address  string
	isSecure bool
}

// Bounds of a request of a browser.
const (
	httpHeaderTimeout = 5 * time.Second
	httpReadTimeout   = 30 * time.Second
	httpIdleTimeout   = 2 * time.Minute
	maxHTTPHeader     = 48 << 10
)

// openHTTP begins to listen, nil without an address. The error is an *exit.UsageError or an
// *exit.HintError.
func (o *Options) openHTTP(callers *callerFiles, log *zap.Logger) (*httpServer, error) {
	if o.HTTP == "" {
		return nil, nil
	}
	at, err := o.listenHTTP()
	if err != nil {
		return nil, &exit.HintError{
			Err: fmt.Errorf("can't listen for browsers: %w", err), Hint: "choose another address with --http HOST:PORT",
		}
	}
	h := &httpServer{listener: netutil.LimitListener(at, o.MaxHTTPConnections), calls: web.NewListener(), address: at.Addr().String()}
	if err := o.checkHTTPExposure(at.Addr()); err != nil {
		return h, err
	}
	if err := h.buildServer(o, callers, log); err != nil {
		return h, err
	}
	secure, err := o.readHTTPTLS(log, o.TLSClientCA, "h2", "http/1.1")
	if err == nil && secure != nil {
		h.isSecure, h.listener = true, tls.NewListener(h.listener, secure)
	}
	return h, err
}

// listenHTTP listens on the address for browsers, or on a free port of its host.
func (o *Options) listenHTTP() (net.Listener, error) {
	at, err := net.Listen("tcp", o.HTTP) //nolint:noctx // has no effect on listening
	if err == nil || !o.HTTPMayMove {
		return at, err
	}
	host, _, wrong := net.SplitHostPort(o.HTTP)
	if wrong != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // has no effect on listening
}

// buildServer makes the HTTP server.
func (h *httpServer) buildServer(o *Options, callers *callerFiles, log *zap.Logger) error {
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
		Services: web.Services(), Listener: h.calls, MaxMessageBytes: o.MaxMessage, MaxIncoming: o.MaxIncoming,
		RequestPatience: httpReadTimeout, StallTimeout: o.Stall, OnPanic: contain.LogPanic(log, "a request of a browser panicked"),
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
	h.http = &http.Server{
		Handler: guard.Protect(web.Handler(shown, signIn, facade)), ConnState: facade.TrackState, ReadHeaderTimeout: httpHeaderTimeout, ReadTimeout: httpReadTimeout,
		IdleTimeout: httpIdleTimeout, MaxHeaderBytes: maxHTTPHeader,
		ErrorLog: stdlog.New(io.Discard, "", 0), // it tells of single connections, like one that is no TLS
	}
	return nil
}

// serveHTTP serves browsers in the background.
func (s *Server) serveHTTP() {
	if s.http == nil {
		return
	}
	go func() {
		if err := s.grpc.ServeRelayed(s.http.calls); err != nil {
			s.serveErrors <- fmt.Errorf("serving calls of browsers: %w", err)
		}
	}()
	go func() {
		if err := s.http.http.Serve(s.http.listener); !errors.Is(err, http.ErrServerClosed) {
			s.serveErrors <- fmt.Errorf("serving browsers: %w", err)
		}
	}()
}

// HTTPURL returns the URL of the API for browsers, "" = it is not served.
func (s *Server) HTTPURL() string {
	switch {
	case s.http == nil:
		return ""
	case s.http.isSecure:
		return "https://" + s.http.address
	}
	return "http://" + s.http.address
}

// drainRequests lets requests finish, for as long as ctx allows.
func (h *httpServer) drainRequests(ctx context.Context) {
	if h != nil && h.http != nil {
		_ = h.http.Shutdown(ctx) // what is left is cut
	}
}

// closeRequests stops serving at once.
func (h *httpServer) closeRequests() error {
	switch {
	case h == nil:
		return nil
	case h.http != nil:
		return errors.Join(h.http.Close(), ignoreClosed(h.listener.Close()), h.calls.Close())
	}
	return errors.Join(ignoreClosed(h.listener.Close()), h.calls.Close())
}
