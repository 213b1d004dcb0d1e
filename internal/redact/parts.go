package redact

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Parts are the parts that were taken out of a value, in the order of its text. The zero Parts are
// none. They never change. Whatever prints, logs or encodes them gets their number. Package fmt
// reads unexported fields by reflection and follows one pointer: it ends at the box.
type Parts struct {
	box *box
}

type box struct {
	list *[]part
}

type part struct {
	pointer string
	value   payload.JSON
}

func newParts(list []part) Parts {
	if len(list) == 0 {
		return Parts{}
	}
	return Parts{&box{&list}}
}

func (p Parts) listParts() []part {
	if p.box == nil {
		return nil
	}
	return *p.box.list
}

// IsEmpty reports whether nothing is hidden.
func (p Parts) IsEmpty() bool { return p.box == nil }

// Pointers returns the pointers at which something is hidden, each once.
func (p Parts) Pointers() (pointers []string) {
	for _, one := range p.listParts() {
		if pointer := one.pointer; !slices.Contains(pointers, pointer) {
			pointers = append(pointers, pointer)
		}
	}
	return pointers
}

// Size returns about how many bytes the parts take in memory.
func (p Parts) Size() (n int) {
	for _, one := range p.listParts() {
		n += 32 + len(one.pointer) + len(one.value)
	}
	return n
}

// ExposeEach calls visit for each part, in order. It is for the codec of stored records.
func (p Parts) ExposeEach(visit func(pointer string, value payload.JSON)) {
	for _, one := range p.listParts() {
		visit(one.pointer, one.value)
	}
}

// Builder makes Parts of stored records, for their codec.
type Builder struct{ list []part }

// Add adds the next part.
func (b *Builder) Add(pointer string, value payload.JSON) {
	b.list = append(b.list, part{pointer, value})
}

// Parts returns the parts that were added.
func (b *Builder) Parts() Parts { return newParts(b.list) }

// String returns how many parts there are.
func (p Parts) String() string {
	if p.IsEmpty() {
		return "nothing secret"
	}
	return strconv.Itoa(len(p.listParts())) + " secret"
}

// Format writes String, whatever the verb.
func (p Parts) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(p.String())) }

// MarshalText returns String, so that JSON, YAML and logs get it too.
func (p Parts) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
