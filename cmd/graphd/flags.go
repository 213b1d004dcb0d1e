package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/graph"
)

// flagHint names the flag that was probably meant.
func flagHint(cmd *cobra.Command, err error) string {
	const unknown = "unknown flag: --"
	name, isUnknown := strings.CutPrefix(err.Error(), unknown)
	if !isUnknown {
		return fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	return strings.TrimPrefix(graph.Suggest(name, known), "; ")
}

// usage makes an error the fault of the command line.
func usage(err error) error { return cli.Usagef("%v", err).WithHint("see --help") }
