// Package format3 reads the records of SQLite files of format 3, which were JSON, and
// writes them as today's. The migration alone needs it: it goes when files of
// format 3 are no longer migrated.
package format3

import (
	"fmt"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

// Number is that of the format.
const Number = 3

// version is the only version of records in files of format 3.
const version = 1

// IsRecord reports whether an open record has format 3.
func IsRecord(text string) bool { return text != "" && text[0] == '{' }

// CheckPacked returns an error that wraps checkpoint.ErrCorrupt when a record is not
// packed.
func CheckPacked(text string) error {
	_, err := codec.AppendJSON(nil, text)
	return err
}

// PackRecord writes a JSON record of any kind anew. An error wraps
// checkpoint.ErrCorrupt.
func PackRecord(text string) (string, error) {
	p := recordPacker{scanner: scanner{input: text}, w: packed.NewWriter(make([]byte, 0, len(text)/2))}
	isFirst := true
	p.readObject(func(name string) {
		if isFirst {
			isFirst = false
			p.checkVersion(name)
			return
		}
		p.packField(name)
	})
	p.skipSpace()
	if p.err == nil && isFirst {
		p.setError(`no "v"`)
	}
	if p.err == nil && p.pos != len(p.input) {
		p.setError("text after the record")
	}
	if p.err != nil {
		return "", fmt.Errorf("%w: %w", checkpoint.ErrCorrupt, p.err)
	}
	return string(p.w.Bytes()), nil
}

// recordPacker writes the fields that it reads. The order of fields is the same in
// both forms, so equal records become equal bytes.
type recordPacker struct {
	scanner
	w *packed.Writer
}

func (p *recordPacker) checkVersion(name string) {
	if name != "v" {
		p.setError(`the first field is not "v"`)
		return
	}
	if v := p.readNumber(); p.err == nil && v != strconv.Itoa(version) {
		p.setError("version " + v)
	}
}

func (p *recordPacker) packField(name string) {
	f, form, ok := codec.FieldByName(name)
	switch {
	case !ok:
		p.skipValue()
	case form == codec.Value:
		p.w.WriteJSON(f, p.readJSON()) // with the white space around it
	case form == codec.Map:
		p.w.WriteMap(f, p.readMap())
	case form == codec.Duration:
		p.w.WriteDuration(f, p.readDuration())
	case form == codec.Time && p.peekByte() == '"':
		p.w.WriteTime(f, p.readTime())
	default:
		p.packPlain(f)
	}
}

func (p *recordPacker) packPlain(f packed.Field) {
	switch p.peekByte() {
	case '[':
		p.packList(f)
	case '{':
		p.w.OpenObject(f)
		p.readObject(p.packField)
		p.w.CloseObject()
	case '"':
		p.w.WriteString(f, p.readString())
	case 't', 'f':
		p.w.WriteBool(f, p.readBool())
	default:
		p.packNumber(f)
	}
}

func (p *recordPacker) packNumber(f packed.Field) {
	text := p.readNumber()
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		p.w.WriteUint(f, n)
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.setError("expected an integer")
	}
	p.w.WriteInt(f, n)
}

// packList writes a list of texts or of objects.
func (p *recordPacker) packList(f packed.Field) {
	p.w.OpenArray(f)
	p.readArray(func() {
		if p.peekByte() == '{' {
			p.w.OpenElement()
			p.readObject(p.packField)
			p.w.CloseObject()
			return
		}
		p.w.AppendString(p.readString())
	})
	p.w.CloseArray()
}

func (p *recordPacker) readTime() time.Time {
	t, err := time.Parse(time.RFC3339Nano, p.readString())
	if err != nil {
		p.setError("expected a time")
	}
	return t
}

func (p *recordPacker) readDuration() time.Duration {
	d, err := time.ParseDuration(p.readString())
	if err != nil {
		p.setError("expected a duration")
	}
	return d
}

func (p *recordPacker) readMap() map[string]string {
	out := map[string]string{}
	p.readObject(func(name string) { out[name] = p.readString() })
	return out
}
