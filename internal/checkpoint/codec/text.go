package codec

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
	"github.com/graphd-dev/graphd/internal/payload"
)

// AppendJSON appends a record of any kind as a JSON object on one line, for
// people. Fields that this version does not know are left out. An error wraps
// checkpoint.ErrCorrupt.
func AppendJSON(b []byte, record string) ([]byte, error) {
	t := textWriter{buf: append(b, '{')}
	err := packed.ReadRecord(record, "record", t.writeField)
	return append(t.buf, '}'), err
}

// textWriter writes the fields that a reader reads as JSON.
type textWriter struct {
	buf []byte
}

// writeComma separates from the element before, if any.
func (t *textWriter) writeComma() {
	if c := t.buf[len(t.buf)-1]; c != '{' && c != '[' {
		t.buf = append(t.buf, ',')
	}
}

func (t *textWriter) writeField(r *packed.Reader, f packed.Field) {
	if int(f) >= len(fields) {
		r.SkipValue()
		return
	}
	t.writeComma()
	t.buf = append(AppendQuoted(t.buf, fields[f].name), ':')
	if fields[f].form == Hidden {
		t.buf = append(t.buf, `"(secret)"`...)
		r.SkipValue()
		return
	}
	t.writeValue(r, fields[f].form)
}

func (t *textWriter) writeValue(r *packed.Reader, form Form) {
	switch r.NextKind() {
	case packed.KindObject:
		t.buf = append(t.buf, '{')
		r.ReadObject(func(f packed.Field) { t.writeField(r, f) })
		t.buf = append(t.buf, '}')
	case packed.KindArray:
		t.writeList(r, form)
	case packed.KindNumber:
		t.writeNumber(r, form)
	case packed.KindValue:
		t.buf = AppendValue(t.buf, r.ReadJSON())
	case packed.KindTime:
		t.buf = append(t.buf, '"')
		t.buf = r.ReadTime().AppendFormat(t.buf, time.RFC3339Nano)
		t.buf = append(t.buf, '"')
	case packed.KindFlag:
		t.buf = strconv.AppendBool(t.buf, r.ReadBool())
	case packed.KindText:
		t.buf = AppendQuoted(t.buf, r.ReadString())
	}
}

// writeList writes a list, or a map: its keys and texts take turns.
func (t *textWriter) writeList(r *packed.Reader, form Form) {
	if form != Map {
		t.buf = append(t.buf, '[')
		r.ReadArray(func() {
			t.writeComma()
			t.writeValue(r, Plain)
		})
		t.buf = append(t.buf, ']')
		return
	}
	t.buf = append(t.buf, '{')
	r.ReadArray(func() {
		t.writeComma()
		t.buf = append(AppendQuoted(t.buf, r.ReadString()), ':')
		t.buf = AppendQuoted(t.buf, r.ReadString())
	})
	t.buf = append(t.buf, '}')
}

func (t *textWriter) writeNumber(r *packed.Reader, form Form) {
	n, negative := r.ReadNumber()
	signed := int64(n)
	if negative {
		signed = -signed - 1
	}
	switch {
	case form == Duration:
		t.buf = AppendQuoted(t.buf, time.Duration(signed).String())
	case negative:
		t.buf = strconv.AppendInt(t.buf, signed, 10)
	default:
		t.buf = strconv.AppendUint(t.buf, n, 10)
	}
}

// AppendValue appends a value of a user on one line. A value of a damaged record
// that is no JSON becomes a string.
func AppendValue(b []byte, v payload.JSON) []byte {
	out := bytes.NewBuffer(b)
	if json.Compact(out, []byte(v)) != nil {
		return AppendQuoted(b, string(v))
	}
	return out.Bytes()
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends a JSON string. Bytes that are not UTF-8 become U+FFFD, the
// only thing a JSON text can say about them.
func AppendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
