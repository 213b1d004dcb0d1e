package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/argument"
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

// daysValue is the value of a flag: a duration of more than 0, also in days, like 3d.
type daysValue time.Duration

// String is empty without a value: the help shows no default then.
func (d *daysValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type names the value in the help.
func (*daysValue) Type() string { return "duration" }

// Set reads the value.
func (d *daysValue) Set(text string) error {
	parsed, err := argument.ParseDays("", text)
	if err != nil {
		return errors.New("want more than 0, like 2h or 3d")
	}
	*d = daysValue(parsed)
	return nil
}

// asUsageError turns an error into a usage error.
func asUsageError(err error) error { return exit.Usagef("%v", err).WithHint("see --help") }
