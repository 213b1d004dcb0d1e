package layout

import (
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/payload"
)

// The input of a run often stands in its thread several times: in the run, in the
// checkpoint that took it in, and its parts in the channels that they went to. A
// large input is kept once, beside the record of its run, and other values that
// are part of it are stored as a reference: offset and length in the input. An
// input never changes.

// inputRefMark begins a reference in place of a value: offset, ':', length,
// ':', run. No JSON text begins with it, and nothing that seal writes.
const inputRefMark = "\x05"

// InputField returns the field of the input of a run.
func InputField(run string) string { return "i" + run }

// FormatInputRef makes a reference to a part of the input of a run.
func FormatInputRef(run string, at, length int) string {
	return inputRefMark + strconv.Itoa(at) + ":" + strconv.Itoa(length) + ":" + run
}

// RunInputs are the large inputs of the runs of a change, which its values may
// refer to.
type RunInputs []checkpoint.Run

// CollectInputs returns the runs whose inputs are stored separately. Sealed
// inputs are not referred to: a sealed record opens in its own place only.
func (rs RecordSealer) CollectInputs(c *checkpoint.Change) (list RunInputs) {
	for i := range c.Runs {
		if r := &c.Runs[i]; len(r.Request.Input) > codec.MaxInlineBytes && rs.IsPlain() {
			list = append(list, *r)
		}
	}
	return list
}

// FindRef finds a value in the inputs.
func (r RunInputs) FindRef(v payload.JSON) (text string, ok bool) {
	for i := range r {
		input := string(r[i].Request.Input)
		if at := strings.Index(input, string(v)); at >= 0 {
			return FormatInputRef(r[i].ID, at, len(v)), true
		}
	}
	return "", false
}

// RunOfRef returns the run of a reference, and reports whether the text is a reference.
func RunOfRef(text string) (run string, ok bool) {
	if !strings.HasPrefix(text, inputRefMark) {
		return "", false
	}
	parts := strings.SplitN(text, ":", 3)
	return parts[len(parts)-1], true
}

// ResolveRef returns the part of an input that a reference names. It returns
// checkpoint.ErrCorrupt when the input has no such part.
func ResolveRef(text, input string) (payload.JSON, error) {
	parts := strings.SplitN(strings.TrimPrefix(text, inputRefMark), ":", 3)
	if len(parts) != 3 {
		return "", CorruptError("a quotation is damaged")
	}
	at, err := strconv.Atoi(parts[0])
	length, failed := strconv.Atoi(parts[1])
	if err != nil || failed != nil || at < 0 || length < 0 || at > len(input) || length > len(input)-at {
		return "", CorruptError("it quotes %s bytes from byte %s on of the input of run %q, which has %d",
			parts[1], parts[0], parts[2], len(input))
	}
	return payload.JSON(input[at : at+length]), nil
}
