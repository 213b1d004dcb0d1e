package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// referencePage is the page of all commands and options.
const referencePage = "../../docs/cli.md"

var updateReference = flag.Bool("update-reference", false, "write docs/cli.md instead of comparing it")

// The page of the command line matches the commands; `make generate` writes it.
func TestCommandReference(t *testing.T) {
	p := &program{getenv: func(string) string { return "" }, invocation: []string{"graphd"}, version: "test"}
	page := writeReference(p.newRootCommand())
	if *updateReference {
		require.NoError(t, os.WriteFile(referencePage, []byte(page), 0o600))
	}
	written, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "docs/cli.md is not what the commands say: run `make cli-reference`")
}

// writeReference writes the whole page: a list of the commands, then each of them.
func writeReference(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Command line

Every command and option of `+"`graphd`"+`, as `+"`graphd COMMAND --help`"+` shows them. `+"`make generate`"+` writes this page from the
commands; do not edit it.

%s

Where a command takes JSON, `+"`@FILE`"+` reads a file and `+"`-`"+` reads standard input.

`, lastParagraph(root.Long))
	commands := listCommands(root)
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "| %s | |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range commands {
			if topCommand(c).GroupID == group.ID {
				fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchorOf(c), c.Short)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("[`graphd version`](#graphd-version) prints the version.\n\n## Options of every command\n\n")
	writeFlags(&b, root.PersistentFlags())
	for _, c := range commands {
		writeCommand(&b, c)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// listCommands lists the commands below one, each before its own subcommands.
func listCommands(c *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(append(list, sub), listCommands(sub)...)
		}
	}
	return list
}

// writeCommand writes the section of one command.
func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", c.CommandPath(), strings.TrimSuffix(cmp.Or(c.Long, c.Short), "."))
	if c.Runnable() && !c.HasAvailableSubCommands() || c.LocalNonPersistentFlags().HasAvailableFlags() {
		fmt.Fprintf(b, "```\n%s\n```\n\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	if c.Name() == "dev" {
		b.WriteString("It takes the options of [`graphd serve`](#graphd-serve), and\n\n")
		writeFlags(b, furtherFlags(c, "serve"))
		return
	}
	writeFlags(b, c.LocalNonPersistentFlags())
}

// furtherFlags returns the flags of a command that its neighbour lacks.
func furtherFlags(c *cobra.Command, neighbour string) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, other := range c.Parent().Commands() {
		if other.Name() != neighbour {
			continue
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if other.LocalNonPersistentFlags().Lookup(f.Name) == nil {
				flags.AddFlag(f)
			}
		})
	}
	return flags
}

// writeFlags writes a table of options, if there are any.
func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("| option | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		shown := ""
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			shown = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, shown, strings.ReplaceAll(usage, "|", "\\|"))
	})
	b.WriteString("\n")
}

// lastParagraph returns the exit codes, which end the help of the program.
func lastParagraph(text string) string { return text[strings.LastIndex(text, "\n\n")+2:] }

// anchorOf returns the anchor that GitHub gives to the section of a command.
func anchorOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// topCommand returns the command below the root under which a command is.
func topCommand(c *cobra.Command) *cobra.Command {
	for c.Parent() != nil && c.Parent().HasParent() {
		c = c.Parent()
	}
	return c
}
