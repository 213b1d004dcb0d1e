package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/graph"
)

// flagHint returns the flag that was probably meant.
func flagHint(cmd *cobra.Command, err error) string {
	const unknown = "unknown flag: --"
	name, isUnknown := strings.CutPrefix(err.Error(), unknown)
	if !isUnknown {
		return fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	}
	var known []string
	add := func(f *pflag.Flag) {
		if name := "--" + f.Name; !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return strings.Replace(strings.TrimPrefix(graph.Suggest("--"+name, known), "; "), "?;", "?", 1)
}

// asUsageError turns an error into a usage error.
func asUsageError(err error) error { return exit.Usagef("%v", err).WithHint("see --help") }
