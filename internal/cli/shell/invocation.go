package shell

import "slices"

// Invocation is how to call this graphd again from where the caller stands.
type Invocation struct {
	Program     []string // one word, or those of "go run"
	ServerFlags []string // that lead to the same server
	Verb        string   // what this call does: "run", "threads delete"
}

// CommandLine words a call so that it can be pasted into a shell.
func (s Invocation) CommandLine(args ...string) string {
	return QuoteCommand(slices.Concat(s.Program, args, s.ServerFlags)...)
}
