package output

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// Format is an output format of a command.
type Format string

// Formats of the output.
const (
	Text  Format = "text"  // for people
	JSON  Format = "json"  // one indented document
	JSONL Format = "jsonl" // one document per line
)

// ParseFormat returns a Format, or a usage error that names the formats.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Text, JSON, JSONL:
		return f, nil
	}
	return "", exit.Usagef("-o %s: the formats are text, json and jsonl", name)
}

// IO has the streams of a command.
type IO struct {
	In  io.Reader
	Out io.Writer // the result
	Err io.Writer // everything else
	// IsTerminal is set if a person reads Out and types In.
	IsTerminal bool
	HasColor   bool
	// Columns is the width of the terminal that shows Out, 0 where none does.
	Columns int
	// Edit lets a person change a text in an editor; nil where there is none.
	Edit func(ctx context.Context, text string) (string, error)
	// ReadHidden reads a line from the terminal without showing what is typed; nil where it is always
	// shown.
	ReadHidden func(ctx context.Context) (string, error)
}

// Output is the output of a command and its format.
type Output struct {
	IO

	Format Format
}

// ShowMessage shows a message as JSON, in the command's format. Errors: those of
// the output.
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
// Errors: those of the output.
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

// PrintNote prints a line that is not part of the result, to Err.
func (o *Output) PrintNote(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	_ = WriteLine(o.Err, format, args...) // an error has no other place to go
}

// NewPrinter makes a printer to Out.
func (o *Output) NewPrinter() *Printer {
	return &Printer{out: o.Out, hasColor: o.HasColor, columns: o.Columns}
}
