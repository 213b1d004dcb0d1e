package redis

import (
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// scriptCall is one call of a script that changes a thread. All its texts stand in
// one buffer: a superstep has some thirty of them.
type scriptCall struct {
	script   *script
	sealer   layout.RecordSealer
	buf      []byte
	spans    []argument
	keyCount int
}

// argument is where a text stands in the buffer, or one that is too large to be
// copied there.
type argument struct {
	from, to int
	large    string
}

// uncopiedSize is how long a text is that is better not copied.
const uncopiedSize = 16 << 10

// newScriptCall begins a call with the keys that the script gets: all, or those of
// checkpoints and events.
func (s *Store) newScriptCall(which *script, thread string, all bool) *scriptCall {
	a := &scriptCall{
		script: which, sealer: layout.NewRecordSealer(s.box, thread), buf: make([]byte, 0, 6<<10), spans: make([]argument, 0, 64),
	}
	for _, key := range s.keys.ChangeKeys(thread, all) {
		a.appendText(key)
	}
	a.keyCount = len(a.spans)
	return a
}

func (a *scriptCall) appendText(s string) {
	if len(s) >= uncopiedSize {
		a.spans = append(a.spans, argument{large: s})
		return
	}
	a.buf = append(a.buf, s...)
	a.endArgument(len(s))
}

// endArgument makes an argument of the last n bytes.
func (a *scriptCall) endArgument(n int) {
	a.spans = append(a.spans, argument{from: len(a.buf) - n, to: len(a.buf)})
}

func (a *scriptCall) appendUint(n uint64) {
	from := len(a.buf)
	a.buf = strconv.AppendUint(a.buf, n, 10)
	a.endArgument(len(a.buf) - from)
}

func (a *scriptCall) appendCount(n int) { a.appendUint(uint64(max(0, n))) }

func (a *scriptCall) appendFlag(v bool) {
	if v {
		a.appendText("1")
	} else {
		a.appendText("0")
	}
}

func (a *scriptCall) appendTexts(list []string) {
	a.appendCount(len(list))
	for _, s := range list {
		a.appendText(s)
	}
}

// appendRecord writes a record of the thread.
func appendRecord[T any](a *scriptCall, kind, name string, v *T, write func([]byte, *T) []byte) {
	if !a.sealer.IsPlain() {
		a.appendText(a.sealer.SealRecord(kind, name, string(write(nil, v))))
		return
	}
	from := len(a.buf)
	a.buf = write(a.buf, v)
	a.endArgument(len(a.buf) - from)
}

// reserveCount keeps a place for a number that is known after what follows it.
func (a *scriptCall) reserveCount() (at int) {
	a.spans = append(a.spans, argument{})
	return len(a.spans) - 1
}

// fillCount fills such a place.
func (a *scriptCall) fillCount(at, n int) {
	a.appendCount(n)
	last := len(a.spans) - 1
	a.spans[at] = a.spans[last]
	a.spans = a.spans[:last]
}

func (a *scriptCall) argumentCount() int { return len(a.spans) }

// buildCommand makes the command, and says how many bytes it has, about.
func (a *scriptCall) buildCommand() (command []any, size int) {
	all := string(a.buf)
	texts := make([]string, len(a.spans))
	command = make([]any, 0, 3+len(a.spans))
	command = append(command, "evalsha", a.script.hash, a.keyCount)
	size = len(all)
	for i := range a.spans {
		if s := &a.spans[i]; s.large == "" {
			texts[i] = all[s.from:s.to]
		} else {
			texts[i] = s.large
			size += len(s.large)
		}
		command = append(command, &texts[i])
	}
	command[3] = texts[0] // the client reads from the first key which server it is
	return command, size
}
