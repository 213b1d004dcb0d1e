package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/agentserver"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/web"
)

// langGraphServer serves the API of LangGraph Server.
type langGraphServer struct {
	*httpServer

	calls *web.Listener // what the gRPC server accepts its calls from
}

// openLangGraph begins to listen, nil without an address. The error is an *exit.UsageError or an
// *exit.HintError.
func (o *Options) openLangGraph(version string, log *zap.Logger) (*langGraphServer, error) {
	if o.LangGraph == "" {
		return nil, nil
	}
	listening, err := listenHTTP(o.LangGraph, "clients of LangGraph Server", flagLangGraph)
	if err != nil {
		return nil, err
	}
	l := &langGraphServer{httpServer: listening, calls: web.NewListener()}
	if err := o.checkLangGraphExposure(l.listener.Addr()); err != nil {
		return l, err
	}
	l.limitConnections(o.MaxLangGraphConnections)
	if err := l.buildServer(o, version, log); err != nil {
		return l, err
	}
	secure, err := o.readHTTPTLS(log, o.TLSClientCA, "h2", "http/1.1")
	l.encrypt(secure)
	return l, err
}

// buildServer makes the HTTP server.
func (l *langGraphServer) buildServer(o *Options, version string, log *zap.Logger) error {
	guard, err := o.newLangGraphGuard(l.listener.Addr())
	if err != nil {
		return err
	}
	allowed, err := o.parsePatterns()
	if err != nil {
		return err
	}
	door := web.NewDoor(web.DoorOptions{
		Listener: l.calls, MaxMessageBytes: o.MaxMessage, MaxIncoming: o.MaxIncoming, MaxUnread: o.MaxUnread,
		Callers: web.CallerParts{UserHeader: o.TrustHeader, GroupsHeader: o.TrustGroupsHeader},
	})
	api := agentserver.New(agentserver.Options{
		Door: door, Origins: o.LangGraphOrigins, Hosts: guard, Version: version, StallTimeout: o.Stall,
		CheckWebhook: func(url string) error { return checkRunWebhook(allowed, url) },
		OnPanic:      contain.LogPanic(log, "a request of a client of LangGraph Server panicked"),
	})
	l.setServer(&http.Server{
		Handler: api, ConnContext: door.AddConnection, ConnState: door.TrackState,
		ReadHeaderTimeout: httpHeaderTimeout, ReadTimeout: httpReadTimeout,
		WriteTimeout: o.Stall, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: maxHTTPHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxHTTPStreams, WriteByteTimeout: o.Stall, SendPingTimeout: httpIdleTimeout},
	})
	return nil
}

// serveLangGraph serves clients of LangGraph Server in the background.
func (s *Server) serveLangGraph() {
	if s.langGraph == nil {
		return
	}
	s.langGraph.calls.SetServer(s.grpc)
	go func() {
		if err := s.grpc.ServeRelayed(s.langGraph.calls); err != nil {
			s.serveErrors <- fmt.Errorf("serving calls of clients of LangGraph Server: %w", err)
		}
	}()
	s.langGraph.serve("clients of LangGraph Server", s.serveErrors)
}

// LangGraphURL returns the URL for clients of LangGraph Server, "" = they are not served.
func (s *Server) LangGraphURL() string {
	if s.langGraph == nil {
		return ""
	}
	return s.langGraph.url()
}

// drain lets requests finish, for as long as ctx allows.
func (l *langGraphServer) drain(ctx context.Context) {
	if l != nil {
		l.httpServer.drain(ctx)
	}
}

// close stops serving at once.
func (l *langGraphServer) close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.httpServer.close(), l.calls.Close())
}
