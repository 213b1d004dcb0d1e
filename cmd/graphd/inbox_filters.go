package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// Flags that select questions by a value.
const (
	flagGroup     = "group"
	flagGraph     = "graph"
	flagDue       = "due"
	flagPriority  = "priority"
	flagClaimedBy = "claimed-by"
	flagSort      = "sort"
)

func inboxValueFlags() []string {
	return []string{flagGroup, flagGraph, flagDue, flagPriority, flagClaimedBy, flagSort}
}

// registerQuestionFlags registers the flags that select questions, and what a shell
// completes them with.
func registerQuestionFlags(cmd *cobra.Command, o *argument.Questions) {
	f := cmd.Flags()
	f.BoolVar(&o.Mine, "mine", false, "only those for you or a group of yours, or taken by you")
	f.StringVar(&o.Group, flagGroup, "", "only those for members of this group")
	f.StringVar(&o.Graph, flagGraph, "", "only those of this graph")
	f.StringVar(&o.Due, flagDue, "", "only those that are due before a time, or within a duration: 2h, 3d, 2026-11-23, 2026-11-23T09:00:00Z; 0s = overdue")
	f.StringVar(&o.Priority, flagPriority, "", "only those of this priority: "+strings.Join(argument.Priorities(), ", "))
	f.StringVar(&o.ClaimedBy, flagClaimedBy, "", "only those that this user has taken")
	f.StringVar(&o.Sort, flagSort, "", "created: the oldest first; due: those that are due, the next one first (default created, with --due due)")
	for flag, complete := range map[string]cobra.CompletionFunc{
		flagPriority: cobra.FixedCompletions(argument.Priorities(), cobra.ShellCompDirectiveNoFileComp),
		flagSort:     cobra.FixedCompletions(argument.Sorts(), cobra.ShellCompDirectiveNoFileComp),
		flagDue:      cobra.FixedCompletions([]string{"0s", "1h", "8h", "1d", "7d"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails for flags that are not registered above
	}
}

// refuseEmptyFlags refuses flags that are given without a value, which would select
// everything.
func refuseEmptyFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return exit.Usagef("--%s is empty", name).WithHint("name a value, or leave --%s out", name)
		}
	}
	return nil
}
