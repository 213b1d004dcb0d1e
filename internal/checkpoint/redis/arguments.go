package redis

import (
	"strconv"
)

// call is one call of a script that changes a thread. All its texts stand in
// one buffer: a superstep has some thirty of them.
type call struct {
	script *script
	by     writer
	buf    []byte
	spans  []span
	keys   int
}

// span is where a text stands in the buffer, or one that is too large to be
// copied there.
type span struct {
	from, to int
	large    string
}

// large is how long a text is that is better not copied.
const large = 16 << 10

// newCall begins a call with the keys that the script gets: all, or those of
// checkpoints and events.
func (s *Store) newCall(which *script, thread string, all bool) *call {
	a := &call{
		script: which, by: writer{s.box, thread}, buf: make([]byte, 0, 6<<10), spans: make([]span, 0, 64),
	}
	for _, key := range s.keys.change(thread, all) {
		a.text(key)
	}
	a.keys = len(a.spans)
	return a
}

func (a *call) text(s string) {
	if len(s) >= large {
		a.spans = append(a.spans, span{large: s})
		return
	}
	a.buf = append(a.buf, s...)
	a.end(len(s))
}

// end makes an argument of the last n bytes.
func (a *call) end(n int) { a.spans = append(a.spans, span{from: len(a.buf) - n, to: len(a.buf)}) }

func (a *call) num(n uint64) {
	from := len(a.buf)
	a.buf = strconv.AppendUint(a.buf, n, 10)
	a.end(len(a.buf) - from)
}

func (a *call) count(n int) { a.num(uint64(max(0, n))) }

func (a *call) flag(v bool) {
	if v {
		a.text("1")
	} else {
		a.text("0")
	}
}

func (a *call) texts(list []string) {
	a.count(len(list))
	for _, s := range list {
		a.text(s)
	}
}

// record writes a record of the thread.
func record[T any](a *call, kind, name string, v *T, write func([]byte, *T) []byte) {
	if !a.by.box.Plain() {
		a.text(a.by.write(kind, name, string(write(nil, v))))
		return
	}
	from := len(a.buf)
	a.buf = write(a.buf, v)
	a.end(len(a.buf) - from)
}

// later keeps a place for a number that is known after what follows it.
func (a *call) later() (at int) {
	a.spans = append(a.spans, span{})
	return len(a.spans) - 1
}

// set fills such a place.
func (a *call) set(at, n int) {
	a.count(n)
	last := len(a.spans) - 1
	a.spans[at] = a.spans[last]
	a.spans = a.spans[:last]
}

func (a *call) len() int { return len(a.spans) }

// finish makes the command, and says how many bytes it has, about.
func (a *call) finish() (command []any, size int) {
	all := string(a.buf)
	texts := make([]string, len(a.spans))
	command = make([]any, 0, 3+len(a.spans))
	command = append(command, "evalsha", a.script.hash, a.keys)
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
