package pregel

import (
	"crypto/sha256"
	"iter"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// StoredValue is a value as a state holds it: a text, or the elements of a list. A list becomes text
// on demand, because that costs as much as all of its elements.
type StoredValue struct {
	text   payload.JSON
	items  []payload.JSON
	isList bool
}

// StoredValues iterates over the keys that are set.
func (v View) StoredValues() iter.Seq2[string, StoredValue] {
	return func(yield func(string, StoredValue) bool) {
		for _, i := range v.positions {
			if value, ok := v.values.storedAt(i); ok && !yield(v.values.graph.Channels[i].Name, value) {
				return
			}
		}
	}
}

// storedAt returns the value of a channel, its default included.
func (v *values) storedAt(i int) (StoredValue, bool) {
	c, spec := &v.checkpoint.Channels[i], &v.graph.Channels[i]
	if c.List == nil || spec.Kind == graph.Untracked {
		text, ok := v.valueAt(i)
		return StoredValue{text: text}, ok
	}
	items := v.itemsAt(i)
	isHidden := len(items) == 0 && (spec.Kind == graph.Topic || spec.Kind == graph.TopicOnce)
	return StoredValue{items: items, isList: true}, !isHidden
}

// Text returns the JSON text.
func (s StoredValue) Text() payload.JSON {
	if s.isList {
		return payload.Array(s.items)
	}
	return s.text
}

// Size returns the bytes of the text.
func (s StoredValue) Size() int {
	if s.isList {
		return max(2, 1+int(itemBytes(s.items)))
	}
	return len(s.text)
}

// IsSame reports whether both have the same text, as far as is known without reading a list. Values
// that no superstep has written between two states share their memory, so that nothing is read.
func (s StoredValue) IsSame(other StoredValue) bool {
	if s.isList != other.isList || !s.isList {
		return s.isList == other.isList && s.text == other.text
	}
	return len(s.items) == len(other.items) && (len(s.items) == 0 || &s.items[0] == &other.items[0])
}

// Digest returns the SHA-256 of the text, without making the text of a list.
func (s StoredValue) Digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	var buffer [8 << 10]byte // a text as bytes would be a copy of it
	filled := 0
	write := func(text string) {
		for text != "" {
			n := copy(buffer[filled:], text)
			text, filled = text[n:], filled+n
			if filled == len(buffer) {
				_, _ = h.Write(buffer[:]) // never fails
				filled = 0
			}
		}
	}
	if s.isList {
		write("[")
		for i, item := range s.items {
			if i > 0 {
				write(",")
			}
			write(string(item))
		}
		write("]")
	} else {
		write(string(s.text))
	}
	_, _ = h.Write(buffer[:filled])
	h.Sum(sum[:0])
	return sum
}
