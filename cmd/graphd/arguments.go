package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// exactArgs is cobra.ExactArgs with an error that names the missing arguments.
func exactArgs(names ...string) cobra.PositionalArgs { return argsBetween(len(names), names...) }

// argsBetween accepts at least `least` of the named arguments.
func argsBetween(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exit.Usagef("%s: %s is missing", cmd.CommandPath(), names[len(args)]).
				WithHint("%s", cmd.UseLine())
		case len(args) > len(names):
			return exit.Usagef("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)]).
				WithHint("%s; %s", cmd.UseLine(), quotingHint(names))
		}
		return nil
	}
}

// quotingHint says what to quote when the shell has made several arguments of one.
func quotingHint(names []string) string {
	if slices.Contains(names, "TEXT") {
		return "quote the text"
	}
	return "quote JSON with single quotes"
}

// refuseArgs refuses arguments of a command that only has subcommands.
func refuseArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		slices.Sort(near)
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("unknown command %q for %q", args[0], cmd.CommandPath()).WithHint("%s", hint)
}
