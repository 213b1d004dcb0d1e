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
	// Terminal says that a person reads Out and types In.
	Terminal bool
	Color    bool
}

// Session is a command on its way: a server and a person or program.
type Session struct {
	*Client
	IO

	Format Format
	Self   Self
}

// Self is how to call this graphd again from where the caller stands.
type Self struct {
	Program []string // one word, or those of "go run"
	Flags   []string // that lead to the same server
	Verb    string   // what this call does: "run", "threads delete"
}

// Command words a call so that it can be pasted into a shell.
func (s Self) Command(args ...string) string {
	return CommandLine(slices.Concat(s.Program, args, s.Flags)...)
}

// message shows a message as JSON, in the session's format.
func (s *Session) message(m proto.Message) error {
	var text []byte
	if s.Format == JSON {
		text = Indent(Marshal(m))
	} else {
		text = Marshal(m)
	}
	return WriteJSON(s.Out, text)
}

// list shows a whole response as one document, or its elements one per line.
func list[T proto.Message](s *Session, whole proto.Message, elements []T) error {
	if s.Format == JSON {
		return WriteJSON(s.Out, Indent(marshalWhole(whole)))
	}
	for _, e := range elements {
		if err := s.message(e); err != nil {
			return err
		}
	}
	return nil
}

// note tells a person something that is not the result.
func (s *Session) note(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	_ = Line(s.Err, format, args...) // there is no other place to say so
}
