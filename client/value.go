package client

import (
	"bytes"
	"encoding/json"
	"fmt"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// encodePayload writes a value as JSON text. A json.RawMessage is taken as it is; nil is no value.
func encodePayload(field string, value any) (*graphdv1.Payload, error) {
	if value == nil {
		return nil, nil
	}
	raw, isRaw := value.(json.RawMessage)
	if !isRaw {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		raw = bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	}
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(raw)}}, nil
}

// Encode writes a value as JSON text, for generated calls. A json.RawMessage is taken as it is; nil is
// no payload. The error is that of encoding/json.
func Encode(value any) (*graphdv1.Payload, error) { return encodePayload("value", value) }

// Decode reads a payload into a T. Numbers that land in an any are json.Number, so that they keep
// their digits. No payload is the zero T.
func Decode[T any](p *graphdv1.Payload) (T, error) {
	var value T
	if p == nil {
		return value, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(p.GetJson())))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err
}
