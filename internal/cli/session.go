package cli

import (
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Format is how a command shows what it got.
type Format string

// Formats of the output.
const (
	Text  Format = "text"  // for people
	JSON  Format = "json"  // one indented document
	JSONL Format = "jsonl" // one document per line
)

// ParseFormat returns a Format or a usage error that names the right ones.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Text, JSON, JSONL:
		return f, nil
	}
	return "", Usagef("-o %s: the formats are text, json and jsonl", name)
}

// IO is where a command reads and writes.
type IO struct {
	In  io.Reader
	Out io.Writer // what was asked for
	Err io.Writer // everything else
	// IsTerminal says that a person reads Out and types In.
	IsTerminal bool
	HasColor   bool
}

// Output is where a command writes, and how.
type Output struct {
	IO

	Format Format
}

// Session is a command on its way: a server and a person or program.
type Session struct {
	*Client
	Output

	Invocation Invocation
}

func (s *Session) newViewer() *viewer {
	return &viewer{client: s.Client, Output: s.Output, invocation: s.Invocation}
}

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

// showMessage shows a message as JSON, in the command's format.
func (s *Output) showMessage(m proto.Message) error {
	var text []byte
	if s.Format == JSON {
		text = Indent(Marshal(m))
	} else {
		text = Marshal(m)
	}
	return WriteJSON(s.Out, text)
}

// showList shows a whole response as one document, or its elements one per line.
func showList[T proto.Message](s *Output, whole proto.Message, elements []T) error {
	if s.Format == JSON {
		return WriteJSON(s.Out, Indent(marshalWithEmptyLists(whole)))
	}
	for _, e := range elements {
		if err := s.showMessage(e); err != nil {
			return err
		}
	}
	return nil
}

// printNote tells a person something that is not the result.
func (s *Output) printNote(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	_ = WriteLine(s.Err, format, args...) // there is no other place to say so
}

func (s *Output) newPrinter() *printer { return &printer{out: s.Out, hasColor: s.HasColor} }
