package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) healthCommand() *cobra.Command {
	var timeout time.Duration
	var service string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the server whether it takes work; exit code 0 or 1",
		Args:  exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return p.withSession(func(s *cli.Session) error { return s.CheckHealth(ctx, service) })
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	cmd.Flags().StringVar(&service, "service", "", "service to ask for; reads: whether the process serves, also while the store takes no changes")
	return cmd
}
