package cli

import (
	"context"
	"strings"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// CheckHealth asks the server whether it takes work, or serves a service. The error is an
// exit.StatusError with code 1 when it does not.
func (s *Session) CheckHealth(ctx context.Context, service string) error {
	resp, err := s.Health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		return err
	}
	status := resp.GetStatus()
	if s.Format != output.Text {
		err = s.ShowMessage(resp)
	} else {
		p := s.NewPrinter()
		p.PrintLine("%s", strings.ToLower(status.String()))
		err = p.WriteError()
	}
	if err == nil && status != grpc_health_v1.HealthCheckResponse_SERVING {
		return &exit.StatusError{Code: exit.CodeError}
	}
	return err
}
