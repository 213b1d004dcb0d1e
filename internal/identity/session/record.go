package session

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// record is what a sealed session has in it.
type record struct {
	Issuer string          `json:"i"`
	ID     string          `json:"s"`
	Begun  int64           `json:"b"` // microseconds since 1970
	Until  int64           `json:"u"` // seconds since 1970
	Claims json.RawMessage `json:"c"`
}

func (r *record) begin() time.Time { return time.UnixMicro(r.Begun) }

func (r *record) end() time.Time { return time.Unix(r.Until, 0) }

func encodeRecord(r *record) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(r) != nil { // claims that were verified are JSON
		return ""
	}
	return strings.TrimSpace(b.String())
}

// decodeRecord reads a record strictly. Only a key of this server has sealed it.
func decodeRecord(text string) (*record, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var r record
	if d.Decode(&r) != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return &r, r.Issuer != "" && r.ID != "" && r.Begun > 0 && r.Until > 0 && len(r.Claims) > 0 && r.Claims[0] == '{'
}
