package argument

import (
	"errors"
	"io"
	"os"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// ReadValue reads the JSON value of a flag: the text itself, @FILE, or - for
// standard input, which is in. The text stays unchanged. The error is an
// *exit.UsageError.
func ReadValue(in io.Reader, flag, given string) (*graphdv1.Payload, error) {
	text, from, err := readSource(in, given)
	if err != nil {
		return nil, exit.Usagef("%s: %v", flag, err).WithHint("want JSON, @FILE, or - for standard input")
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if err := jsontext.CheckValue(text); err != nil {
		hint := "want JSON, @FILE, or - for standard input"
		if text != "" && !strings.ContainsAny(text[:1], `{["`) {
			hint += "; text is JSON in double quotes: " + shell.QuoteCommand(flag, quoteForHint(text))
		}
		return nil, exit.Usagef("%s: %s is not JSON: %v", flag, from, err).WithHint("%s", hint)
	}
	return NewPayload(text), nil
}

// NewPayload makes a payload of JSON text.
func NewPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

// readSource returns the text of a value and a description of its source.
func readSource(in io.Reader, given string) (text, from string, err error) {
	switch name, isFile := strings.CutPrefix(given, "@"); {
	case isFile:
		data, err := os.ReadFile(name) //nolint:gosec // the caller names the file
		return string(data), name, err
	case given == "-":
		if in == nil {
			return "", "", errors.New("there is no standard input")
		}
		data, err := io.ReadAll(in)
		return string(data), "standard input", err
	}
	return given, "it", nil
}

// quoteForHint returns text as a JSON string, shortened for a hint.
func quoteForHint(text string) string {
	const most = 40
	if len([]rune(text)) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return jsontext.QuoteString(text)
}
