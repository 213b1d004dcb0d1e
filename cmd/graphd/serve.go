package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

func (p *program) serveCommand() *cobra.Command {
	var o server.Options
	var untilInputEnds bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve graphs over gRPC",
		Long: `Serve graphs over gRPC until SIGINT or SIGTERM; then finish what runs and tell every
stream where to go on. A second signal stops at once.

With --http browsers are served, too: the page at /, and the API. People sign in there with a token or, with
--http-sign-in-issuer, at an OpenID Connect provider; --http-trust-header takes the word of a proxy for who they are.

Every flag may also be an environment variable (GRAPHD_STORE for --store; several folders in GRAPHD_GRAPHS are
separated like those in PATH, several values of others by commas) or a line of the YAML file that --config names
(store: sqlite:graphd.db). Flags win over the environment, the environment over the file.

OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of OpenTelemetry send traces to a collector.`,
		Example: `  graphd serve --store sqlite:graphd.db --graphs graphs --http 127.0.0.1:7780
  graphd serve --http 0.0.0.0:7780 --http-url https://graphd.example.com --tls-cert server.pem --tls-key server-key.pem \
    --token-issuers issuers.yaml --access access.yaml --http-session-key-file session-keys \
    --http-sign-in-issuer https://login.example.org --http-sign-in-client graphd --http-sign-in-secret-file client-secret`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.CompleteOptions(cmd.Flags(), p.getenv); err != nil {
				return err
			}
			log, err := p.newLogger(o)
			if err != nil {
				return err
			}
			log.Info("configuration", o.LogFields()...)
			ctx := cmd.Context()
			if untilInputEnds {
				var stop context.CancelFunc
				ctx, stop = context.WithCancel(ctx)
				go stopAtEOF(p.In, stop)
			}
			return server.RunServer(ctx, o, log, server.Environment{Version: p.version, Getenv: p.getenv}, nil)
		},
	}
	o.RegisterFlags(cmd.Flags())
	cmd.Flags().BoolVar(&untilInputEnds, "until-input-ends", false,
		"stop when standard input ends; a program that starts a server keeps it open, so that the server ends with it")
	return cmd
}

// stopAtEOF calls stop at the end of a reader.
func stopAtEOF(r io.Reader, stop func()) {
	_, _ = io.Copy(io.Discard, r) // an error ends it as well
	stop()
}

// newLogger makes the log of a server, in a readable format for people.
func (p *program) newLogger(o server.Options) (*zap.Logger, error) {
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
		for _, text := range server.UnknownVariables(p.environ()) {
			log.Warn(text)
		}
	}
	return log, err
}
