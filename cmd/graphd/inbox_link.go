package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
)

func (p *program) inboxLinkCommand() *cobra.Command {
	var wanted cli.LinkOptions
	cmd := p.questionCommand("link THREAD", "Make a link by which one person answers a question, without other credentials",
		func(cmd *cobra.Command, s *cli.Session, name cli.QuestionName, _ []string) error {
			return s.MakeLink(cmd.Context(), name, wanted)
		})
	cmd.Long = `Make a link by which one person answers a question in a browser, without other credentials.

A holder of the link can answer as that person: send it to that person only. Without --for it is for you. A link for
another person needs the right link-others, which the roles linker and admin have. The question decides about the answer
as about every other one of that person.`
	cmd.Example = `  graphd inbox link ticket-1
  graphd inbox link ticket-1 --for ana@example.com --group finance --valid 1d --bound`
	cmd.Flags().StringVar(&wanted.Principal, "for", "", "who answers by the link (default: you)")
	cmd.Flags().StringArrayVar(&wanted.Groups, "group", nil, "group of that person (repeatable)")
	cmd.Flags().StringVar(&wanted.Valid, "valid", "", "how long, like 2h or 3d (default: 3d, or what the server permits)")
	cmd.Flags().BoolVar(&wanted.IsBound, "bound", false, "the link ends with the next change of the question")
	cmd.Flags().StringVar(&wanted.Preset, "preset", "", "answer that the form begins with, JSON")
	return cmd
}
