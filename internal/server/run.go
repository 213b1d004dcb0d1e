package server

import (
	"context"
	"errors"
	"net"

	"go.uber.org/zap"
)

// Environment has the properties of the process that runs a server.
type Environment struct {
	Version string
	Getenv  func(string) string
}

// RunServer runs a server until ctx ends, and drains it. It calls ready when the
// server serves; ready may be nil. Errors: those of NewServer, of serving, and of
// DrainServer.
func RunServer(ctx context.Context, o Options, log *zap.Logger, own Environment, ready func(*Server)) error {
	raiseGCPercent(own.Getenv)
	limitMemory(log)
	go returnUnusedMemory(ctx)
	life := context.WithoutCancel(ctx)
	s, err := NewServer(life, o, log, own.Version)
	if err != nil {
		return err
	}
	s.StartServing()
	fields := []zap.Field{zap.String("address", s.Address()), zap.String("version", own.Version)}
	if at := s.MetricsAddress(); at != "" {
		fields = append(fields, zap.String("metrics", at))
	}
	if at := s.LinksURL(); at != "" {
		fields = append(fields, zap.String("links", at))
	}
	if at := s.HTTPURL(); at != "" {
		fields = append(fields, zap.String("http", at))
	}
	if at := s.LangGraphURL(); at != "" {
		fields = append(fields, zap.String("langgraph", at))
	}
	log.Info("serving", fields...)
	if ready != nil {
		ready(s)
	}
	var failed error
	select {
	case <-ctx.Done():
		log.Info("draining", zap.Duration("timeout", o.DrainTimeout))
	case failed = <-s.serveErrors:
	}
	limit, cancel := context.WithTimeout(life, o.DrainTimeout)
	defer cancel()
	err = errors.Join(failed, s.DrainServer(limit))
	if err == nil || errors.Is(err, net.ErrClosed) {
		log.Info("stopped")
	}
	return err
}
