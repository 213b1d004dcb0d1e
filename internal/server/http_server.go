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
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// httpServer serves HTTP at one address: the page, links, or metrics. Its methods may be called on
// nil, which serves nothing.
type httpServer struct {
	listener net.Listener
	isSecure bool
	http     *http.Server // nil = not built yet
}

// listenHTTP begins to listen at an address for a purpose, and names the option in the error, which
// is an *exit.HintError.
func listenHTTP(address, purpose, flag string) (*httpServer, error) {
	at, err := net.Listen("tcp", address) //nolint:noctx // has no effect on listening
	if err != nil {
		return nil, &exit.HintError{
			Err: fmt.Errorf("can't listen for %s: %w", purpose, err), Hint: fmt.Sprintf("choose another address with --%s HOST:PORT", flag),
		}
	}
	return &httpServer{listener: at}, nil
}

// limitConnections lets further connections wait until one closes.
func (h *httpServer) limitConnections(most int) { h.listener = netutil.LimitListener(h.listener, most) }

// encrypt serves HTTPS, unless config is nil.
func (h *httpServer) encrypt(config *tls.Config) {
	if config != nil {
		h.isSecure, h.listener = true, tls.NewListener(h.listener, config)
	}
}

// setServer has requests served by a server, whose log tells of single connections, like one that
// is no TLS, and is dropped.
func (h *httpServer) setServer(server *http.Server) {
	server.ErrorLog = stdlog.New(io.Discard, "", 0)
	h.http = server
}

// address returns the address of the server, "" of nil.
func (h *httpServer) address() string {
	if h == nil {
		return ""
	}
	return h.listener.Addr().String()
}

// url returns the URL of the server, "" of nil.
func (h *httpServer) url() string {
	switch {
	case h == nil:
		return ""
	case h.isSecure:
		return "https://" + h.address()
	}
	return "http://" + h.address()
}

// serve serves requests in the background. failed gets the error when serving ends by itself.
func (h *httpServer) serve(purpose string, failed chan<- error) {
	if h == nil || h.http == nil {
		return
	}
	go func() {
		if err := h.http.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving %s: %w", purpose, err)
		}
	}()
}

// drain lets requests finish, for as long as ctx allows.
func (h *httpServer) drain(ctx context.Context) {
	if h != nil && h.http != nil {
		_ = h.http.Shutdown(ctx) // what is left is cut
	}
}

// close stops serving at once.
func (h *httpServer) close() error {
	switch {
	case h == nil:
		return nil
	case h.http == nil:
		return ignoreClosed(h.listener.Close())
	}
	return errors.Join(h.http.Close(), ignoreClosed(h.listener.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// readHTTPTLS reads the files of TLS for a server of HTTP in these versions. clientCA is the
// file with the CAs of clients, "" = they present no certificates. nil = plain text. The error is
// an *exit.UsageError.
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
