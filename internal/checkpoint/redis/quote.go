package redis

import (
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
)

// The input of a run often stands in its thread several times: in the run, in
// the checkpoint that took it in, and its parts in the channels that they went
// to. One that is large is kept once, beside the record of its run, and what
// else is part of it only says which part it is: a quotation. It never changes.

// quotation begins what stands in place of a value: offset, ':', length, ':', run.
// No JSON text begins with it, and nothing that seal writes.
const quotation = "\x05"

// inputField is where the input of a run is kept.
func inputField(run string) string { return "i" + run }

func quoted(run string, at, length int) string {
	return quotation + strconv.Itoa(at) + ":" + strconv.Itoa(length) + ":" + run
}

// inputs are the large inputs of the runs of a change, which it may quote.
type inputs []checkpoint.Run

// quotable are the runs of which inputs are kept beside them. What is sealed is
// not quoted: it opens in its own place only.
func (w writer) quotable(c *checkpoint.Change) (list inputs) {
	for i := range c.Runs {
		if r := &c.Runs[i]; len(r.Request.Input) > codec.Inline && w.box.Plain() {
			list = append(list, *r)
		}
	}
	return list
}

// quote finds a value in them.
func (list inputs) quote(v payload.JSON) (text string, ok bool) {
	for i := range list {
		input := string(list[i].Request.Input)
		if at := strings.Index(input, string(v)); at >= 0 {
			return quoted(list[i].ID, at, len(v)), true
		}
	}
	return "", false
}

// runOf is the run that is quoted, if it is a quotation.
func runOf(text string) (run string, ok bool) {
	if !strings.HasPrefix(text, quotation) {
		return "", false
	}
	parts := strings.SplitN(text, ":", 3)
	return parts[len(parts)-1], true
}

// unquote reads a quotation of an input.
func unquote(text, input string) (payload.JSON, error) {
	parts := strings.SplitN(strings.TrimPrefix(text, quotation), ":", 3)
	if len(parts) != 3 {
		return "", corrupt("a quotation is damaged")
	}
	at, err := strconv.Atoi(parts[0])
	length, failed := strconv.Atoi(parts[1])
	if err != nil || failed != nil || at < 0 || length < 0 || at > len(input) || length > len(input)-at {
		return "", corrupt("it quotes %s bytes from byte %s on of the input of run %q, which has %d",
			parts[1], parts[0], parts[2], len(input))
	}
	return payload.JSON(input[at : at+length]), nil
}
