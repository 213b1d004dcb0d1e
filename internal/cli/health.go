package cli

import (
	"context"
	"strings"

	"google.golang.org/grpc/health/grpc_health_v1"
)

// CheckHealth asks the server whether it takes work; ExitCodeError with 1 when not.
func (s *Session) CheckHealth(ctx context.Context) error {
	resp, err := s.Health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	status := resp.GetStatus()
	if s.Format != Text {
		err = s.showMessage(resp)
	} else {
		p := s.newPrinter()
		p.printLine("%s", strings.ToLower(status.String()))
		err = p.writeError()
	}
	if err == nil && status != grpc_health_v1.HealthCheckResponse_SERVING {
		return &ExitCodeError{Code: ExitError}
	}
	return err
}
