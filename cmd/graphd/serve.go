package main

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/telemetry"
)

func (p *program) serveCommand() *cobra.Command {
	var o serverOptions
	var untilInputEnds bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve graphs over gRPC",
		Long: `Serve graphs over gRPC until SIGINT or SIGTERM; then finish what runs and tell every
stream where to go on. A second signal stops at once.

Every flag may also be an environment variable (GRAPHD_STORE for --store; several folders in
GRAPHD_GRAPHS are separated like those in PATH) or a line of the YAML file that --config names
(store: sqlite:graphd.db). Flags win over the environment, the environment over the file.`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.completeOptions(cmd.Flags(), p.getenv); err != nil {
				return err
			}
			log, err := p.newLogger(o)
			if err != nil {
				return err
			}
			log.Info("configuration", o.logFields()...)
			ctx := cmd.Context()
			if untilInputEnds {
				var stop context.CancelFunc
				ctx, stop = context.WithCancel(ctx)
				go stopAtEOF(p.In, stop)
			}
			return runServer(ctx, o, log, environment{version: p.version, getenv: p.getenv}, nil)
		},
	}
	o.registerFlags(cmd.Flags())
	cmd.Flags().BoolVar(&untilInputEnds, "until-input-ends", false,
		"stop when standard input ends; a program that starts a server keeps it open, so that the server ends with it")
	return cmd
}

// stopAtEOF calls stop when a reader has no more to say.
func stopAtEOF(r io.Reader, stop func()) {
	_, _ = io.Copy(io.Discard, r) // however it ends, it has ended
	stop()
}

// newLogger makes the log of a server; people get lines to read.
func (p *program) newLogger(o serverOptions) (*zap.Logger, error) {
	format := o.LogFormat
	if format == "" {
		format = telemetry.FormatJSON
		if p.isErrTerminal {
			format = telemetry.FormatConsole
		}
	}
	log, err := telemetry.NewLogger(format, o.LogLevel)
	if _, wrong := errors.AsType[*telemetry.OptionError](err); wrong {
		return nil, asUsageError(err)
	}
	if err == nil && p.environ != nil {
		for _, text := range unknownVariables(p.environ()) {
			log.Warn(text)
		}
	}
	return log, err
}

// environment is what a server knows of where it runs.
type environment struct {
	version string
	getenv  func(string) string
}

// runServer runs a server until ctx ends, and drains it. ready is told when it
// serves; it may be nil.
func runServer(ctx context.Context, o serverOptions, log *zap.Logger, own environment, ready func(*server)) error {
	raiseGCPercent(own.getenv)
	limitMemory(log)
	go returnUnusedMemory(ctx)
	life := context.WithoutCancel(ctx)
	s, err := newServer(life, o, log, own.version)
	if err != nil {
		return err
	}
	s.startServing()
	fields := []zap.Field{zap.String("address", s.address()), zap.String("version", own.version)}
	if s.metricsListener != nil {
		fields = append(fields, zap.String("metrics", s.metricsListener.Addr().String()))
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
	err = errors.Join(failed, s.drainServer(limit))
	if err == nil || errors.Is(err, net.ErrClosed) {
		log.Info("stopped")
	}
	return err
}
