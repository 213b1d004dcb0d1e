package seal

import "encoding/base64"

// TextBox seals texts that are kept outside of a store, like in a cookie, as letters, digits,
// dashes and underscores. Its methods may be called at the same time.
type TextBox struct {
	box *Box
}

// NewTextBox makes a TextBox. The first key seals, all open. It returns a *KeyError for a key
// that is wrong, without its secret.
func NewTextBox(keys []Key) (*TextBox, error) {
	if len(keys) == 0 {
		return nil, &KeyError{Is: "are missing", Want: wantLine}
	}
	box, err := New(Options{Keys: keys, Compress: true})
	if err != nil {
		return nil, err
	}
	return &TextBox{box}, nil
}

// Seal seals a text for a purpose.
func (b *TextBox) Seal(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(b.box.Seal(RecordPlace{Kind: purpose}, text)))
}

// Open returns a text that was sealed for a purpose. Records that are not sealed, which a Box
// reads, are refused: anybody could make them.
func (b *TextBox) Open(purpose, sealed string) (text string, ok bool) {
	record, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", false
	}
	if _, ok := SealingKeyID(string(record)); !ok {
		return "", false
	}
	text, err = b.box.Open(RecordPlace{Kind: purpose}, string(record))
	return text, err == nil
}
