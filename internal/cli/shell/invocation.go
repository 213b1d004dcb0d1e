package shell

import "slices"

// Invocation is the command line that calls this graphd again.
type Invocation struct {
	Program     []string // one word, or those of "go run"
	ServerFlags []string // flags that lead to the same server
	Verb        string   // the present command: "run", "threads delete"
}

// CommandLine returns a command line that can be pasted into a shell.
func (i Invocation) CommandLine(args ...string) string {
	return QuoteCommand(slices.Concat(i.Program, args, i.ServerFlags)...)
}
