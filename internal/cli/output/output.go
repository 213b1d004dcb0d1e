package output

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
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
	return "", exit.Usagef("-o %s: the formats are text, json and jsonl", name)
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

// ShowMessage shows a message as JSON, in the command's format.
func (o *Output) ShowMessage(m proto.Message) error {
	var text []byte
	if o.Format == JSON {
		text = jsontext.IndentText(jsontext.MarshalMessage(m))
	} else {
		text = jsontext.MarshalMessage(m)
	}
	return WriteJSON(o.Out, text)
}

// ShowList shows a whole response as one document, or its elements one per line.
func ShowList[T proto.Message](o *Output, whole proto.Message, elements []T) error {
	if o.Format == JSON {
		return WriteJSON(o.Out, jsontext.IndentText(jsontext.MarshalList(whole)))
	}
	for _, e := range elements {
		if err := o.ShowMessage(e); err != nil {
			return err
		}
	}
	return nil
}

// PrintNote tells a person something that is not the result.
func (o *Output) PrintNote(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	_ = WriteLine(o.Err, format, args...) // there is no other place to say so
}

// NewPrinter makes a printer to Out.
func (o *Output) NewPrinter() *Printer { return &Printer{out: o.Out, hasColor: o.HasColor} }
