package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// A shell completes arguments and flags with what the server of the command has. A server that
// does not answer has nothing to offer.

// Bounds of what a shell is offered.
const (
	completionTimeout = 2 * time.Second // how long it waits for a server
	maxCompletions    = 200
	maxDescription    = 60 // characters
)

// addCompletions has shells complete the arguments of a command and of its subcommands, by their
// names in the usage line, and the flags that name what the server has.
func (p *program) addCompletions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		p.addCompletions(sub)
	}
	if names := listArguments(cmd); len(names) > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) >= len(names) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeArgument(cmd, names[len(args)])
		}
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"interrupt": p.completeQuestions,
		"thread": func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.completeThreads(cmd)
		},
		flagGraph: p.completeGraphs,
		"context": func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return p.completeContexts()
		},
		flagGroup:     cobra.NoFileCompletions,
		flagClaimedBy: cobra.NoFileCompletions,
	} {
		if cmd.LocalFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails where the command has a completion of its own
		}
	}
}

// listArguments lists the arguments in the usage line of a command: THREAD for "copy THREAD [NEW]".
func listArguments(cmd *cobra.Command) (names []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "--") || word == "|" {
			break
		}
		names = append(names, strings.Trim(strings.TrimSuffix(word, "[@VERSION]"), "[]."))
	}
	return names
}

func (p *program) completeArgument(cmd *cobra.Command, name string) ([]cobra.Completion, cobra.ShellCompDirective) {
	parent := cmd.Parent().Name()
	switch {
	case name == "THREAD" && cmd.Flags().Lookup("store") != nil:
		return nil, cobra.ShellCompDirectiveNoFileComp // of a store, without a server
	case name == "THREAD" && (parent == "inbox" || cmd.Name() == "resume"):
		return p.completeAskingThreads(cmd)
	case name == "THREAD":
		return p.completeThreads(cmd)
	case name == "FILE":
		return nil, cobra.ShellCompDirectiveDefault
	case name == "NAME" && parent == "context" && cmd.Name() != "add":
		return p.completeContexts()
	case name == "GRAPH", name == "NAME" && parent == "graph":
		graphs, directive := p.completeGraphs(cmd, nil, "")
		if strings.Contains(cmd.Use, "| FILE") {
			directive = cobra.ShellCompDirectiveDefault
		}
		return graphs, directive
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// readCompletions offers what is read from the server.
func (p *program) readCompletions(cmd *cobra.Command, read func(ctx context.Context, s *cli.Session) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	var found []cobra.Completion
	quiet := *p
	quiet.Err = io.Discard
	err := quiet.withSession(func(s *cli.Session) (err error) {
		found, err = read(ctx, s)
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) completeGraphs(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.readCompletions(cmd, func(ctx context.Context, s *cli.Session) ([]cobra.Completion, error) { return s.ListGraphNames(ctx) })
}

// completeThreads offers the threads that changed last.
func (p *program) completeThreads(cmd *cobra.Command) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.readCompletions(cmd, func(ctx context.Context, s *cli.Session) (all []cobra.Completion, err error) {
		list, err := s.ListNewestThreads(ctx, maxCompletions)
		for _, t := range list {
			all = append(all, describeCompletion(t.GetThreadId(), t.GetGraph()+", "+output.ThreadStateName(t.GetState())))
		}
		return all, err
	})
}

// completeAskingThreads offers the threads with open questions, the oldest first.
func (p *program) completeAskingThreads(cmd *cobra.Command) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.readCompletions(cmd, func(ctx context.Context, s *cli.Session) (all []cobra.Completion, err error) {
		list, err := s.ListOldestQuestions(ctx, "", maxCompletions)
		var threads []string
		for _, q := range list {
			if !slices.Contains(threads, q.GetThreadId()) {
				threads = append(threads, q.GetThreadId())
				all = append(all, describeCompletion(q.GetThreadId(), q.GetMessage()))
			}
		}
		return all, err
	})
}

// completeQuestions offers the open questions of the thread that is named before.
func (p *program) completeQuestions(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.readCompletions(cmd, func(ctx context.Context, s *cli.Session) (all []cobra.Completion, err error) {
		list, err := s.ListOldestQuestions(ctx, args[0], maxCompletions)
		for _, q := range list {
			all = append(all, describeCompletion(q.GetInterruptId(), q.GetMessage()))
		}
		return all, err
	})
}

func (p *program) completeContexts() ([]cobra.Completion, cobra.ShellCompDirective) {
	list, err := p.connection.readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for _, e := range list.ListEntries() {
		all = append(all, describeCompletion(e.Name, e.Server))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// describeCompletion adds the first line of a text to what a shell is offered.
func describeCompletion(offered, text string) cobra.Completion {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = string(output.MakeSafe(strings.ReplaceAll(line, "\t", " ")))
	if short := []rune(line); len(short) > maxDescription {
		line = string(short[:maxDescription-1]) + "…"
	}
	return cobra.CompletionWithDesc(offered, line)
}
